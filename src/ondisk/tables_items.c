/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of the items of trees, subvolumes and space: roots, uuids, quotas; inodes, names,
 * file extents, checksums; extents, block groups, free space.
 */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

const struct bw_value_names bw_root_flags = BW_NAMES(
    "none", "", {BW_ROOT_READ_ONLY, "RDONLY", false}, {UINT64_C(1) << 32, "SYNOLOGY_HIDE", false},
    {UINT64_C(1) << 33, "SYNOLOGY_NO_USER_QUOTA", false},
    {UINT64_C(1) << 34, "SYNOLOGY_COMPRESSION_RATIO", false},
    {UINT64_C(1) << 35, "SYNOLOGY_NO_QUOTA", false}, {BW_ROOT_DEAD, "DEAD", false});

static const struct bw_member root_item_v2_members[] = {
    BW_FIELD(root_item, uuid, BYTES, UUID, "uuid of the subvolume"),
    BW_FIELD(root_item, parent_uuid, BYTES, UUID,
             "uuid of the subvolume that this is a snapshot of"),
    BW_FIELD(root_item, received_uuid, BYTES, UUID, "uuid of the subvolume at the sender"),
    BW_GENERATION(root_item, change_transid, "transaction of the last change"),
    BW_GENERATION(root_item, origin_transid, "transaction of the creation"),
    BW_NUMBER(root_item, send_transid, "transaction of the subvolume at the sender"),
    BW_GENERATION(root_item, receive_transid, "transaction of receiving"),
    BW_FIELD(root_item, ctime, I64, TIME, "last change"),
    BW_FIELD(root_item, otime, I64, TIME, "time of creation"),
    BW_FIELD(root_item, stime, I64, TIME, "time of sending"),
    BW_FIELD(root_item, rtime, I64, TIME, "time of receiving"),
};
static BW_STRUCTURE(root_item_v2, sizeof(struct bw_disk_root_item), "since 2012",
                    "\n\t\tuuid {uuid}"
                    "\n\t\tparent_uuid {parent_uuid}"
                    "\n\t\treceived_uuid {received_uuid}"
                    "\n\t\tctransid {change_transid} otransid {origin_transid} stransid "
                    "{send_transid} rtransid {receive_transid}"
                    "\n\t\tctime {ctime}"
                    "\n\t\totime {otime}"
                    "\n\t\tstime {stime}"
                    "\n\t\trtime {rtime}");

/* Old versions of the kernel leave the rest alone when they write the item; it is out of date
 * then. */
static size_t choose_root(struct bw_part *part)
{
    const struct bw_disk_root_item *root = (const void *)part->start;
    return memcmp(&root->generation, &root->generation_v2, sizeof root->generation) != 0;
}

static const struct bw_structure *const roots[] = {&bw_structure_root_item_v2, NULL};

static const struct bw_member root_item_members[] = {
    BW_GENERATION(root_item, generation, "transaction that wrote the root block"),
    BW_NUMBER(root_item, root_directory, "inode of the top directory"),
    BW_RANGED(ALIGNED, root_item, bytenr, "logical address of the root block"),
    BW_NUMBER(root_item, byte_limit, "unused"),
    BW_NUMBER(root_item, bytes_used, "bytes of tree blocks"),
    BW_GENERATION(root_item, last_snapshot, "transaction of the last snapshot"),
    BW_NAMED(root_item, flags, FLAGS, bw_root_flags, "flags"),
    BW_NUMBER(root_item, reference_count, "0 if it is being deleted"),
    BW_FIELD(root_item, drop_progress, KEY, TEXT, "key that the deletion has reached"),
    BW_RANGED(LEVEL, root_item, drop_level, "level that the deletion has reached"),
    BW_RANGED(LEVEL, root_item, level, "level of the root block"),
    BW_GENERATION(root_item, generation_v2,
                  "the generation again, if the following members are valid"),
    BW_CHOICE(roots, choose_root, "if both generations are the same"),
};
BW_STRUCTURE_FROM(root_item, offsetof(struct bw_disk_root_item, generation_v2),
                  sizeof(struct bw_disk_root_item), "the root of a tree",
                  "\n\t\tgeneration {generation} root_dirid {root_directory} bytenr {bytenr} "
                  "byte_limit {byte_limit} bytes_used {bytes_used}"
                  "\n\t\tlast_snapshot {last_snapshot} flags {flags:hex}({flags}) refs "
                  "{reference_count}"
                  "\n\t\tdrop_progress key {drop_progress} drop_level {drop_level}"
                  "\n\t\tlevel {level} generation_v2 {generation_v2}{...}");

