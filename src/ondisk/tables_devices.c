/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures of the items about devices: chunks and stripes, devices and their extents, statistics,
 * and the operations that are under way. */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

static const struct bw_field stripe_members[] = {
    {BW_LEAD("\n\t\t\tstripe "), .kind = BW_KIND_INDEX},
    BW_FIELD(" devid ", stripe, devid, NUMBER, "device"),
    BW_FIELD(" offset ", stripe, offset, NUMBER, "where the stripe begins on it, in bytes"),
    {BW_NAME("dev_uuid"), BW_LEAD("\n\t\t\tdev_uuid "), BW_DISK_AT(stripe, device_uuid),
     .kind = BW_KIND_UUID, .description = "uuid of the device"},
};
static BW_STRUCTURE(stripe, sizeof(struct bw_disk_stripe), "a part of a chunk on one device");

static const struct bw_field chunk_members[] = {
    BW_FIELD(BW_LINE "length ", chunk, length, NUMBER, "bytes of logical addresses"),
    BW_FIELD(" owner ", chunk, owner, NUMBER, "2, the extent tree"),
    BW_FIELD(" stripe_len ", chunk, stripe_length, NUMBER,
             "bytes on one device before the next one follows"),
    BW_WORDED(" type ", chunk, type, FLAGS, bw_group_flags, "type and profile"),
    BW_FIELD(BW_LINE "io_align ", chunk, io_align, NUMBER, "unused"),
    BW_FIELD(" io_width ", chunk, io_width, NUMBER, "unused"),
    BW_FIELD(" sector_size ", chunk, sector_size, NUMBER, "smallest unit of reading, in bytes"),
    BW_FIELD(BW_LINE "num_stripes ", chunk, stripe_count, NUMBER, "how many stripes there are"),
    BW_FIELD(" sub_stripes ", chunk, sub_stripes, NUMBER, "copies in RAID10: 2"),
    {BW_NAME("stripes"), BW_DISK_AT(chunk, stripe_count), .kind = BW_KIND_LIST,
     .structure = &bw_structure_stripe, .description = "where it lies"},
};
BW_STRUCTURE(chunk, sizeof(struct bw_disk_chunk),
             "a range of logical addresses, and where it lies");

static const struct bw_field device_item_members[] = {
    BW_FIELD(BW_LINE "devid ", device_item, devid, NUMBER, "id of the device"),
    BW_FIELD(" total_bytes ", device_item, total_bytes, NUMBER, "its size"),
    BW_FIELD(" bytes_used ", device_item, bytes_used, NUMBER, "bytes allocated to chunks"),
    BW_FIELD(BW_LINE "io_align ", device_item, io_align, NUMBER, "unused"),
    BW_FIELD(" io_width ", device_item, io_width, NUMBER, "unused"),
    BW_FIELD(" sector_size ", device_item, sector_size, NUMBER,
             "smallest unit of reading, in bytes"),
    BW_FIELD(" type ", device_item, type, NUMBER, "unused"),
    BW_FIELD(BW_LINE "generation ", device_item, generation, NUMBER, "unused"),
    BW_FIELD(" start_offset ", device_item, start_offset, NUMBER, "unused"),
    BW_FIELD(" dev_group ", device_item, device_group, NUMBER, "unused"),
    BW_FIELD(BW_LINE "seek_speed ", device_item, seek_speed, NUMBER, "unused"),
    BW_FIELD(" bandwidth ", device_item, bandwidth, NUMBER, "unused"),
    BW_FIELD(BW_LINE "uuid ", device_item, uuid, UUID, "uuid of the device"),
    BW_FIELD(BW_LINE "fsid ", device_item, fsid, UUID, "uuid of the file system"),
};
BW_STRUCTURE(device_item, sizeof(struct bw_disk_device_item), "a device of the file system");

static const struct bw_field device_extent_members[] = {
    BW_FIELD(BW_LINE "dev extent chunk_tree ", device_extent, chunk_tree, NUMBER,
             "3, the chunk tree"),
    BW_FIELD(BW_LINE "chunk_objectid ", device_extent, chunk_objectid, NUMBER, "256"),
    BW_FIELD(" chunk_offset ", device_extent, chunk_offset, NUMBER, "logical address of the chunk"),
    BW_FIELD(" length ", device_extent, length, NUMBER, "bytes on the device"),
    BW_FIELD(BW_LINE "chunk_tree_uuid ", device_extent, chunk_tree_uuid, UUID,
             "uuid of the chunk tree"),
};
BW_STRUCTURE(device_extent, sizeof(struct bw_disk_device_extent),
             "a range of a device that belongs to a chunk");

