/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of the items about devices (chunks, devices, their extents, statistics) and of the
 * superblock, which contains chunks and a device item.
 */
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "ondisk/tables.h"

static const struct bw_member stripe_members[] = {
    BW_NUMBER(stripe, devid, "device"),
    BW_RANGED(ALIGNED, stripe, offset, "offset of the stripe on the device, in bytes"),
    BW_FIELD_AS("dev_uuid", stripe, device_uuid, BYTES, UUID, "uuid of the device"),
};
static BW_STRUCTURE(stripe, sizeof(struct bw_disk_stripe), "a part of a chunk on one device",
                    "\n\t\t\tstripe {@index} devid {devid} offset {offset}"
                    "\n\t\t\tdev_uuid {dev_uuid}");

static const struct bw_member chunk_members[] = {
    BW_RANGED(ALIGNED, chunk, length, "bytes of logical addresses"),
    BW_NUMBER(chunk, owner, "2, the extent tree"),
    BW_NUMBER(chunk, stripe_length, "bytes of a stripe before the next device follows"),
    BW_NAMED(chunk, type, FLAGS, bw_group_flags, "type and profile"),
    BW_NUMBER(chunk, io_align, "unused"),
    BW_NUMBER(chunk, io_width, "unused"),
    BW_NUMBER(chunk, sector_size, "smallest unit of a read, in bytes"),
    BW_NUMBER(chunk, stripe_count, "number of stripes"),
    BW_NUMBER(chunk, sub_stripes, "copies in RAID10: 2"),
    BW_COUNTED_LIST("stripes", chunk, stripe_count, bw_structure_stripe, "where it lies"),
};
BW_STRUCTURE(chunk, sizeof(struct bw_disk_chunk), "a range of logical addresses, and its stripes",
             "\n\t\tlength {length} owner {owner} stripe_len {stripe_length} type {type}"
             "\n\t\tio_align {io_align} io_width {io_width} sector_size {sector_size}"
             "\n\t\tnum_stripes {stripe_count} sub_stripes {sub_stripes}{stripes}");

static const struct bw_member device_item_members[] = {
    BW_NUMBER(device_item, devid, "id of the device"),
    BW_NUMBER(device_item, total_bytes, "its size"),
    BW_NUMBER(device_item, bytes_used, "bytes allocated to chunks"),
    BW_NUMBER(device_item, io_align, "unused"),
    BW_NUMBER(device_item, io_width, "unused"),
    BW_NUMBER(device_item, sector_size, "smallest unit of a read, in bytes"),
    BW_NUMBER(device_item, type, "unused"),
    BW_GENERATION(device_item, generation, "unused"),
    BW_NUMBER(device_item, start_offset, "unused"),
    BW_NUMBER(device_item, device_group, "unused"),
    BW_NUMBER(device_item, seek_speed, "unused"),
    BW_NUMBER(device_item, bandwidth, "unused"),
    BW_FIELD(device_item, uuid, BYTES, UUID, "uuid of the device"),
    BW_FIELD(device_item, fsid, BYTES, UUID, "uuid of the file system"),
};
BW_STRUCTURE(device_item, sizeof(struct bw_disk_device_item), "a device of the file system",
             "\n\t\tdevid {devid} total_bytes {total_bytes} bytes_used {bytes_used}"
             "\n\t\tio_align {io_align} io_width {io_width} sector_size {sector_size} type {type}"
             "\n\t\tgeneration {generation} start_offset {start_offset} dev_group {device_group}"
             "\n\t\tseek_speed {seek_speed} bandwidth {bandwidth}"
             "\n\t\tuuid {uuid}"
             "\n\t\tfsid {fsid}");

static const struct bw_member device_extent_members[] = {
    BW_NUMBER(device_extent, chunk_tree, "3, the chunk tree"),
    BW_NUMBER(device_extent, chunk_objectid, "256"),
    BW_RANGED(ALIGNED, device_extent, chunk_offset, "logical address of the chunk"),
    BW_RANGED(ALIGNED, device_extent, length, "bytes on the device"),
    BW_FIELD(device_extent, chunk_tree_uuid, BYTES, UUID, "uuid of the chunk tree"),
};
BW_STRUCTURE(device_extent, sizeof(struct bw_disk_device_extent),
             "a range of a device that belongs to a chunk",
             "\n\t\tdev extent chunk_tree {chunk_tree}"
             "\n\t\tchunk_objectid {chunk_objectid} chunk_offset {chunk_offset} length {length}"
             "\n\t\tchunk_tree_uuid {chunk_tree_uuid}");