/* Both directions of a reference are alike. */
static const struct bw_member root_ref_members[] = {
    BW_NUMBER(root_ref, directory, "directory that contains the subvolume"),
    BW_NUMBER(root_ref, sequence, "index in that directory"),
    BW_NAME(root_ref, "name in that directory"),
};
#define ROOT_REF_TEXT(word) \
    "\n\t\troot " word " key dirid {directory} sequence {sequence} name {name}"
BW_STRUCTURE(root_ref, sizeof(struct bw_disk_root_ref), "a subvolume in another one",
             ROOT_REF_TEXT("ref"));

#define root_backref_members root_ref_members
BW_STRUCTURE(root_backref, sizeof(struct bw_disk_root_ref), "a subvolume that contains another one",
             ROOT_REF_TEXT("backref"));

BW_EMPTY_STRUCTURE(orphan, "an inode or subvolume that is being deleted: the offset of the key",
                   "\n\t\torphan item");

BW_STATIC_STRUCTURE_OF(uuid_entry, sizeof(struct bw_disk_uuid_entry), "a subvolume",
                       "\n\t\tsubvol_id {subvolume}",
                       BW_NUMBER(uuid_entry, subvolume, "id of the subvolume"));

BW_STRUCTURE_OF(uuid, 0, "the subvolumes with the uuid in the key", "{subvolumes}",
                BW_LIST("subvolumes", bw_structure_uuid_entry, "their ids"));

BW_STRUCTURE_OF(string, 0, "a text, for tests", "\n\t\titem data {data}",
                BW_REST("data", "the bytes of the item"));

/* Quotas. */

const struct bw_value_names bw_qgroup_limit_flags = BW_NAMES(
    NULL, "", {1 << 0, "MAX_RFER", false}, {1 << 1, "MAX_EXCL", false}, {1 << 2, "RSV_RFER", false},
    {1 << 3, "RSV_EXCL", false}, {1 << 4, "RFER_CMPR", false}, {1 << 5, "EXCL_CMPR", false});

const struct bw_value_names bw_qgroup_flags =
    BW_NAMES(NULL, "", {1 << 0, "ON", false}, {1 << 0, "OFF", true}, {1 << 1, "SCANNING", false},
             {1 << 2, "INCONSISTENT", false}, {BW_QGROUP_SIMPLE_MODE, "SIMPLE_MODE", false});

BW_STATIC_STRUCTURE_OF(simple_quota, sizeof(struct bw_disk_qgroup_status), "simple quotas",
                       " enable_gen {enable_generation}",
                       BW_GENERATION(qgroup_status, enable_generation,
                                     "transaction since which extents are counted"));

static const struct bw_structure *const qgroup_states[] = {&bw_structure_simple_quota, NULL};

static size_t choose_qgroup_state(struct bw_part *part)
{
    const struct bw_disk_qgroup_status *status = (const void *)part->start;
    return !(bw_get64(status->flags) & BW_QGROUP_SIMPLE_MODE);
}

static const struct bw_member qgroup_status_members[] = {
    BW_NUMBER(qgroup_status, version, "version of the format: 1"),
    BW_GENERATION(qgroup_status, generation, "transaction of the numbers"),
    BW_NAMED(qgroup_status, flags, FLAGS, bw_qgroup_flags, "state of the quotas"),
    BW_NUMBER(qgroup_status, rescan, "address that a rescan has reached"),
    BW_CHOICE(qgroup_states, choose_qgroup_state, "if quotas are simple"),
};
BW_STRUCTURE_FROM(qgroup_status, offsetof(struct bw_disk_qgroup_status, enable_generation),
                  sizeof(struct bw_disk_qgroup_status), "state of the quotas",
                  "\n\t\tversion {version} generation {generation} flags {flags} scan {rescan}"
                  "{...}");

