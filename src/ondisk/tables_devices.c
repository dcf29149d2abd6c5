/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of the items about devices (chunks, devices, their extents, statistics) and of the
 * superblock, which contains chunks and a device item.
 */
#include <ctype.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "btrfs-walk/fs.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
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
    BW_FIELD(" cursor left ", device_replace, cursor_left, NUMBER, "start of the copied range"),
    BW_FIELD(" cursor right ", device_replace, cursor_right, NUMBER, "end of the copied range"),
    BW_WORDED(" mode ", device_replace, reading_mode, NAMED, replace_modes,
              "whether the old device is read"),
    BW_WORDED(BW_LINE "state ", device_replace, state, NAMED, replace_states,
              "progress of the replacement"),
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

/* The structure of a superblock, with its backup roots and chunks, in the words and the order of
 * `btrfs inspect-internal dump-super`. */

#define SUPER(part) ((const struct bw_disk_superblock *)(const void *)(part)->start)
/** A member of which a function writes the value. */
#define WRITTEN(before, function, doc)                                                      \
    {                                                                                       \
        BW_LEAD(before), .kind = BW_KIND_SPECIAL, .write = (function), .description = (doc) \
    }

static void write_checksum_type(struct bw_printer *printer, const struct bw_field *member,
                                const struct bw_part *part)
{
    unsigned type = bw_get16(SUPER(part)->csum_type);
    const char *name = !bw_checksum_known(type) ? "INVALID"
                       : type == BW_CHECKSUM_BLAKE2B
                           ? "blake2"
                           : bw_checksum_name((enum bw_checksum_type)type);
    if (printer->json) {
        bw_json_number(printer->json, "csum_type", type);
        bw_json_text(printer->json, "csum_name", name);
        return;
    }
    bw_print_lead(printer, member);
    bw_buffer_format(printer->text, "%u (%s)", type, name);
}

static size_t checksum_size(const struct bw_disk_superblock *super)
{
    unsigned type = bw_get16(super->csum_type);
    return bw_checksum_known(type) ? bw_checksum_size((enum bw_checksum_type)type) : BW_CSUM_SIZE;
}

static const char *checksum_verdict(const struct bw_disk_superblock *super)
{
    unsigned type = bw_get16(super->csum_type);
    if (!bw_checksum_known(type))
        return "UNKNOWN CSUM TYPE OR SIZE";
    return bw_checksum_matches_block((enum bw_checksum_type)type, (const uint8_t *)super,
                                     sizeof *super)
               ? "match"
               : "DON'T MATCH";
}

static void write_checksum(struct bw_printer *printer, const struct bw_field *member,
                           const struct bw_part *part)
{
    const struct bw_disk_superblock *super = SUPER(part);
    const char *verdict = checksum_verdict(super);
    size_t size = checksum_size(super);
    if (printer->json) {
        bw_json_hex(printer->json, "csum", super->csum, size);
        bw_json_bool(printer->json, "csum_matches", strcmp(verdict, "match") == 0);
        return;
    }
    bw_buffer_format(printer->text, "\ncsum_size\t\t%zu", size);
    bw_print_lead(printer, member);
    for (size_t i = 0; i < size; i++)
        bw_buffer_format(printer->text, "%02x", super->csum[i]);
    bw_buffer_format(printer->text, " [%s]", verdict);
}

static void write_magic(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    const struct bw_disk_superblock *super = SUPER(part);
    const char *bytes = (const char *)&super->magic;
    bool matches = bw_get64(super->magic) == BW_SUPERBLOCK_MAGIC;
    if (printer->json) {
        bw_json_bytes(printer->json, "magic", bytes, sizeof super->magic);
        bw_json_bool(printer->json, "magic_matches", matches);
        return;
    }
    bw_print_lead(printer, member);
    for (size_t i = 0; i < sizeof super->magic; i++)
        bw_buffer_append_byte(printer->text, bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '.');
    bw_buffer_format(printer->text, " [%s]", matches ? "match" : "DON'T MATCH");
}

static void write_label(struct bw_printer *printer, const struct bw_field *member,
                        const struct bw_part *part)
{
    const char *label = SUPER(part)->label;
    size_t length = strnlen(label, BW_LABEL_SIZE);
    if (printer->json) {
        bw_json_bytes(printer->json, "label", label, length);
        return;
    }
    bw_print_lead(printer, member);
    bw_escape_line(printer->text, label, length);
}