BW_STATIC_STRUCTURE_OF(raid_stride, sizeof(struct bw_disk_raid_stride),
                       "a copy or part of the data",
                       "\n\t\t\tstripe {@index} devid {devid} physical {physical}",
                       BW_NUMBER(raid_stride, devid, "device"),
                       BW_RANGED(ALIGNED, raid_stride, physical,
                                 "offset of the data on the device, in bytes"));

BW_STRUCTURE_OF(raid_stripe, 0, "location of the data whose address and length are in the key",
                "{strides}", BW_LIST("strides", bw_structure_raid_stride, "locations"));

static const struct bw_value_names replace_modes =
    BW_NAMES(NULL, "UNKNOWN.", {0, "ALWAYS", false}, {1, "AVOID", false});
static const struct bw_value_names replace_states =
    BW_NAMES(NULL, "UNKNOWN.", {0, "NEVER_STARTED", false}, {1, "STARTED", false},
             {2, "FINISHED", false}, {3, "CANCELED", false}, {4, "SUSPENDED", false});

static const struct bw_member device_replace_members[] = {
    BW_FIELD(device_replace, source_devid, I64, NUMBER, "id of the replaced device"),
    BW_NUMBER(device_replace, cursor_left, "start of the copied range"),
    BW_NUMBER(device_replace, cursor_right, "end of the copied range"),
    BW_NAMED(device_replace, reading_mode, WORD, replace_modes, "use of the old device"),
    BW_NAMED(device_replace, state, WORD, replace_states, "progress of the replacement"),
    BW_NUMBER(device_replace, write_errors, "errors so far"),
    BW_NUMBER(device_replace, uncorrectable_read_errors, "errors so far"),
    BW_FIELD(device_replace, time_started, I64, TIME, "start"),
    BW_FIELD(device_replace, time_stopped, I64, TIME, "end"),
};
BW_STRUCTURE(device_replace, sizeof(struct bw_disk_device_replace),
             "the last replacement of a device, or the current one",
             "\n\t\tsrc devid {source_devid} cursor left {cursor_left} cursor right {cursor_right} "
             "mode {reading_mode}"
             "\n\t\tstate {state} write errors {write_errors} uncorrectable read errors "
             "{uncorrectable_read_errors}"
             "\n\t\tstart time {time_started}"
             "\n\t\tstop time {time_stopped}");

/* The object id of some items decides on their structure. */

static const struct bw_member device_stats_members[] = {
    BW_NUMBER(device_stats, write_errors, "failed writes"),
    BW_NUMBER(device_stats, read_errors, "failed reads"),
    BW_NUMBER(device_stats, flush_errors, "failed flushes"),
    BW_NUMBER(device_stats, corruption_errors, "bad checksums"),
    BW_NUMBER(device_stats, generation_errors, "blocks with a wrong generation"),
};
static BW_STRUCTURE(
    device_stats, sizeof(struct bw_disk_device_stats), "errors of a device",
    "\n\t\tdevice stats"
    "\n\t\twrite_errs {write_errors} read_errs {read_errors} flush_errs {flush_errors} "
    "corruption_errs {corruption_errors} generation {generation_errors}");

static BW_EMPTY_STRUCTURE(unknown_persistent, "an unknown item",
                          "\n\t\tunknown persistent item objectid {@objectid}");

static size_t choose_persistent(struct bw_part *part)
{
    return part->key->objectid != BW_DEVICE_STATS;
}

static const struct bw_structure *const persistent_items[] = {
    &bw_structure_device_stats, &bw_structure_unknown_persistent, NULL};

BW_STRUCTURE_OF(persistent, 0, "a persistent item",
                "\n\t\tpersistent item objectid {@objectid} offset {@offset}{...}",
                BW_CHOICE(persistent_items, choose_persistent, "by the object id of the key"));