static const struct bw_member qgroup_info_members[] = {
    BW_GENERATION(qgroup_info, generation, "transaction of the numbers"),
    BW_NUMBER(qgroup_info, referenced, "bytes in use"),
    BW_NUMBER(qgroup_info, referenced_compressed, "the same number"),
    BW_NUMBER(qgroup_info, exclusive, "bytes that no other subvolume uses"),
    BW_NUMBER(qgroup_info, exclusive_compressed, "the same number"),
};
BW_STRUCTURE(qgroup_info, sizeof(struct bw_disk_qgroup_info), "use of space by a qgroup",
             "\n\t\tgeneration {generation}"
             "\n\t\treferenced {referenced} referenced_compressed {referenced_compressed}"
             "\n\t\texclusive {exclusive} exclusive_compressed {exclusive_compressed}");

static const struct bw_member qgroup_limit_members[] = {
    BW_FIELD(qgroup_limit, flags, U64, HEX, "the limits that are set"),
    BW_FIELD(qgroup_limit, max_referenced, I64, NUMBER, "limit in bytes"),
    BW_FIELD(qgroup_limit, max_exclusive, I64, NUMBER, "limit in bytes"),
    BW_FIELD(qgroup_limit, reserved_referenced, I64, NUMBER, "unused"),
    BW_FIELD(qgroup_limit, reserved_exclusive, I64, NUMBER, "unused"),
};
BW_STRUCTURE(qgroup_limit, sizeof(struct bw_disk_qgroup_limit), "limits of a qgroup",
             "\n\t\tflags {flags:digits}"
             "\n\t\tmax_referenced {max_referenced} max_exclusive {max_exclusive}"
             "\n\t\trsv_referenced {reserved_referenced} rsv_exclusive {reserved_exclusive}");

/* Structures of the items of subvolume trees: inodes, their names and attributes, file extents,
 * verity; and the checksums of data. */

const struct bw_value_names bw_inode_flags = BW_NAMES(
    "none", "", {1 << 0, "NODATASUM", false}, {1 << 1, "NODATACOW", false},
    {1 << 2, "READONLY", false}, {1 << 3, "NOCOMPRESS", false}, {1 << 4, "PREALLOC", false},
    {1 << 5, "SYNC", false}, {1 << 6, "IMMUTABLE", false}, {1 << 7, "APPEND", false},
    {1 << 8, "NODUMP", false}, {1 << 9, "NOATIME", false}, {1 << 10, "DIRSYNC", false},
    {1 << 11, "COMPRESS", false}, {1 << 30, "SYNOLOGY_QUOTA", false},
    {UINT64_C(1) << 31, "ROOT_ITEM_INIT", false}, {UINT64_C(1) << 32, "VERITY", false});

static const struct bw_member inode_item_members[] = {
    BW_GENERATION(inode_item, generation, "transaction that created the inode"),
    BW_GENERATION(inode_item, transid, "transaction that last changed it"),
    BW_RANGED(FILE_SIZE, inode_item, size, "bytes of the contents, or of a directory's names"),
    BW_NUMBER(inode_item, bytes, "bytes allocated for the contents"),
    BW_NUMBER(inode_item, block_group, "unused"),
    BW_FIELD_AS("mode", inode_item, mode, U64, OCTAL, "type and permissions",
                .range = BW_RANGE_16_BITS),
    BW_RANGED(16_BITS, inode_item, link_count, "hard links"),
    BW_RANGED(ANY, inode_item, uid, "owner"),
    BW_RANGED(ANY, inode_item, gid, "group"),
    BW_NUMBER(inode_item, device, "number of a device file"),
    BW_NUMBER(inode_item, sequence, "version, for NFS"),
    BW_NAMED(inode_item, flags, FLAGS, bw_inode_flags, "flags, as chattr sets them"),
    BW_FIELD(inode_item, atime, I64, TIME, "time of the last access"),
    BW_FIELD(inode_item, ctime, I64, TIME, "last change of the inode"),
    BW_FIELD(inode_item, mtime, I64, TIME, "last change of the contents"),
    BW_FIELD(inode_item, otime, I64, TIME, "time of creation"),
};
BW_STRUCTURE(inode_item, sizeof(struct bw_disk_inode_item), "a file, directory or other inode",
             "\n\t\tgeneration {generation} transid {transid} size {size} nbytes {bytes}"
             "\n\t\tblock group {block_group} mode {mode} links {link_count} uid {uid} gid {gid} "
             "rdev {device}"
             "\n\t\tsequence {sequence} flags {flags:hex}({flags})"
             "\n\t\tatime {atime}"
             "\n\t\tctime {ctime}"
             "\n\t\tmtime {mtime}"
             "\n\t\totime {otime}");