static const struct bw_field raid_stride_members[] = {
    {BW_LEAD("\n\t\t\tstripe "), .kind = BW_KIND_INDEX},
    BW_FIELD(" devid ", raid_stride, devid, NUMBER, "device"),
    BW_FIELD(" physical ", raid_stride, physical, NUMBER, "where the data begin on it, in bytes"),
};
static BW_STRUCTURE(raid_stride, sizeof(struct bw_disk_raid_stride), "a copy or part of the data");

static const struct bw_field raid_stripe_members[] = {{BW_NAME("strides"), .kind = BW_KIND_LIST,
                                                       .structure = &bw_structure_raid_stride,
                                                       .description = "where they lie"}};
BW_STRUCTURE(raid_stripe, 0, "where data lie whose address and length the key tells");

static const struct bw_value_names replace_modes = {
    (const struct bw_value_name[]){{0, "ALWAYS", false}, {1, "AVOID", false}, {0, NULL, false}},
    NULL, "UNKNOWN."};
static const struct bw_value_names replace_states = {
    (const struct bw_value_name[]){{0, "NEVER_STARTED", false},
                                   {1, "STARTED", false},
                                   {2, "FINISHED", false},
                                   {3, "CANCELED", false},
                                   {4, "SUSPENDED", false},
                                   {0, NULL, false}},
    NULL, "UNKNOWN."};

static const struct bw_field device_replace_members[] = {
    BW_FIELD(BW_LINE "src devid ", device_replace, source_devid, SIGNED, "device that is replaced"),
    BW_FIELD(" cursor left ", device_replace, cursor_left, NUMBER, "what was copied begins here"),
    BW_FIELD(" cursor right ", device_replace, cursor_right, NUMBER, "what was copied ends here"),
    BW_WORDED(" mode ", device_replace, reading_mode, NAMED, replace_modes,
              "whether the old device is read"),
    BW_WORDED(BW_LINE "state ", device_replace, state, NAMED, replace_states, "how far it is"),
    BW_FIELD(" write errors ", device_replace, write_errors, NUMBER, "errors so far"),
    BW_FIELD(" uncorrectable read errors ", device_replace, uncorrectable_read_errors, NUMBER,
             "errors so far"),
    BW_FIELD(BW_LINE "start time ", device_replace, time_started, SECONDS, "seconds since 1970"),
    BW_FIELD(BW_LINE "stop time ", device_replace, time_stopped, SECONDS, "seconds since 1970"),
};
BW_STRUCTURE(device_replace, sizeof(struct bw_disk_device_replace),
             "the last replacement of a device, or the one under way");

/* Items that are what their object id says. */

static void write_objectid(struct bw_printer *printer, const struct bw_field *member,
                           const struct bw_part *part)
{
    if (printer->json)
        return;
    bw_print_lead(printer, member);
    bw_print_objectid(printer->text, part->key->objectid, part->key->type);
}

static void write_offset(struct bw_printer *printer, const struct bw_field *member,
                         const struct bw_part *part)
{
    if (printer->json)
        return;
    bw_print_lead(printer, member);
    bw_buffer_format(printer->text, "%llu", (unsigned long long)part->key->offset);
}

static const struct bw_field device_stats_members[] = {
    BW_PLAIN(BW_LINE "device stats"),
    BW_FIELD(BW_LINE "write_errs ", device_stats, write_errors, NUMBER, "failed writes"),
    BW_FIELD(" read_errs ", device_stats, read_errors, NUMBER, "failed reads"),
    BW_FIELD(" flush_errs ", device_stats, flush_errors, NUMBER, "failed flushes"),
    BW_FIELD(" corruption_errs ", device_stats, corruption_errors, NUMBER, "bad checksums"),
    BW_FIELD(" generation ", device_stats, generation_errors, NUMBER,
             "blocks of a wrong generation"),
};
static BW_STRUCTURE(device_stats, sizeof(struct bw_disk_device_stats), "errors of a device");