static const struct bw_member balance_args_members[] = {
    BW_NUMBER(balance_args, profiles, "profiles to balance"),
    BW_NUMBER(balance_args, devid, "device to balance"),
    BW_NUMBER(balance_args, target, "profile to convert to"),
    BW_NUMBER(balance_args, flags, "the set arguments"),
    BW_NUMBER(balance_args, usage_min, "minimum usage, in percent"),
    BW_NUMBER(balance_args, usage_max, "maximum usage, in percent"),
    BW_NUMBER(balance_args, pstart, "start of the range on the device"),
    BW_NUMBER(balance_args, pend, "end of that range"),
    BW_NUMBER(balance_args, vstart, "start of the range of addresses"),
    BW_NUMBER(balance_args, vend, "end of that range"),
    BW_NUMBER(balance_args, limit_min, "minimum number of chunks"),
    BW_NUMBER(balance_args, limit_max, "maximum number of chunks"),
    BW_NUMBER(balance_args, stripes_min, "minimum number of stripes"),
    BW_NUMBER(balance_args, stripes_max, "maximum number of stripes"),
};
static BW_STRUCTURE(balance_args, sizeof(struct bw_disk_balance_args), "arguments of a balance",
                    "\n\t\tprofiles {profiles} devid {devid} target {target} flags {flags}"
                    "\n\t\tusage_min {usage_min} usage_max {usage_max} pstart {pstart} pend {pend}"
                    "\n\t\tvstart {vstart} vend {vend} limit_min {limit_min} limit_max {limit_max}"
                    "\n\t\tstripes_min {stripes_min} stripes_max {stripes_max}");

#define ARGUMENTS(member, doc)                                                          \
    BW_FIELD_AS(#member, balance, member, RECORD, TEXT, doc, .kind = BW_READ_STRUCTURE, \
                .structure = &bw_structure_balance_args)
static const struct bw_member balance_members[] = {
    BW_NUMBER(balance, flags, "what is balanced"),
    ARGUMENTS(data, "arguments for data"),
    ARGUMENTS(metadata, "arguments for metadata"),
    ARGUMENTS(system, "arguments for system chunks"),
};
static BW_STRUCTURE(balance, sizeof(struct bw_disk_balance), "a balance under way",
                    "\n\t\tbalance status flags {flags}"
                    "\n\t\tDATA{data}"
                    "\n\t\tMETADATA{metadata}"
                    "\n\t\tSYSTEM{system}");

static BW_EMPTY_STRUCTURE(unknown_temporary, "an unknown item",
                          "\n\t\tunknown temporary item objectid {@objectid}");

static size_t choose_temporary(struct bw_part *part)
{
    return part->key->objectid != BW_BALANCE;
}

static const struct bw_structure *const temporary_items[] = {&bw_structure_balance,
                                                             &bw_structure_unknown_temporary, NULL};

BW_STRUCTURE_OF(temporary, 0, "an operation in progress",
                "\n\t\ttemporary item objectid {@objectid} offset {@offset}{...}",
                BW_CHOICE(temporary_items, choose_temporary, "by the object id of the key"));

/*
 * A copy of a superblock, with its backup roots and chunks: the record of the command super. The
 * text has the words and the order of `btrfs inspect-internal dump-super`.
 */

static const struct bw_disk_superblock *superblock_of(const struct bw_part *part)
{
    return (const void *)part->start;
}

static void compute_checksum_name(struct bw_part *part, union bw_value *value)
{
    const unsigned type = bw_get16(superblock_of(part)->csum_type);
    if (!bw_checksum_known(type))
        value->text = "INVALID";
    else if (type == BW_CHECKSUM_BLAKE2B)
        value->text = "blake2";
    else
        value->text = bw_checksum_name((enum bw_checksum_type)type);
}

static size_t checksum_size(const struct bw_disk_superblock *super)
{
    unsigned type = bw_get16(super->csum_type);
    return bw_checksum_known(type) ? bw_checksum_size((enum bw_checksum_type)type) : BW_CSUM_SIZE;
}

static void compute_checksum_size(struct bw_part *part, union bw_value *value)
{
    value->number = checksum_size(superblock_of(part));
}

static void compute_checksum(struct bw_part *part, union bw_value *value)
{
    const struct bw_disk_superblock *super = superblock_of(part);
    value->bytes = (struct bw_bytes){(const char *)super->csum, checksum_size(super)};
}

static bool checksum_matches(const struct bw_disk_superblock *super)
{
    unsigned type = bw_get16(super->csum_type);
    return bw_checksum_known(type) &&
           bw_checksum_matches_block((enum bw_checksum_type)type, (const uint8_t *)super,
                                     sizeof *super);
}

static void compute_checksum_matches(struct bw_part *part, union bw_value *value)
{
    value->number = checksum_matches(superblock_of(part));
}

static const char *match_text(bool matches)
{
    return matches ? "match" : "DON'T MATCH";
}

static void compute_checksum_verdict(struct bw_part *part, union bw_value *value)
{
    const struct bw_disk_superblock *super = superblock_of(part);
    value->text = "UNKNOWN CSUM TYPE OR SIZE";
    if (bw_checksum_known(bw_get16(super->csum_type)))
        value->text = match_text(checksum_matches(super));
}