BW_STATIC_STRUCTURE_OF(inode_ref, sizeof(struct bw_disk_inode_ref), "a name of an inode",
                       "\n\t\tindex {index} namelen {name_length} name: {name}",
                       BW_NUMBER(inode_ref, index, "index of the name in its directory"),
                       BW_NUMBER(inode_ref, name_length, "bytes of the name"),
                       BW_NAME(inode_ref, "the name"));

BW_STRUCTURE_OF(inode_refs, 0,
                "the names of an inode in the directory that is the offset of the key", "{names}",
                BW_LIST("names", bw_structure_inode_ref, "names"));

static const struct bw_member inode_extref_members[] = {
    BW_NUMBER(inode_extref, index, "index of the name in its directory"),
    BW_NUMBER(inode_extref, parent, "the directory"),
    BW_NUMBER(inode_extref, name_length, "bytes of the name"),
    BW_NAME(inode_extref, "the name"),
};
static BW_STRUCTURE(inode_extref, sizeof(struct bw_disk_inode_extref), "a name of an inode",
                    "\n\t\tindex {index} parent {parent} namelen {name_length} name: {name}");

BW_STRUCTURE_OF(inode_extrefs, 0, "names of an inode with the same hash", "{names}",
                BW_LIST("names", bw_structure_inode_extref, "names"));

static const struct bw_value_names entry_types =
    BW_NAMES(NULL, "DIR_ITEM.", {BW_FILE_REGULAR, "FILE", false}, {BW_FILE_DIRECTORY, "DIR", false},
             {BW_FILE_CHARACTER_DEVICE, "CHRDEV", false}, {BW_FILE_BLOCK_DEVICE, "BLKDEV", false},
             {BW_FILE_FIFO, "FIFO", false}, {BW_FILE_SOCKET, "SOCK", false},
             {BW_FILE_SYMLINK, "SYMLINK", false}, {8, "XATTR", false});

static const struct bw_member dir_entry_members[] = {
    BW_FIELD(dir_item, location, KEY, TEXT, "key of the inode or subvolume"),
    BW_NAMED(dir_item, type, WORD, entry_types, "type of the file"),
    BW_GENERATION(dir_item, transid, "transaction that created the entry"),
    BW_NUMBER(dir_item, data_length, "bytes of an attribute's value"),
    BW_NUMBER(dir_item, name_length, "bytes of the name"),
    BW_NAME(dir_item, "the name"),
    BW_FIELD_AS("data", dir_item, data_length, BYTES, NAME, "value of an extended attribute",
                .kind = BW_READ_DATA, .hidden = true),
};
static BW_STRUCTURE(dir_entry, sizeof(struct bw_disk_dir_item),
                    "an entry of a directory, or an extended attribute",
                    "\n\t\tlocation key {location} type {type}"
                    "\n\t\ttransid {transid} data_len {data_length} name_len {name_length}"
                    "\n\t\tname: {name}"
                    "\n\t\tdata {data}");

BW_STRUCTURE_OF(dir_item, 0, "entries of a directory, or extended attributes of an inode",
                "{entries}",
                BW_LIST("entries", bw_structure_dir_entry,
                        "entries whose names have the same hash"));

BW_STRUCTURE_OF(dir_log, sizeof(struct bw_disk_dir_log),
                "a range of a directory's keys in a log tree", "\n\t\tdir log end {end}",
                BW_NUMBER(dir_log, end, "last key offset of the directory that the log covers"));

BW_STRUCTURE_OF(verity_descriptor, sizeof(struct bw_disk_verity_descriptor),
                "size of a file's fs-verity descriptor", NULL,
                BW_NUMBER(verity_descriptor, size, "bytes of the descriptor"),
                BW_NUMBER(verity_descriptor, encryption, "unused"));