/* The UUID in tree blocks. */
static const uint8_t *metadata_uuid(const struct bw_disk_superblock *super)
{
    return bw_get64(super->incompat_flags) & BW_INCOMPAT_METADATA_UUID ? super->metadata_uuid
                                                                       : super->fsid;
}

static void write_metadata_uuid(struct bw_printer *printer, const struct bw_field *member,
                                const struct bw_part *part)
{
    struct bw_field uuid = *member;
    const uint8_t *bytes = metadata_uuid(SUPER(part));
    uuid.kind = BW_KIND_UUID;
    (printer->json ? bw_field_json : bw_field_text)(printer, &uuid, bytes);
}

static void write_verdict(struct bw_printer *printer, const struct bw_field *member,
                          const struct bw_part *part)
{
    const struct bw_disk_superblock *super = SUPER(part);
    bool matches = memcmp(super->device.fsid, metadata_uuid(super), BW_UUID_SIZE) == 0;
    (void)member;
    if (!printer->json)
        bw_buffer_format(printer->text, " [%s]", matches ? "match" : "DON'T MATCH");
}

/* Flags by name, in capitals with underscores. */

static void append_name(struct bw_buffer *text, const char *name)
{
    for (; *name; name++)
        bw_buffer_append_byte(text, *name == '-' ? '_' : (char)toupper((unsigned char)*name));
}

static void json_flags(struct bw_json *json, const char *name, uint64_t flags,
                       const char *(*name_of)(unsigned))
{
    char word[48];
    bw_json_begin_array(json, name);
    for (unsigned bit = 0; bit < 64; bit++) {
        struct bw_buffer text = {.data = word, .capacity = sizeof word, .fixed = true};
        if (!(flags >> bit & 1))
            continue;
        if (name_of(bit))
            append_name(&text, name_of(bit));
        else
            bw_buffer_format(&text, "0x%" PRIx64, UINT64_C(1) << bit);
        bw_json_bytes(json, NULL, word, text.length);
    }
    bw_json_end(json);
}

static void write_flags(struct bw_printer *printer, const struct bw_field *member, const char *name,
                        uint64_t flags, const char *(*name_of)(unsigned))
{
    struct bw_buffer *text = printer->text;
    const char *before = "\n\t\t\t( ";
    uint64_t unknown = 0;
    if (printer->json) {
        json_flags(printer->json, name, flags, name_of);
        return;
    }
    bw_print_lead(printer, member);
    bw_buffer_format(text, "0x%" PRIx64, flags);
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(flags >> bit & 1))
            continue;
        if (!name_of(bit)) {
            unknown |= UINT64_C(1) << bit;
            continue;
        }
        bw_buffer_format(text, "%s", before);
        append_name(text, name_of(bit));
        before = " |\n\t\t\t  ";
    }
    if (unknown)
        bw_buffer_format(text, "%sunknown flag: 0x%" PRIx64, before, unknown);
    if (flags)
        bw_buffer_format(text, " )");
}

static const char *no_name(unsigned bit)
{
    (void)bit;
    return NULL;
}