static bool magic_matches(const struct bw_part *part)
{
    return bw_get64(superblock_of(part)->magic) == BW_SUPERBLOCK_MAGIC;
}

static void compute_magic_matches(struct bw_part *part, union bw_value *value)
{
    value->number = magic_matches(part);
}

static void compute_magic_verdict(struct bw_part *part, union bw_value *value)
{
    value->text = match_text(magic_matches(part));
}

/* The UUID in tree blocks. */
static const uint8_t *metadata_uuid(const struct bw_disk_superblock *super)
{
    return bw_get64(super->incompat_flags) & BW_INCOMPAT_METADATA_UUID ? super->metadata_uuid
                                                                       : super->fsid;
}

static void compute_metadata_uuid(struct bw_part *part, union bw_value *value)
{
    value->bytes =
        (struct bw_bytes){(const char *)metadata_uuid(superblock_of(part)), BW_UUID_SIZE};
}

static void compute_device_verdict(struct bw_part *part, union bw_value *value)
{
    const struct bw_disk_superblock *super = superblock_of(part);
    value->text = match_text(memcmp(super->device.fsid, metadata_uuid(super), BW_UUID_SIZE) == 0);
}

static void compute_label(struct bw_part *part, union bw_value *value)
{
    const char *label = superblock_of(part)->label;
    value->bytes = (struct bw_bytes){label, strnlen(label, BW_LABEL_SIZE)};
}

/* The array of chunks: keys, each followed by a chunk. */

BW_STATIC_STRUCTURE_OF(system_chunk, sizeof(struct bw_disk_key), "a chunk of type system",
                       "\n\titem {@index} key {key}{...}",
                       BW_PART("key", KEY, TEXT, "key of the chunk",
                               .size = sizeof(struct bw_disk_key)),
                       BW_PART(NULL, RECORD, TEXT, "the chunk", .kind = BW_READ_NEXT,
                               .structure = &bw_structure_chunk));

static size_t choose_chunk_bytes(struct bw_part *part)
{
    return bw_get32(superblock_of(part)->system_chunk_array_size);
}