/* No item type has this structure: the first item after VERITY_DESC_ITEM begins with it. */
BW_STRUCTURE_OF(fsverity_descriptor, sizeof(struct bw_disk_fsverity), "a fs-verity descriptor",
                NULL, BW_NUMBER(fsverity, version, "1"),
                BW_NUMBER(fsverity, algorithm, "of the hashes"),
                BW_NUMBER(fsverity, log_block_size, "size of a block of the Merkle tree"),
                BW_NUMBER(fsverity, salt_size, "bytes of the salt"),
                BW_NUMBER(fsverity, signature_size, "bytes of the signature, which follows"),
                BW_NUMBER(fsverity, data_size, "bytes of the file"),
                BW_REST("signature", "the signature"));

BW_STRUCTURE_OF(bytes, 0, "a part of the fs-verity data of a file", "{data}",
                BW_REST("data", "the bytes of the item"));

/* File extents. */

static const struct bw_value_names compressions =
    BW_NAMES(NULL, "UNKNOWN.", {0, "none", false}, {1, "zlib", false}, {2, "lzo", false},
             {3, "zstd", false});

static const struct bw_value_names extent_types = BW_NAMES(
    NULL, "unknown", {BW_FILE_EXTENT_INLINE, "inline", false},
    {BW_FILE_EXTENT_REGULAR, "regular", false}, {BW_FILE_EXTENT_PREALLOC, "prealloc", false});

/* The contents themselves are not printed. */
static void compute_inline_size(struct bw_part *part, union bw_value *value)
{
    value->number = (uint64_t)(part->cursor.end - part->cursor.next);
    part->cursor.next = part->cursor.end;
}

BW_STATIC_STRUCTURE_OF(
    inline_extent, offsetof(struct bw_disk_file_extent, disk_bytenr), "contents in the item itself",
    "\n\t\tinline extent data size {inline_size} ram_bytes {ram_bytes} compression "
    "{compression:number} ({compression})",
    BW_COMPUTED("inline_size", U64, NUMBER, compute_inline_size, "bytes stored in the item"),
    BW_RANGED(FILE_SIZE, file_extent, ram_bytes, "bytes in memory"),
    BW_NAMED(file_extent, compression, WORD, compressions, "compression of the bytes"));

#define ON_DISK                                                                                  \
    BW_RANGED(ALIGNED, file_extent, disk_bytenr, "logical address of the extent; 0 for a hole"), \
        BW_RANGED(ALIGNED, file_extent, disk_num_bytes, "bytes of the extent on disk"),          \
        BW_RANGED(ALIGNED, file_extent, offset, "offset of these contents in the extent"),       \
        BW_RANGED(FILE_SIZE, file_extent, num_bytes, "bytes of the contents"),                   \
        BW_RANGED(FILE_SIZE, file_extent, ram_bytes, "bytes of the extent, decompressed")
#define ON_DISK_TEXT(word)                                            \
    "\n\t\t" word " data disk byte {disk_bytenr} nr {disk_num_bytes}" \
    "\n\t\t" word " data offset {offset} nr {num_bytes}"

static const struct bw_member regular_extent_members[] = {
    ON_DISK,
    BW_NAMED(file_extent, compression, WORD, compressions, "compression of the bytes"),
};
static BW_STRUCTURE(
    regular_extent, sizeof(struct bw_disk_file_extent), "contents on disk",
    ON_DISK_TEXT("extent") " ram {ram_bytes}"
                           "\n\t\textent compression {compression:number} ({compression})");

BW_STATIC_STRUCTURE_OF(prealloc_extent, sizeof(struct bw_disk_file_extent),
                       "space without contents", ON_DISK_TEXT("prealloc"), ON_DISK,
                       BW_NUMBER(file_extent, compression, "0"));

static size_t choose_extent(struct bw_part *part)
{
    const struct bw_disk_file_extent *extent = (const void *)part->start;
    if (extent->type == BW_FILE_EXTENT_INLINE)
        return 0;
    return extent->type == BW_FILE_EXTENT_PREALLOC ? 1 : 2;
}

static const struct bw_structure *const extents[] = {
    &bw_structure_inline_extent, &bw_structure_prealloc_extent, &bw_structure_regular_extent, NULL};