static const struct bw_field unknown_persistent_members[] = {
    {BW_LEAD(BW_LINE "unknown persistent item objectid "), .kind = BW_KIND_SPECIAL,
     .write = write_objectid}};
static BW_STRUCTURE(unknown_persistent, 0, "an unknown item");

static size_t choose_persistent(const struct bw_part *part)
{
    return part->key->objectid != BW_DEVICE_STATS;
}

static const struct bw_structure *const persistent_items[] = {
    &bw_structure_device_stats, &bw_structure_unknown_persistent, NULL};

static const struct bw_field persistent_members[] = {
    {BW_LEAD(BW_LINE "persistent item objectid "), .kind = BW_KIND_SPECIAL,
     .write = write_objectid},
    {BW_LEAD(" offset "), .kind = BW_KIND_SPECIAL, .write = write_offset},
    {.kind = BW_KIND_CHOICE,
     .structures = persistent_items,
     .choose = choose_persistent,
     .description = "by the object id of the key"},
};
BW_STRUCTURE(persistent, 0, "an item that stays");

#define ARGUMENT(before, member, doc) BW_FIELD(before, balance_args, member, NUMBER, doc)
static const struct bw_field balance_args_members[] = {
    ARGUMENT(BW_LINE "profiles ", profiles, "profiles to balance"),
    ARGUMENT(" devid ", devid, "device to balance"),
    ARGUMENT(" target ", target, "profile to convert to"),
    ARGUMENT(" flags ", flags, "which of the arguments are set"),
    ARGUMENT(BW_LINE "usage_min ", usage_min, "least use, in percent"),
    ARGUMENT(" usage_max ", usage_max, "greatest use, in percent"),
    ARGUMENT(" pstart ", pstart, "start of the range on the device"),
    ARGUMENT(" pend ", pend, "end of that range"),
    ARGUMENT(BW_LINE "vstart ", vstart, "start of the range of addresses"),
    ARGUMENT(" vend ", vend, "end of that range"),
    ARGUMENT(" limit_min ", limit_min, "least number of chunks"),
    ARGUMENT(" limit_max ", limit_max, "greatest number of chunks"),
    ARGUMENT(BW_LINE "stripes_min ", stripes_min, "least number of stripes"),
    ARGUMENT(" stripes_max ", stripes_max, "greatest number of stripes"),
};
static BW_STRUCTURE(balance_args, sizeof(struct bw_disk_balance_args), "arguments of a balance");

#define ARGUMENTS(before, member, doc)                                                            \
    {                                                                                             \
        BW_NAME(#member), BW_LEAD(before), BW_DISK_AT(balance, member),                           \
            .kind = BW_KIND_STRUCT, .structure = &bw_structure_balance_args, .description = (doc) \
    }
static const struct bw_field balance_members[] = {
    BW_FIELD(BW_LINE "balance status flags ", balance, flags, NUMBER, "what is balanced"),
    ARGUMENTS(BW_LINE "DATA", data, "arguments for data"),
    ARGUMENTS(BW_LINE "METADATA", metadata, "arguments for metadata"),
    ARGUMENTS(BW_LINE "SYSTEM", system, "arguments for system chunks"),
};
static BW_STRUCTURE(balance, sizeof(struct bw_disk_balance), "a balance under way");

static const struct bw_field unknown_temporary_members[] = {
    {BW_LEAD(BW_LINE "unknown temporary item objectid "), .kind = BW_KIND_SPECIAL,
     .write = write_objectid}};
static BW_STRUCTURE(unknown_temporary, 0, "an unknown item");

static size_t choose_temporary(const struct bw_part *part)
{
    return part->key->objectid != BW_BALANCE;
}

static const struct bw_structure *const temporary_items[] = {&bw_structure_balance,
                                                             &bw_structure_unknown_temporary, NULL};

static const struct bw_field temporary_members[] = {
    {BW_LEAD(BW_LINE "temporary item objectid "), .kind = BW_KIND_SPECIAL, .write = write_objectid},
    {BW_LEAD(" offset "), .kind = BW_KIND_SPECIAL, .write = write_offset},
    {.kind = BW_KIND_CHOICE,
     .structures = temporary_items,
     .choose = choose_temporary,
     .description = "by the object id of the key"},
};
BW_STRUCTURE(temporary, 0, "an operation that is under way");