#define ROOT_OF(root, doc)                                               \
    BW_RANGED(ALIGNED, backup_root, root, doc),                          \
        BW_GENERATION(backup_root, root##_generation, "its generation"), \
        BW_RANGED(LEVEL, backup_root, root##_level, "its level")
#define ROOT_TEXT(label, root) \
    "\n\t\t" label "{" #root "}\tgen: {" #root "_generation}\tlevel: {" #root "_level}"

static const struct bw_member backup_root_members[] = {
    ROOT_OF(tree_root, "the root tree"),
    ROOT_OF(chunk_root, "the chunk tree"),
    ROOT_OF(extent_root, "the extent tree"),
    ROOT_OF(fs_root, "the top-level subvolume"),
    ROOT_OF(device_root, "the device tree"),
    ROOT_OF(csum_root, "the checksum tree"),
    BW_NUMBER(backup_root, total_bytes, "size"),
    BW_NUMBER(backup_root, bytes_used, "bytes in use"),
    BW_NUMBER(backup_root, device_count, "number of devices"),
};
static BW_STRUCTURE(backup_root, sizeof(struct bw_disk_backup_root), "roots of a transaction",
                    "\n\tbackup {@index}:" ROOT_TEXT("backup_tree_root:\t", tree_root)
                        ROOT_TEXT("backup_chunk_root:\t",
                                  chunk_root) ROOT_TEXT("backup_extent_root:\t", extent_root)
                            ROOT_TEXT("backup_fs_root:\t\t",
                                      fs_root) ROOT_TEXT("backup_dev_root:\t", device_root)
                                ROOT_TEXT("csum_root:\t",
                                          csum_root) "\n\t\tbackup_total_bytes:\t{total_bytes}"
                                                     "\n\t\tbackup_bytes_used:\t{bytes_used}"
                                                     "\n\t\tbackup_num_devices:\t{device_count}\n");

/* A member that is not part of the superblock. */
#define COPY(member, type_, format_, doc)                                                          \
    {                                                                                              \
        .name = #member, .type = BW_TYPE_##type_, .format = BW_FORMAT_##format_,                   \
        .offset = offsetof(struct bw_superblock_copy, member), .stability = BW_STABILITY_EVOLVING, \
        .documentation = (doc)                                                                     \
    }
#define NUMBER(member, doc)       BW_NUMBER(superblock, member, doc)
#define DEVICE(name, member, doc) BW_FIELD_AS(name, superblock, device.member, U64, NUMBER, doc)

static const struct bw_member superblockinfo_members[] = {
    COPY(device, TEXT, NAME, "image that contains the copy"),
    COPY(copy, U64, NUMBER, "number of the copy: 0, 1 or 2"),
    COPY(offset, U64, NUMBER, "offset on the device"),
    COPY(message, TEXT, NAME, "why the copy is invalid; absent if it is valid"),
    NUMBER(csum_type, "type of the checksums"),
    BW_COMPUTED("csum_name", TEXT, TEXT, compute_checksum_name, "name of that type"),
    BW_LAZY("csum_size", U64, NUMBER, compute_checksum_size, "bytes of the checksum"),
    BW_COMPUTED("csum", BYTES, HEX, compute_checksum, "checksum of the bytes that follow"),
    BW_COMPUTED("csum_matches", U64, BOOL, compute_checksum_matches, "whether it is correct"),
    BW_LAZY("csum_verdict", TEXT, TEXT, compute_checksum_verdict,
            "match, DON'T MATCH, or UNKNOWN CSUM TYPE OR SIZE"),
    NUMBER(bytenr, "offset that the copy itself records"),
    BW_NAMED(superblock, flags, FLAGS, bw_super_flags, "state of the file system"),
    BW_FIELD(superblock, magic, BYTES, NAME, "magic number of a superblock"),
    BW_COMPUTED("magic_matches", U64, BOOL, compute_magic_matches, "whether it is correct"),
    BW_LAZY("magic_verdict", TEXT, TEXT, compute_magic_verdict, "match, or DON'T MATCH"),
    BW_FIELD(superblock, fsid, BYTES, UUID, "id of the file system"),
    BW_COMPUTED("metadata_uuid", BYTES, UUID, compute_metadata_uuid, "UUID in its tree blocks"),
    BW_COMPUTED("label", BYTES, NAME, compute_label, "label of the file system"),
    BW_GENERATION(superblock, generation, "transaction that wrote it"),
    BW_RANGED(ALIGNED, superblock, root, "logical address of the root tree"),
    NUMBER(system_chunk_array_size, "bytes of the array of chunks"),
    BW_GENERATION(superblock, chunk_root_generation, "generation of the chunk tree"),
    BW_RANGED(LEVEL, superblock, root_level, "level of the root tree"),
    BW_RANGED(ALIGNED, superblock, chunk_root, "logical address of the chunk tree"),
    BW_RANGED(LEVEL, superblock, chunk_root_level, "level of the chunk tree"),
    BW_RANGED(ALIGNED, superblock, log_root, "logical address of the log tree; 0: none"),
    NUMBER(log_root_transid, "unused"),
    BW_RANGED(LEVEL, superblock, log_root_level, "level of the log tree"),
    BW_FIELD(superblock, total_bytes, U64, SIZE, "size of the file system"),
    BW_FIELD(superblock, bytes_used, U64, SIZE, "bytes in use"),
    NUMBER(sectorsize, "size of a sector in bytes"),
    NUMBER(nodesize, "size of a tree block in bytes"),
    NUMBER(leafsize, "the same as nodesize"),
    NUMBER(stripesize, "unused"),
    NUMBER(root_dir_objectid, "directory in the root tree"),
    NUMBER(device_count, "number of devices"),
    BW_NAMED(superblock, compat_flags, FLAGS, bw_compat_flags, "compatible features"),
    BW_NAMED(superblock, compat_ro_flags, FLAGS, bw_compat_ro_flags,
             "features that a writer must support"),
    BW_NAMED(superblock, incompat_flags, FLAGS, bw_incompat_flags,
             "features that a reader must support"),
    BW_GENERATION(superblock, cache_generation, "generation of the space cache"),
    BW_GENERATION(superblock, uuid_tree_generation, "generation of the uuid tree"),
    BW_FIELD_AS("device_uuid", superblock, device.uuid, BYTES, UUID, "UUID of the device"),
    BW_FIELD_AS("device_fsid", superblock, device.fsid, BYTES, UUID,
                "id of the device's file system"),
    BW_LAZY("device_verdict", TEXT, TEXT, compute_device_verdict,
            "match, or DON'T MATCH: device_fsid and metadata_uuid"),
    DEVICE("device_type", type, "unused"),
    BW_FIELD_AS("device_total_bytes", superblock, device.total_bytes, U64, SIZE,
                "size of the device"),
    BW_FIELD_AS("device_bytes_used", superblock, device.bytes_used, U64, SIZE,
                "bytes allocated to chunks"),
    DEVICE("device_io_align", io_align, "unused"),
    DEVICE("device_io_width", io_width, "unused"),
    DEVICE("device_sector_size", sector_size, "size of a sector in bytes"),
    DEVICE("devid", devid, "number of the device"),
    DEVICE("device_group", device_group, "unused"),
    DEVICE("device_seek_speed", seek_speed, "unused"),
    DEVICE("device_bandwidth", bandwidth, "unused"),
    BW_FIELD_AS("device_generation", superblock, device.generation, U64, NUMBER, "unused",
                .range = BW_RANGE_GENERATION),
    BW_FIELD_AS("sys_chunk_array", superblock, system_chunk_array, RECORDS, TEXT,
                "chunks of type system", .kind = BW_READ_RANGE,
                .structure = &bw_structure_system_chunk, .choose = choose_chunk_bytes),
    BW_FIELD_AS("backup_roots", superblock, backup_roots, RECORDS, TEXT,
                "roots of the last transactions", .kind = BW_READ_RANGE,
                .structure = &bw_structure_backup_root),
};
BW_STRUCTURE(superblockinfo, sizeof(struct bw_disk_superblock), "a copy of a superblock",
             "\ncsum_type\t\t{csum_type} ({csum_name})"
             "\ncsum_size\t\t{csum_size}"
             "\ncsum\t\t\t0x{csum} [{csum_verdict}]"
             "\nbytenr\t\t\t{bytenr}"
             "\nflags\t\t\t{flags:lines}"
             "\nmagic\t\t\t{magic:ascii} [{magic_verdict}]"
             "\nfsid\t\t\t{fsid}"
             "\nmetadata_uuid\t\t{metadata_uuid}"
             "\nlabel\t\t\t{label}"
             "\ngeneration\t\t{generation}"
             "\nroot\t\t\t{root}"
             "\nsys_array_size\t\t{system_chunk_array_size}"
             "\nchunk_root_generation\t{chunk_root_generation}"
             "\nroot_level\t\t{root_level}"
             "\nchunk_root\t\t{chunk_root}"
             "\nchunk_root_level\t{chunk_root_level}"
             "\nlog_root\t\t{log_root}"
             "\nlog_root_transid (deprecated)\t{log_root_transid}"
             "\nlog_root_level\t\t{log_root_level}"
             "\ntotal_bytes\t\t{total_bytes}"
             "\nbytes_used\t\t{bytes_used}"
             "\nsectorsize\t\t{sectorsize}"
             "\nnodesize\t\t{nodesize}"
             "\nleafsize (deprecated)\t{leafsize}"
             "\nstripesize\t\t{stripesize}"
             "\nroot_dir\t\t{root_dir_objectid}"
             "\nnum_devices\t\t{device_count}"
             "\ncompat_flags\t\t{compat_flags:lines}"
             "\ncompat_ro_flags\t\t{compat_ro_flags:lines}"
             "\nincompat_flags\t\t{incompat_flags:lines}"
             "\ncache_generation\t{cache_generation}"
             "\nuuid_tree_generation\t{uuid_tree_generation}"
             "\ndev_item.uuid\t\t{device_uuid}"
             "\ndev_item.fsid\t\t{device_fsid} [{device_verdict}]"
             "\ndev_item.type\t\t{device_type}"
             "\ndev_item.total_bytes\t{device_total_bytes}"
             "\ndev_item.bytes_used\t{device_bytes_used}"
             "\ndev_item.io_align\t{device_io_align}"
             "\ndev_item.io_width\t{device_io_width}"
             "\ndev_item.sector_size\t{device_sector_size}"
             "\ndev_item.devid\t\t{devid}"
             "\ndev_item.dev_group\t{device_group}"
             "\ndev_item.seek_speed\t{device_seek_speed}"
             "\ndev_item.bandwidth\t{device_bandwidth}"
             "\ndev_item.generation\t{device_generation}"
             "\nsys_chunk_array[2048]:{sys_chunk_array}"
             "\nbackup_roots[4]:{backup_roots}");

struct bw_error *bw_superblock_check(const uint8_t bytes[BW_SUPERBLOCK_BYTES], unsigned copy)
{
    struct bw_superblock superblock;
    return bw_superblock_decode(bytes, bw_superblock_offset(copy), &superblock);
}