static const struct bw_member file_extent_members[] = {
    BW_GENERATION(file_extent, generation, "transaction that wrote the extent"),
    BW_NAMED(file_extent, type, WORD, extent_types, "storage of the contents"),
    BW_NUMBER(file_extent, encryption, "unused"),
    BW_NUMBER(file_extent, other_encoding, "unused"),
    BW_CHOICE(extents, choose_extent, "by the type"),
};
BW_STRUCTURE(file_extent, offsetof(struct bw_disk_file_extent, disk_bytenr),
             "contents of a file, from the offset of the key on",
             "\n\t\tgeneration {generation} type {type:number} ({type}){...}");

/* Checksums: as many as fill the item, each for a sector. */

static void compute_checksummed(struct bw_part *part, union bw_value *value)
{
    value->number =
        (uint64_t)(part->cursor.end - part->cursor.next) / part->checksum_size * part->sectorsize;
}

static void compute_checksummed_end(struct bw_part *part, union bw_value *value)
{
    compute_checksummed(part, value);
    value->number += part->key->offset;
}

static const struct bw_member extent_csum_members[] = {
    BW_PART("start", U64, NUMBER, "logical address of the data", .kind = BW_READ_KEY_OFFSET),
    BW_COMPUTED("length", U64, NUMBER, compute_checksummed, "bytes of the data"),
    BW_LAZY("end", U64, NUMBER, compute_checksummed_end, "address after the data"),
    BW_PART("checksums", NAMES, TEXT, "the checksums, with --csum-items",
            .kind = BW_READ_CHECKSUMS),
};
BW_STRUCTURE(extent_csum, 0, "checksums of data from the key's offset on, one per sector",
             "\n\t\trange start {start} end {end} length {length}{checksums}");

BW_EMPTY_STRUCTURE(csum_item, "checksums, in file systems before 2008", "\n\t\tcsum item");

/* Structures of the items that describe the use of space: extents and their references, block
 * groups, free space, moved ranges. */

static const struct bw_value_names extent_flags =
    BW_NAMES(NULL, "", {1 << 0, "DATA", false}, {1 << 1, "TREE_BLOCK", false},
             {1 << 8, "FULL_BACKREF", false});

/* References inside an extent item. */

BW_STATIC_STRUCTURE_OF(inline_root, sizeof(struct bw_disk_inline_reference), "TREE_BLOCK_REF",
                       "\n\t\ttree block backref root {root:tree}",
                       BW_FIELD_AS("root", inline_reference, offset, U64, NUMBER,
                                   "tree that contains the block"));

BW_STATIC_STRUCTURE_OF(inline_parent, sizeof(struct bw_disk_inline_reference), "SHARED_BLOCK_REF",
                       "\n\t\tshared block backref parent {parent}",
                       BW_FIELD_AS("parent", inline_reference, offset, U64, NUMBER,
                                   "logical address of the node that points to the block"));

static const struct bw_member extent_data_ref_members[] = {
    BW_NUMBER(extent_data_ref, root, "subvolume that uses the extent"),
    BW_NUMBER(extent_data_ref, objectid, "inode that uses it"),
    BW_NUMBER(extent_data_ref, offset, "offset in the file minus the offset in the extent"),
    BW_NUMBER(extent_data_ref, count, "number of its items with this reference"),
};
BW_STRUCTURE(
    extent_data_ref, sizeof(struct bw_disk_extent_data_ref), "a reference of a file to an extent",
    "\n\t\textent data backref root {root:tree} objectid {objectid} offset {offset} count {count}");

BW_STATIC_STRUCTURE_OF(inline_data, sizeof(struct bw_disk_inline_data_ref), "EXTENT_DATA_REF",
                       "{data}",
                       BW_FIELD_AS("data", inline_data_ref, reference, RECORD, TEXT, "the file",
                                   .kind = BW_READ_STRUCTURE,
                                   .structure = &bw_structure_extent_data_ref));

BW_STATIC_STRUCTURE_OF(inline_shared_data, sizeof(struct bw_disk_inline_shared_data_ref),
                       "SHARED_DATA_REF", "\n\t\tshared data backref parent {parent} count {count}",
                       BW_NUMBER(inline_shared_data_ref, parent,
                                 "logical address of the leaf that uses the extent"),
                       BW_NUMBER(inline_shared_data_ref, count, "number of its items that use it"));

BW_STATIC_STRUCTURE_OF(inline_owner, sizeof(struct bw_disk_inline_reference), "EXTENT_OWNER_REF",
                       "\n\t\textent owner root {root}",
                       BW_FIELD_AS("root", inline_reference, offset, U64, NUMBER,
                                   "subvolume that wrote the extent, for simple quotas"));