#define FLAG_WRITER(function, member_name, names)                                                \
    static void function(struct bw_printer *printer, const struct bw_field *member,              \
                         const struct bw_part *part)                                             \
    {                                                                                            \
        write_flags(printer, member, #member_name, bw_get64(SUPER(part)->member_name), (names)); \
    }
FLAG_WRITER(write_super_flags, flags, bw_super_flag_name)
FLAG_WRITER(write_compat, compat_flags, no_name)
FLAG_WRITER(write_compat_ro, compat_ro_flags, bw_compat_ro_name)
FLAG_WRITER(write_incompat, incompat_flags, bw_incompat_name)

/* The array of chunks: keys, each with a chunk. */

static void write_chunk_key(struct bw_json *json, const struct bw_key *key)
{
    static const char lead[BW_JSON_LEAD_ROOM] = ",\"key\":";
    char *at = bw_json_member(json, lead, strlen(lead), BW_KEY_ROOM);
    if (at)
        bw_json_member_end(json, bw_json_key(at, key));
}

static void write_chunk(struct bw_printer *printer, const struct bw_key *key, uint32_t number,
                        struct bw_cursor *cursor)
{
    if (printer->json) {
        bw_json_begin_object(printer->json, NULL);
        write_chunk_key(printer->json, key);
    } else {
        bw_buffer_format(printer->text, "\n\titem %" PRIu32 " ", number);
        bw_print_key(printer->text, key);
    }
    bw_structure_print(printer, &bw_structure_chunk, key, cursor);
    if (printer->json)
        bw_json_end(printer->json);
}

static void write_chunks(struct bw_printer *printer, const struct bw_field *member,
                         const struct bw_part *part)
{
    const struct bw_disk_superblock *super = SUPER(part);
    uint32_t size = bw_get32(super->system_chunk_array_size);
    const uint8_t *chunks = super->system_chunk_array;
    struct bw_cursor cursor = {
        .next = chunks,
        .end = chunks + (size < BW_SYSTEM_CHUNK_ARRAY_SIZE ? size : BW_SYSTEM_CHUNK_ARRAY_SIZE)};
    if (printer->json)
        bw_json_begin_array(printer->json, "sys_chunk_array");
    else
        bw_print_lead(printer, member);
    for (uint32_t number = 0; !cursor.bad && cursor.next < cursor.end; number++) {
        const struct bw_disk_key *disk = (const void *)bw_cursor_take(&cursor, sizeof *disk);
        if (!disk)
            break;
        const struct bw_key key = bw_key_decode(disk);
        write_chunk(printer, &key, number, &cursor);
    }
    printer->cut_off |= cursor.bad;
    if (printer->json)
        bw_json_end(printer->json);
}

#define ROOT_OF(before, root, doc)                                                     \
    BW_FIELD(before, backup_root, root, NUMBER, doc),                                  \
        BW_FIELD("\tgen: ", backup_root, root##_generation, NUMBER, "its generation"), \
        BW_FIELD("\tlevel: ", backup_root, root##_level, NUMBER, "its level")

static const struct bw_field backup_root_members[] = {
    ROOT_OF("\n\t\tbackup_tree_root:\t", tree_root, "the root tree"),
    ROOT_OF("\n\t\tbackup_chunk_root:\t", chunk_root, "the chunk tree"),
    ROOT_OF("\n\t\tbackup_extent_root:\t", extent_root, "the extent tree"),
    ROOT_OF("\n\t\tbackup_fs_root:\t\t", fs_root, "the top-level subvolume"),
    ROOT_OF("\n\t\tbackup_dev_root:\t", device_root, "the device tree"),
    ROOT_OF("\n\t\tcsum_root:\t", csum_root, "the checksum tree"),
    BW_FIELD("\n\t\tbackup_total_bytes:\t", backup_root, total_bytes, NUMBER, "size"),
    BW_FIELD("\n\t\tbackup_bytes_used:\t", backup_root, bytes_used, NUMBER, "bytes in use"),
    BW_FIELD("\n\t\tbackup_num_devices:\t", backup_root, device_count, NUMBER, "devices"),
    BW_PLAIN("\n"),
};
static BW_STRUCTURE(backup_root, sizeof(struct bw_disk_backup_root), "roots of a transaction");

static void write_backups(struct bw_printer *printer, const struct bw_field *member,
                          const struct bw_part *part)
{
    const struct bw_disk_superblock *super = SUPER(part);
    if (printer->json)
        bw_json_begin_array(printer->json, "backup_roots");
    else
        bw_print_lead(printer, member);
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const uint8_t *bytes = (const uint8_t *)&super->backup_roots[i];
        struct bw_cursor cursor = {.next = bytes, .end = bytes + sizeof super->backup_roots[i]};
        if (printer->json)
            bw_json_begin_object(printer->json, NULL);
        else
            bw_buffer_format(printer->text, "\n\tbackup %u:", i);
        bw_structure_print(printer, &bw_structure_backup_root, NULL, &cursor);
        if (printer->json)
            bw_json_end(printer->json);
    }
    if (printer->json)
        bw_json_end(printer->json);
}

#define NUMBER(label, member, doc) BW_FIELD("\n" label, superblock, member, NUMBER, doc)
#define DEVICE(label, member, doc) \
    BW_FIELD("\ndev_item." label, superblock, device.member, NUMBER, doc)

static const struct bw_field superblock_members[] = {
    WRITTEN("\ncsum_type\t\t", write_checksum_type, "kind of checksums"),
    WRITTEN("\ncsum\t\t\t0x", write_checksum, "checksum of the bytes that follow"),
    NUMBER("bytenr\t\t\t", bytenr, "offset of this copy"),
    WRITTEN("\nflags\t\t\t", write_super_flags, "state"),
    WRITTEN("\nmagic\t\t\t", write_magic, "magic number of a superblock"),
    BW_FIELD("\nfsid\t\t\t", superblock, fsid, UUID, "uuid of the file system"),
    {BW_NAME("metadata_uuid"), BW_LEAD("\nmetadata_uuid\t\t"), .size = BW_UUID_SIZE,
     .kind = BW_KIND_SPECIAL, .write = write_metadata_uuid,
     .description = "uuid that tree blocks carry"},
    WRITTEN("\nlabel\t\t\t", write_label, "label"),
    NUMBER("generation\t\t", generation, "transaction that wrote it"),
    NUMBER("root\t\t\t", root, "address of the root tree"),
    NUMBER("sys_array_size\t\t", system_chunk_array_size, "bytes of the array of chunks"),
    NUMBER("chunk_root_generation\t", chunk_root_generation, "generation of the chunk tree"),
    NUMBER("root_level\t\t", root_level, "level of the root tree"),
    NUMBER("chunk_root\t\t", chunk_root, "address of the chunk tree"),
    NUMBER("chunk_root_level\t", chunk_root_level, "its level"),
    NUMBER("log_root\t\t", log_root, "address of the log tree; 0: none"),
    NUMBER("log_root_transid (deprecated)\t", log_root_transid, "unused"),
    NUMBER("log_root_level\t\t", log_root_level, "level of the log tree"),
    NUMBER("total_bytes\t\t", total_bytes, "size of the file system"),
    NUMBER("bytes_used\t\t", bytes_used, "bytes in use"),
    NUMBER("sectorsize\t\t", sectorsize, "bytes of a sector"),
    NUMBER("nodesize\t\t", nodesize, "bytes of a tree block"),
    NUMBER("leafsize (deprecated)\t", leafsize, "as nodesize"),
    NUMBER("stripesize\t\t", stripesize, "unused"),
    NUMBER("root_dir\t\t", root_dir_objectid, "directory in the root tree"),
    NUMBER("num_devices\t\t", device_count, "how many devices there are"),
    WRITTEN("\ncompat_flags\t\t", write_compat, "features"),
    WRITTEN("\ncompat_ro_flags\t\t", write_compat_ro, "features that a writer must know"),
    WRITTEN("\nincompat_flags\t\t", write_incompat, "features that a reader must know"),
    NUMBER("cache_generation\t", cache_generation, "of the space cache"),
    NUMBER("uuid_tree_generation\t", uuid_tree_generation, "of the uuid tree"),
    BW_FIELD("\ndev_item.uuid\t\t", superblock, device.uuid, UUID, "uuid of the device"),
    BW_FIELD("\ndev_item.fsid\t\t", superblock, device.fsid, UUID, "file system of the device"),
    WRITTEN("", write_verdict, NULL),
    DEVICE("type\t\t", type, "unused"),
    DEVICE("total_bytes\t", total_bytes, "size of the device"),
    DEVICE("bytes_used\t", bytes_used, "bytes allocated to chunks"),
    DEVICE("io_align\t", io_align, "unused"),
    DEVICE("io_width\t", io_width, "unused"),
    DEVICE("sector_size\t", sector_size, "bytes of a sector"),
    DEVICE("devid\t\t", devid, "id of the device"),
    DEVICE("dev_group\t", device_group, "unused"),
    DEVICE("seek_speed\t", seek_speed, "unused"),
    DEVICE("bandwidth\t", bandwidth, "unused"),
    DEVICE("generation\t", generation, "unused"),
    WRITTEN("\nsys_chunk_array[2048]:", write_chunks, "chunks of type system"),
    WRITTEN("\nbackup_roots[4]:", write_backups, "roots of the last transactions"),
};
BW_STRUCTURE(superblock, sizeof(struct bw_disk_superblock), "a superblock");

/* Superblocks as bytes: printed and checked. */

struct bw_error *bw_superblock_print(const uint8_t bytes[BW_SUPERBLOCK_BYTES], struct bw_json *json,
                                     bw_consumer *consume, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_printer printer = {.text = json ? json->buffer : &text, .json = json};
    struct bw_cursor cursor = {.next = bytes, .end = bytes + BW_SUPERBLOCK_BYTES};
    bw_structure_print(&printer, &bw_structure_superblock, NULL, &cursor);
    if (json)
        return NULL;
    return text.failed ? bw_error_no_memory() : consume(context, text.data, text.length);
}

struct bw_error *bw_superblock_check(const uint8_t bytes[BW_SUPERBLOCK_BYTES], unsigned copy)
{
    struct bw_superblock superblock;
    return bw_superblock_decode(bytes, bw_superblock_offset(copy), &superblock);
}