static const struct bw_structure *const inline_references[] = {
    &bw_structure_inline_root,        &bw_structure_inline_parent, &bw_structure_inline_data,
    &bw_structure_inline_shared_data, &bw_structure_inline_owner,  NULL};

static size_t choose_reference(struct bw_part *part)
{
    static const uint8_t types[] = {BW_TREE_BLOCK_REF, BW_SHARED_BLOCK_REF, BW_EXTENT_DATA_REF,
                                    BW_SHARED_DATA_REF, BW_EXTENT_OWNER_REF};
    size_t i = 0;
    while (i < sizeof types && types[i] != *part->start)
        i++;
    part->cursor.bad |= i == sizeof types;
    return i;
}

static const struct bw_value_names reference_types = BW_NAMES(
    NULL, "UNKNOWN.", {BW_TREE_BLOCK_REF, "TREE_BLOCK_REF", false},
    {BW_SHARED_BLOCK_REF, "SHARED_BLOCK_REF", false},
    {BW_EXTENT_DATA_REF, "EXTENT_DATA_REF", false}, {BW_SHARED_DATA_REF, "SHARED_DATA_REF", false},
    {BW_EXTENT_OWNER_REF, "EXTENT_OWNER_REF", false});

BW_STATIC_STRUCTURE_OF(inline_reference, sizeof(uint8_t), "a reference to the extent", "{...}",
                       BW_NAMED(inline_reference, type, WORD, reference_types,
                                "kind of the reference"),
                       BW_CHOICE(inline_references, choose_reference, "by the type"));

#define REFERENCES BW_LIST("inline_references", bw_structure_inline_reference, "references")
#define EXTENT_MEMBERS                                                           \
    BW_NUMBER(extent_item, references, "number of references"),                  \
        BW_GENERATION(extent_item, generation, "transaction that allocated it"), \
        BW_NAMED(extent_item, flags, FLAGS, extent_flags, "use of the extent")
#define EXTENT_TEXT "\n\t\trefs {references} gen {generation} flags {flags}"

/* A tree block has its first key and level between the item and the references. */
struct bw_disk_tree_block_extent {
    struct bw_disk_extent_item item;
    struct bw_disk_tree_block_info info;
};

BW_STATIC_STRUCTURE_OF(tree_block_info, sizeof(struct bw_disk_tree_block_extent), "a tree block",
                       "\n\t\ttree block key {key} level {level}",
                       BW_FIELD_AS("key", tree_block_extent, info.key, KEY, TEXT,
                                   "first key of the block"),
                       BW_FIELD_AS("level", tree_block_extent, info.level, U64, NUMBER, "its level",
                                   .range = BW_RANGE_LEVEL));

static const struct bw_structure *const block_infos[] = {&bw_structure_tree_block_info, NULL};

static size_t choose_block_info(struct bw_part *part)
{
    const struct bw_disk_extent_item *extent = (const void *)part->start;
    return !(bw_get64(extent->flags) & BW_EXTENT_TREE_BLOCK);
}

BW_STRUCTURE_OF(extent_item, sizeof(struct bw_disk_extent_item),
                "an extent, whose length is the offset of the key",
                EXTENT_TEXT "{...}{inline_references}", EXTENT_MEMBERS,
                BW_CHOICE(block_infos, choose_block_info, "if it is a tree block"), REFERENCES);

BW_STRUCTURE_OF(metadata_item, sizeof(struct bw_disk_extent_item), "a tree block",
                EXTENT_TEXT "\n\t\ttree block skinny level {level}{inline_references}",
                EXTENT_MEMBERS,
                BW_PART("level", U64, NUMBER, "level of the block: the offset of the key",
                        .kind = BW_READ_KEY_OFFSET),
                REFERENCES);

BW_EMPTY_STRUCTURE(tree_block_ref, "a tree that contains a block: the offset of the key",
                   "\n\t\ttree block backref");

BW_EMPTY_STRUCTURE(shared_block_ref, "a node that refers to a block: the offset of the key",
                   "\n\t\tshared block backref");

BW_STRUCTURE_OF(shared_data_ref, sizeof(struct bw_disk_shared_data_ref),
                "a leaf that uses an extent: the offset of the key",
                "\n\t\tshared data backref count {count}",
                BW_NUMBER(shared_data_ref, count, "number of the leaf's items that use it"));

BW_EMPTY_STRUCTURE(extent_ref_v0, "a reference, in file systems before 2009",
                   "\n\t\textent ref v0 (deprecated)");

const struct bw_value_names bw_group_flags = BW_NAMES(
    NULL, "", {BW_GROUP_DATA, "DATA", false}, {BW_GROUP_METADATA, "METADATA", false},
    {BW_GROUP_SYSTEM, "SYSTEM", false}, {BW_GROUP_METADATA_REMAP, "METADATA_REMAP", false},
    {BW_GROUP_RAID0, "RAID0", false}, {BW_GROUP_RAID1, "RAID1", false},
    {BW_GROUP_DUP, "DUP", false}, {BW_GROUP_RAID10, "RAID10", false},
    {BW_GROUP_RAID5, "RAID5", false}, {BW_GROUP_RAID6, "RAID6", false},
    {BW_GROUP_RAID1C3, "RAID1C3", false}, {BW_GROUP_RAID1C4, "RAID1C4", false},
    {BW_GROUP_PROFILE_MASK, "single", true}, {BW_GROUP_REMAPPED, "REMAPPED", false});

BW_STATIC_STRUCTURE_OF(
    block_group_v2, sizeof(struct bw_disk_block_group_v2), "with a remap tree",
    "\n\t\tremap_bytes {remap_bytes} identity_remap_count {identity_remap_count}",
    BW_NUMBER(block_group_v2, remap_bytes, "bytes moved here from other block groups"),
    BW_NUMBER(block_group_v2, identity_remap_count, "ranges that are not yet moved"));

static const struct bw_structure *const block_groups[] = {&bw_structure_block_group_v2, NULL};

static size_t choose_block_group(struct bw_part *part)
{
    return part->cursor.next == part->cursor.end;
}

static const struct bw_member block_group_members[] = {
    BW_NUMBER(block_group, used, "bytes in use"),
    BW_NUMBER(block_group, chunk_objectid, "256, or the number of the extent tree"),
    BW_NAMED(block_group, flags, FLAGS, bw_group_flags, "type and profile"),
    BW_CHOICE(block_groups, choose_block_group, "if the file system has a remap tree"),
};
BW_STRUCTURE(block_group, sizeof(struct bw_disk_block_group),
             "a range of addresses for data, metadata or system blocks",
             "\n\t\tblock group used {used} chunk_objectid {chunk_objectid} flags {flags}{...}");

BW_STRUCTURE_OF(free_space_info, sizeof(struct bw_disk_free_space_info),
                "free space of a block group",
                "\n\t\tfree space info extent count {extent_count} flags {flags}",
                BW_NUMBER(free_space_info, extent_count, "free ranges of the block group"),
                BW_NUMBER(free_space_info, flags, "1: stored as bitmaps"));

BW_EMPTY_STRUCTURE(free_space_extent, "a free range, which the key describes",
                   "\n\t\tfree space extent");

BW_STRUCTURE_OF(free_space_bitmap, 0, "free sectors in the range that the key describes",
                "\n\t\tfree space bitmap{bitmap}",
                BW_REST("bitmap", "a bit for each sector, lowest first; 1: free"));

static const struct bw_member free_space_header_members[] = {
    BW_FIELD(free_space_header, location, KEY, TEXT, "inode of the cache"),
    BW_GENERATION(free_space_header, generation, "transaction that wrote the cache"),
    BW_NUMBER(free_space_header, entries, "free ranges"),
    BW_NUMBER(free_space_header, bitmaps, "bitmaps"),
};
BW_STRUCTURE(free_space_header, sizeof(struct bw_disk_free_space_header),
             "free space cache of a block group, version 1",
             "\n\t\tlocation key {location}"
             "\n\t\tcache generation {generation} entries {entries} bitmaps {bitmaps}");

BW_EMPTY_STRUCTURE(nothing, "no contents: the key has all information", "");

BW_STRUCTURE_OF(remap, sizeof(struct bw_disk_remap), "a range that was moved",
                "\n\t\taddress {address}",
                BW_NUMBER(remap, address,
                          "new address of the range; in a REMAP_BACKREF the old address"));
