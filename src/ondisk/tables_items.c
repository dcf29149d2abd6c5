/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The members of the items of trees, subvolumes and space: roots, uuids, quotas; inodes, names,
 * file extents, checksums; extents, block groups, free space.
 */
#include "base/decimal.h"
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

static const struct bw_value_names root_flags = {
    (const struct bw_value_name[]){
        {BW_ROOT_READ_ONLY, "RDONLY", false}, {BW_ROOT_DEAD, "DEAD", false}, {0, NULL, false}},
    "none", ""};

static const struct bw_field root_item_v2_members[] = {
    BW_FIELD(BW_LINE "uuid ", root_item, uuid, UUID, "uuid of the subvolume"),
    BW_FIELD(BW_LINE "parent_uuid ", root_item, parent_uuid, UUID,
             "uuid of the subvolume that this is a snapshot of"),
    BW_FIELD(BW_LINE "received_uuid ", root_item, received_uuid, UUID,
             "uuid of the subvolume that this was received from"),
    BW_FIELD(BW_LINE "ctransid ", root_item, change_transid, NUMBER,
             "transaction of the last change"),
    BW_FIELD(" otransid ", root_item, origin_transid, NUMBER, "transaction of the creation"),
    BW_FIELD(" stransid ", root_item, send_transid, NUMBER,
             "transaction of the subvolume that was sent"),
    BW_FIELD(" rtransid ", root_item, receive_transid, NUMBER, "transaction of receiving"),
    BW_FIELD(BW_LINE "ctime ", root_item, ctime, TIME, "last change"),
    BW_FIELD(BW_LINE "otime ", root_item, otime, TIME, "creation"),
    BW_FIELD(BW_LINE "stime ", root_item, stime, TIME, "sending"),
    BW_FIELD(BW_LINE "rtime ", root_item, rtime, TIME, "receiving"),
};
static BW_STRUCTURE(root_item_v2, sizeof(struct bw_disk_root_item), "since 2012");

/* Old versions of the kernel leave the rest alone when they write the item; it is out of date
 * then. */
static size_t choose_root(const struct bw_part *part)
{
    const struct bw_disk_root_item *root = (const void *)part->start;
    return memcmp(&root->generation, &root->generation_v2, sizeof root->generation) != 0;
}

static const struct bw_structure *const roots[] = {&bw_structure_root_item_v2, NULL};

static const struct bw_field root_item_members[] = {
    BW_FIELD(BW_LINE "generation ", root_item, generation, NUMBER,
             "transaction that wrote the root block"),
    BW_FIELD(" root_dirid ", root_item, root_directory, NUMBER, "inode of the top directory"),
    BW_FIELD(" bytenr ", root_item, bytenr, NUMBER, "logical address of the root block"),
    BW_FIELD(" byte_limit ", root_item, byte_limit, NUMBER, "unused"),
    BW_FIELD(" bytes_used ", root_item, bytes_used, NUMBER, "bytes of tree blocks"),
    BW_FIELD(BW_LINE "last_snapshot ", root_item, last_snapshot, NUMBER,
             "transaction of the last snapshot"),
    BW_WORDED(" flags ", root_item, flags, HEX_FLAGS, root_flags, "flags"),
    BW_FIELD(" refs ", root_item, reference_count, NUMBER, "0 if it is being deleted"),
    BW_FIELD(BW_LINE "drop_progress ", root_item, drop_progress, KEY,
             "how far the deletion has come"),
    BW_FIELD(" drop_level ", root_item, drop_level, NUMBER, "level that it has come to"),
    BW_FIELD(BW_LINE "level ", root_item, level, NUMBER, "level of the root block"),
    BW_FIELD(" generation_v2 ", root_item, generation_v2, NUMBER,
             "the generation again, if the following members are valid"),
    {.kind = BW_KIND_CHOICE,
     .structures = roots,
     .choose = choose_root,
     .description = "if both generations are the same"},
};
const struct bw_structure bw_structure_root_item = {
    .name = "root_item",
    .description = "the root of a tree",
    .size = sizeof(struct bw_disk_root_item),
    .minimum = offsetof(struct bw_disk_root_item, generation_v2),
    .count = sizeof root_item_members / sizeof *root_item_members,
    .members = root_item_members,
};

#define ROOT_REF(word)                                                                 \
    BW_FIELD(BW_LINE "root " word " key dirid ", root_ref, directory, NUMBER,          \
             "directory that the subvolume is in"),                                    \
        BW_FIELD(" sequence ", root_ref, sequence, NUMBER, "index in that directory"), \
    {                                                                                  \
        BW_NAME("name"), BW_LEAD(" name "), BW_DISK_AT(root_ref, name_length),         \
            .kind = BW_KIND_NAME, .description = "name in that directory"              \
    }

static const struct bw_field root_ref_members[] = {ROOT_REF("ref")};
BW_STRUCTURE(root_ref, sizeof(struct bw_disk_root_ref), "a subvolume in another one");

static const struct bw_field root_backref_members[] = {ROOT_REF("backref")};
BW_STRUCTURE(root_backref, sizeof(struct bw_disk_root_ref), "a subvolume that another one is in");

static const struct bw_field orphan_members[] = {BW_PLAIN(BW_LINE "orphan item")};
BW_STRUCTURE(orphan, 0, "an inode or subvolume that is being deleted: the offset of the key");

static const struct bw_field uuid_entry_members[] = {
    BW_FIELD(BW_LINE "subvol_id ", uuid_entry, subvolume, NUMBER, "id of the subvolume"),
};
static BW_STRUCTURE(uuid_entry, sizeof(struct bw_disk_uuid_entry), "a subvolume");

static const struct bw_field uuid_members[] = {{BW_NAME("subvolumes"), .kind = BW_KIND_LIST,
                                                .structure = &bw_structure_uuid_entry,
                                                .description = "their ids"}};
BW_STRUCTURE(uuid, 0, "the subvolumes of a uuid, which is the key");

static const struct bw_field string_members[] = {{BW_NAME("data"), BW_LEAD(BW_LINE "item data "),
                                                  .kind = BW_KIND_REST,
                                                  .description = "the bytes of the item"}};
BW_STRUCTURE(string, 0, "a text, for tests");

/* Quotas. */

static const struct bw_value_names qgroup_flags = {
    (const struct bw_value_name[]){{1 << 0, "ON", false},
                                   {1 << 0, "OFF", true},
                                   {1 << 1, "SCANNING", false},
                                   {1 << 2, "INCONSISTENT", false},
                                   {BW_QGROUP_SIMPLE_MODE, "SIMPLE_MODE", false},
                                   {0, NULL, false}},
    NULL, ""};

static const struct bw_field simple_quota_members[] = {
    BW_FIELD(" enable_gen ", qgroup_status, enable_generation, NUMBER,
             "transaction since which extents are counted"),
};
static BW_STRUCTURE(simple_quota, sizeof(struct bw_disk_qgroup_status), "simple quotas");

static const struct bw_structure *const qgroup_states[] = {&bw_structure_simple_quota, NULL};

static size_t choose_qgroup_state(const struct bw_part *part)
{
    const struct bw_disk_qgroup_status *status = (const void *)part->start;
    return !(bw_get64(status->flags) & BW_QGROUP_SIMPLE_MODE);
}

static const struct bw_field qgroup_status_members[] = {
    BW_FIELD(BW_LINE "version ", qgroup_status, version, NUMBER, "version of the format: 1"),
    BW_FIELD(" generation ", qgroup_status, generation, NUMBER,
             "transaction that the numbers are of"),
    BW_WORDED(" flags ", qgroup_status, flags, FLAGS, qgroup_flags, "state of the quotas"),
    BW_FIELD(" scan ", qgroup_status, rescan, NUMBER, "how far a rescan has come"),
    {.kind = BW_KIND_CHOICE,
     .structures = qgroup_states,
     .choose = choose_qgroup_state,
     .description = "if quotas are simple"},
};
const struct bw_structure bw_structure_qgroup_status = {
    .name = "qgroup_status",
    .description = "state of the quotas",
    .size = sizeof(struct bw_disk_qgroup_status),
    .minimum = offsetof(struct bw_disk_qgroup_status, enable_generation),
    .count = sizeof qgroup_status_members / sizeof *qgroup_status_members,
    .members = qgroup_status_members,
};

static const struct bw_field qgroup_info_members[] = {
    BW_FIELD(BW_LINE "generation ", qgroup_info, generation, NUMBER,
             "transaction that the numbers are of"),
    BW_FIELD(BW_LINE "referenced ", qgroup_info, referenced, NUMBER, "bytes in use"),
    BW_FIELD(" referenced_compressed ", qgroup_info, referenced_compressed, NUMBER,
             "the same number"),
    BW_FIELD(BW_LINE "exclusive ", qgroup_info, exclusive, NUMBER,
             "bytes that no other subvolume uses"),
    BW_FIELD(" exclusive_compressed ", qgroup_info, exclusive_compressed, NUMBER,
             "the same number"),
};
BW_STRUCTURE(qgroup_info, sizeof(struct bw_disk_qgroup_info), "use of space by a qgroup");

static const struct bw_field qgroup_limit_members[] = {
    BW_FIELD(BW_LINE "flags ", qgroup_limit, flags, HEX, "which limits are set"),
    BW_FIELD(BW_LINE "max_referenced ", qgroup_limit, max_referenced, SIGNED, "limit in bytes"),
    BW_FIELD(" max_exclusive ", qgroup_limit, max_exclusive, SIGNED, "limit in bytes"),
    BW_FIELD(BW_LINE "rsv_referenced ", qgroup_limit, reserved_referenced, SIGNED, "unused"),
    BW_FIELD(" rsv_exclusive ", qgroup_limit, reserved_exclusive, SIGNED, "unused"),
};
BW_STRUCTURE(qgroup_limit, sizeof(struct bw_disk_qgroup_limit), "limits of a qgroup");

/* Structures of the items of subvolume trees: inodes, their names and attributes, file extents,
 * verity; and the checksums of data. */

static const struct bw_value_names inode_flags = {(const struct bw_value_name[]){
                                                      {1 << 0, "NODATASUM", false},
                                                      {1 << 1, "NODATACOW", false},
                                                      {1 << 2, "READONLY", false},
                                                      {1 << 3, "NOCOMPRESS", false},
                                                      {1 << 4, "PREALLOC", false},
                                                      {1 << 5, "SYNC", false},
                                                      {1 << 6, "IMMUTABLE", false},
                                                      {1 << 7, "APPEND", false},
                                                      {1 << 8, "NODUMP", false},
                                                      {1 << 9, "NOATIME", false},
                                                      {1 << 10, "DIRSYNC", false},
                                                      {1 << 11, "COMPRESS", false},
                                                      {UINT64_C(1) << 31, "ROOT_ITEM_INIT", false},
                                                      {UINT64_C(1) << 32, "VERITY", false},
                                                      {0, NULL, false},
                                                  },
                                                  "none", ""};

static const struct bw_field inode_item_members[] = {
    BW_FIELD(BW_LINE "generation ", inode_item, generation, NUMBER,
             "transaction that created the inode"),
    BW_FIELD(" transid ", inode_item, transid, NUMBER, "transaction that last changed it"),
    BW_FIELD(" size ", inode_item, size, NUMBER,
             "bytes of the contents, or of a directory's names"),
    BW_FIELD(" nbytes ", inode_item, bytes, NUMBER, "bytes that the contents take up"),
    BW_FIELD(BW_LINE "block group ", inode_item, block_group, NUMBER, "unused"),
    BW_FIELD(" mode ", inode_item, mode, OCTAL, "type and permissions"),
    BW_FIELD(" links ", inode_item, link_count, NUMBER, "hard links"),
    BW_FIELD(" uid ", inode_item, uid, NUMBER, "owner"),
    BW_FIELD(" gid ", inode_item, gid, NUMBER, "group"),
    BW_FIELD(" rdev ", inode_item, device, NUMBER, "number of a device file"),
    BW_FIELD(BW_LINE "sequence ", inode_item, sequence, NUMBER, "version, for NFS"),
    BW_WORDED(" flags ", inode_item, flags, HEX_FLAGS, inode_flags, "flags, as chattr sets them"),
    BW_FIELD(BW_LINE "atime ", inode_item, atime, TIME, "last access"),
    BW_FIELD(BW_LINE "ctime ", inode_item, ctime, TIME, "last change of the inode"),
    BW_FIELD(BW_LINE "mtime ", inode_item, mtime, TIME, "last change of the contents"),
    BW_FIELD(BW_LINE "otime ", inode_item, otime, TIME, "creation"),
};
BW_STRUCTURE(inode_item, sizeof(struct bw_disk_inode_item), "a file, directory or other inode");

/* A name that follows the structure; its length is the member name_length. */
#define NAME(before, type)                                                                         \
    {                                                                                              \
        BW_NAME("name"), BW_LEAD(before), BW_DISK_AT(type, name_length), .kind = BW_KIND_NAME,     \
                                                                         .description = "the name" \
    }
/* A list that fills the item. */
#define FILLED(what, elements, doc)                                                         \
    {                                                                                       \
        BW_NAME(what), .kind = BW_KIND_LIST, .structure = &(elements), .description = (doc) \
    }

static const struct bw_field inode_ref_members[] = {
    BW_FIELD(BW_LINE "index ", inode_ref, index, NUMBER, "index of the name in its directory"),
    BW_FIELD(" namelen ", inode_ref, name_length, NUMBER, "bytes of the name"),
    NAME(" name: ", inode_ref),
};
static BW_STRUCTURE(inode_ref, sizeof(struct bw_disk_inode_ref), "a name of an inode");

static const struct bw_field inode_refs_members[] = {
    FILLED("names", bw_structure_inode_ref, "names")};
BW_STRUCTURE(inode_refs, 0, "the names of an inode in the directory that is the offset of the key");

static const struct bw_field inode_extref_members[] = {
    BW_FIELD(BW_LINE "index ", inode_extref, index, NUMBER, "index of the name in its directory"),
    BW_FIELD(" parent ", inode_extref, parent, NUMBER, "the directory"),
    BW_FIELD(" namelen ", inode_extref, name_length, NUMBER, "bytes of the name"),
    NAME(" name: ", inode_extref),
};
static BW_STRUCTURE(inode_extref, sizeof(struct bw_disk_inode_extref), "a name of an inode");

static const struct bw_field inode_extrefs_members[] = {
    FILLED("names", bw_structure_inode_extref, "names")};
BW_STRUCTURE(inode_extrefs, 0, "names of an inode that have the same hash");

static const struct bw_value_names entry_types = {(const struct bw_value_name[]){
                                                      {BW_FILE_REGULAR, "FILE", false},
                                                      {BW_FILE_DIRECTORY, "DIR", false},
                                                      {BW_FILE_CHARACTER_DEVICE, "CHRDEV", false},
                                                      {BW_FILE_BLOCK_DEVICE, "BLKDEV", false},
                                                      {BW_FILE_FIFO, "FIFO", false},
                                                      {BW_FILE_SOCKET, "SOCK", false},
                                                      {BW_FILE_SYMLINK, "SYMLINK", false},
                                                      {8, "XATTR", false},
                                                      {0, NULL, false},
                                                  },
                                                  NULL, "DIR_ITEM."};

static const struct bw_field dir_entry_members[] = {
    BW_FIELD(BW_LINE "location ", dir_item, location, KEY, "key of the inode or subvolume"),
    BW_WORDED(" type ", dir_item, type, NAMED, entry_types, "type of the file"),
    BW_FIELD(BW_LINE "transid ", dir_item, transid, NUMBER, "transaction that made the entry"),
    BW_FIELD(" data_len ", dir_item, data_length, NUMBER, "bytes of an attribute's value"),
    BW_FIELD(" name_len ", dir_item, name_length, NUMBER, "bytes of the name"),
    NAME(BW_LINE "name: ", dir_item),
    {BW_NAME("data"), BW_LEAD(BW_LINE "data "), BW_DISK_AT(dir_item, data_length),
     .kind = BW_KIND_DATA, .description = "value of an extended attribute"},
};
static BW_STRUCTURE(dir_entry, sizeof(struct bw_disk_dir_item),
                    "an entry of a directory, or an extended attribute");

static const struct bw_field dir_item_members[] = {
    FILLED("entries", bw_structure_dir_entry, "entries whose names have the same hash")};
BW_STRUCTURE(dir_item, 0, "entries of a directory, or extended attributes of an inode");

static const struct bw_field dir_log_members[] = {
    BW_FIELD(BW_LINE "dir log end ", dir_log, end, NUMBER,
             "last key offset of the directory that the log covers"),
};
BW_STRUCTURE(dir_log, sizeof(struct bw_disk_dir_log),
             "a range of a directory's keys in a log tree");

static const struct bw_field verity_descriptor_members[] = {
    BW_QUIET(verity_descriptor, size, NUMBER, "bytes of the descriptor"),
    BW_QUIET(verity_descriptor, encryption, NUMBER, "unused"),
};
BW_STRUCTURE(verity_descriptor, sizeof(struct bw_disk_verity_descriptor),
             "size of a file's fs-verity descriptor");

static const struct bw_field bytes_members[] = {
    {BW_NAME("data"), .quiet = true, .kind = BW_KIND_REST, .description = "the bytes of the item"}};
BW_STRUCTURE(bytes, 0, "a piece of the data that fs-verity stores for a file");

/* File extents. */

static const struct bw_value_names compressions = {
    (const struct bw_value_name[]){{0, "none", false},
                                   {1, "zlib", false},
                                   {2, "lzo", false},
                                   {3, "zstd", false},
                                   {0, NULL, false}},
    NULL, "UNKNOWN."};

static const struct bw_value_names extent_types = {
    (const struct bw_value_name[]){{BW_FILE_EXTENT_INLINE, "inline", false},
                                   {BW_FILE_EXTENT_REGULAR, "regular", false},
                                   {BW_FILE_EXTENT_PREALLOC, "prealloc", false},
                                   {0, NULL, false}},
    NULL, "unknown"};

/* The contents themselves are not printed. */
static void write_inline_size(struct bw_printer *printer, const struct bw_field *member,
                              const struct bw_part *part)
{
    uint64_t length = (uint64_t)(part->cursor->end - part->cursor->next);
    part->cursor->next = part->cursor->end;
    if (printer->json) {
        bw_json_number(printer->json, member->name, length);
    } else {
        bw_print_lead(printer, member);
        bw_decimal_append(printer->text, length);
    }
}

static const struct bw_field inline_extent_members[] = {
    {BW_NAME("inline_size"), BW_LEAD(BW_LINE "inline extent data size "), .kind = BW_KIND_SPECIAL,
     .write = write_inline_size, .description = "bytes stored in the item"},
    BW_FIELD(" ram_bytes ", file_extent, ram_bytes, NUMBER, "bytes in memory"),
    BW_WORDED(" compression ", file_extent, compression, NUMBER_NAMED, compressions,
              "how the bytes are compressed"),
};
static BW_STRUCTURE(inline_extent, offsetof(struct bw_disk_file_extent, disk_bytenr),
                    "contents in the item itself");

#define ON_DISK(before)                                                                       \
    BW_FIELD(BW_LINE before " data disk byte ", file_extent, disk_bytenr, NUMBER,             \
             "logical address of the extent; 0 for a hole"),                                  \
        BW_FIELD(" nr ", file_extent, disk_num_bytes, NUMBER, "bytes of the extent on disk"), \
        BW_FIELD(BW_LINE before " data offset ", file_extent, offset, NUMBER,                 \
                 "where in the extent these contents begin"),                                 \
        BW_FIELD(" nr ", file_extent, num_bytes, NUMBER, "bytes of the contents")

static const struct bw_field regular_extent_members[] = {
    ON_DISK("extent"),
    BW_FIELD(" ram ", file_extent, ram_bytes, NUMBER, "bytes of the whole extent in memory"),
    BW_WORDED(BW_LINE "extent compression ", file_extent, compression, NUMBER_NAMED, compressions,
              "how the bytes are compressed"),
};
static BW_STRUCTURE(regular_extent, sizeof(struct bw_disk_file_extent), "contents on disk");

static const struct bw_field prealloc_extent_members[] = {
    ON_DISK("prealloc"),
    BW_QUIET(file_extent, ram_bytes, NUMBER, "bytes of the whole extent in memory"),
    BW_QUIET(file_extent, compression, NUMBER, "0"),
};
static BW_STRUCTURE(prealloc_extent, sizeof(struct bw_disk_file_extent), "space without contents");

static size_t choose_extent(const struct bw_part *part)
{
    const struct bw_disk_file_extent *extent = (const void *)part->start;
    return extent->type == BW_FILE_EXTENT_INLINE     ? 0
           : extent->type == BW_FILE_EXTENT_PREALLOC ? 1
                                                     : 2;
}

static const struct bw_structure *const extents[] = {
    &bw_structure_inline_extent, &bw_structure_prealloc_extent, &bw_structure_regular_extent, NULL};

static const struct bw_field file_extent_members[] = {
    BW_FIELD(BW_LINE "generation ", file_extent, generation, NUMBER,
             "transaction that wrote the extent"),
    BW_WORDED(" type ", file_extent, type, NUMBER_NAMED, extent_types, "where the contents are"),
    BW_QUIET(file_extent, encryption, NUMBER, "unused"),
    BW_QUIET(file_extent, other_encoding, NUMBER, "unused"),
    {.kind = BW_KIND_CHOICE,
     .structures = extents,
     .choose = choose_extent,
     .description = "by the type"},
};
BW_STRUCTURE(file_extent, offsetof(struct bw_disk_file_extent, disk_bytenr),
             "contents of a file, from the offset of the key on");

/* Checksums: as many as fill the item, each for a sector. */

/* A line takes one checksum of 32 bytes, two of 8, or four of 4. */
static void write_checksums(struct bw_printer *printer, const uint8_t *sums, uint64_t count,
                            uint64_t address)
{
    struct bw_buffer *text = printer->text;
    uint64_t a_line = BW_CSUM_SIZE / printer->checksum_size / 2;
    for (uint64_t i = 0; i < count; i++) {
        bool begins = a_line < 2 || i % a_line == 0;
        bw_buffer_append(text, begins ? BW_LINE "[" : " [", begins ? 4 : 2);
        bw_decimal_append(text, address + i * printer->sectorsize);
        bw_buffer_append(text, "] 0x", 4);
        bw_buffer_append_hex(text, sums + i * printer->checksum_size, printer->checksum_size);
    }
}

static void write_checksums_json(struct bw_printer *printer, const uint8_t *sums, uint64_t count)
{
    bw_json_begin_array(printer->json, "checksums");
    for (uint64_t i = 0; i < count; i++)
        bw_json_hex(printer->json, NULL, sums + i * printer->checksum_size, printer->checksum_size);
    bw_json_end(printer->json);
}

static void write_csum(struct bw_printer *printer, const struct bw_field *member,
                       const struct bw_part *part)
{
    (void)member;
    struct bw_cursor *cursor = part->cursor;
    const size_t count = (size_t)(cursor->end - cursor->next) / printer->checksum_size;
    const uint64_t start = part->key->offset, length = (uint64_t)count * printer->sectorsize;
    const uint8_t *sums = bw_cursor_take(cursor, count * printer->checksum_size);
    if (printer->json) {
        bw_json_number(printer->json, "start", start);
        bw_json_number(printer->json, "length", length);
        if (printer->checksum_items)
            write_checksums_json(printer, sums, count);
        return;
    }
    bw_buffer_append(printer->text, BW_LINE "range start ", 15);
    bw_decimal_append(printer->text, start);
    bw_buffer_append(printer->text, " end ", 5);
    bw_decimal_append(printer->text, start + length);
    bw_buffer_append(printer->text, " length ", 8);
    bw_decimal_append(printer->text, length);
    if (printer->checksum_items)
        write_checksums(printer, sums, count, start);
}

static const struct bw_field extent_csum_members[] = {
    {.name = "start, length, checksums",
     .kind = BW_KIND_SPECIAL,
     .write = write_csum,
     .description = "logical addresses of the data, and the checksums, if requested"}};
BW_STRUCTURE(extent_csum, 0, "checksums of data from the key's offset on, one per sector");

static const struct bw_field csum_item_members[] = {BW_PLAIN(BW_LINE "csum item")};
BW_STRUCTURE(csum_item, 0, "checksums, in file systems before 2008");

/* Structures of the items that describe the use of space: extents and their references, block
 * groups, free space, moved ranges. */

static const struct bw_value_names extent_flags = {
    (const struct bw_value_name[]){{1 << 0, "DATA", false},
                                   {1 << 1, "TREE_BLOCK", false},
                                   {1 << 8, "FULL_BACKREF", false},
                                   {0, NULL, false}},
    NULL, ""};

/* References inside an extent item. */

static const struct bw_field inline_root_members[] = {
    {BW_NAME("root"), BW_LEAD(BW_LINE "tree block backref root "),
     BW_DISK_AT(inline_reference, offset), .kind = BW_KIND_TREE,
     .description = "tree that has the block"},
};
static BW_STRUCTURE(inline_root, sizeof(struct bw_disk_inline_reference), "TREE_BLOCK_REF");

static const struct bw_field inline_parent_members[] = {
    {BW_NAME("parent"), BW_LEAD(BW_LINE "shared block backref parent "),
     BW_DISK_AT(inline_reference, offset), .kind = BW_KIND_NUMBER,
     .description = "logical address of the node that points to the block"},
};
static BW_STRUCTURE(inline_parent, sizeof(struct bw_disk_inline_reference), "SHARED_BLOCK_REF");

#define DATA_REF_MEMBERS                                                                 \
    BW_FIELD(BW_LINE "extent data backref root ", extent_data_ref, root, TREE,           \
             "subvolume that uses the extent"),                                          \
        BW_FIELD(" objectid ", extent_data_ref, objectid, NUMBER, "inode that uses it"), \
        BW_FIELD(" offset ", extent_data_ref, offset, NUMBER,                            \
                 "offset in the file, less the offset in the extent"),                   \
        BW_FIELD(" count ", extent_data_ref, count, NUMBER, "how many of its items use it so")

static const struct bw_field extent_data_ref_members[] = {DATA_REF_MEMBERS};
BW_STRUCTURE(extent_data_ref, sizeof(struct bw_disk_extent_data_ref), "a file that uses an extent");

static const struct bw_field inline_data_members[] = {
    {BW_NAME("data"), BW_LEAD(""), BW_DISK_AT(inline_data_ref, reference), .kind = BW_KIND_STRUCT,
     .structure = &bw_structure_extent_data_ref, .description = "the file"},
};
static BW_STRUCTURE(inline_data, sizeof(struct bw_disk_inline_data_ref), "EXTENT_DATA_REF");

static const struct bw_field inline_shared_data_members[] = {
    BW_FIELD(BW_LINE "shared data backref parent ", inline_shared_data_ref, parent, NUMBER,
             "logical address of the leaf that uses the extent"),
    BW_FIELD(" count ", inline_shared_data_ref, count, NUMBER, "how many of its items use it"),
};
static BW_STRUCTURE(inline_shared_data, sizeof(struct bw_disk_inline_shared_data_ref),
                    "SHARED_DATA_REF");

static const struct bw_field inline_owner_members[] = {
    {BW_NAME("root"), BW_LEAD(BW_LINE "extent owner root "), BW_DISK_AT(inline_reference, offset),
     .kind = BW_KIND_NUMBER, .description = "subvolume that wrote the extent, for simple quotas"},
};
static BW_STRUCTURE(inline_owner, sizeof(struct bw_disk_inline_reference), "EXTENT_OWNER_REF");

static const struct bw_structure *const inline_references[] = {
    &bw_structure_inline_root,        &bw_structure_inline_parent, &bw_structure_inline_data,
    &bw_structure_inline_shared_data, &bw_structure_inline_owner,  NULL};

static size_t choose_reference(const struct bw_part *part)
{
    static const uint8_t types[] = {BW_TREE_BLOCK_REF, BW_SHARED_BLOCK_REF, BW_EXTENT_DATA_REF,
                                    BW_SHARED_DATA_REF, BW_EXTENT_OWNER_REF};
    size_t i = 0;
    while (i < sizeof types && types[i] != *part->start)
        i++;
    part->cursor->bad |= i == sizeof types;
    return i;
}

static const struct bw_value_names reference_types = {
    (const struct bw_value_name[]){{BW_TREE_BLOCK_REF, "TREE_BLOCK_REF", false},
                                   {BW_SHARED_BLOCK_REF, "SHARED_BLOCK_REF", false},
                                   {BW_EXTENT_DATA_REF, "EXTENT_DATA_REF", false},
                                   {BW_SHARED_DATA_REF, "SHARED_DATA_REF", false},
                                   {BW_EXTENT_OWNER_REF, "EXTENT_OWNER_REF", false},
                                   {0, NULL, false}},
    NULL, "UNKNOWN."};

static const struct bw_field inline_reference_members[] = {
    {BW_NAME("type"), .quiet = true, BW_DISK_AT(inline_reference, type), .kind = BW_KIND_NAMED,
     .words = &reference_types, .description = "what kind of reference it is"},
    {.kind = BW_KIND_CHOICE,
     .structures = inline_references,
     .choose = choose_reference,
     .description = "by the type"},
};
static BW_STRUCTURE(inline_reference, sizeof(uint8_t), "a reference to the extent");

#define REFERENCES                                                                 \
    {                                                                              \
        BW_NAME("inline_references"), .kind = BW_KIND_LIST,                        \
                                      .structure = &bw_structure_inline_reference, \
                                      .description = "references"                  \
    }
#define EXTENT_MEMBERS                                                                           \
    BW_FIELD(BW_LINE "refs ", extent_item, references, NUMBER, "how many references there are"), \
        BW_FIELD(" gen ", extent_item, generation, NUMBER, "transaction that allocated it"),     \
        BW_WORDED(" flags ", extent_item, flags, FLAGS, extent_flags, "what it is used for")

/* A tree block has its first key and level between the item and the references. */
struct bw_disk_tree_block_extent {
    struct bw_disk_extent_item item;
    struct bw_disk_tree_block_info info;
};

static const struct bw_field tree_block_info_members[] = {
    {BW_NAME("key"), BW_LEAD(BW_LINE "tree block "), BW_DISK_AT(tree_block_extent, info.key),
     .kind = BW_KIND_KEY, .description = "first key of the block"},
    {BW_NAME("level"), BW_LEAD(" level "), BW_DISK_AT(tree_block_extent, info.level),
     .kind = BW_KIND_NUMBER, .description = "its level"},
};
static BW_STRUCTURE(tree_block_info, sizeof(struct bw_disk_tree_block_extent), "a tree block");

static const struct bw_structure *const block_infos[] = {&bw_structure_tree_block_info, NULL};

static size_t choose_block_info(const struct bw_part *part)
{
    const struct bw_disk_extent_item *extent = (const void *)part->start;
    return !(bw_get64(extent->flags) & BW_EXTENT_TREE_BLOCK);
}

static const struct bw_field extent_item_members[] = {
    EXTENT_MEMBERS,
    {.kind = BW_KIND_CHOICE,
     .structures = block_infos,
     .choose = choose_block_info,
     .description = "if it is a tree block"},
    REFERENCES,
};
BW_STRUCTURE(extent_item, sizeof(struct bw_disk_extent_item),
             "an extent of as many bytes as the offset of the key says");

static void write_skinny_level(struct bw_printer *printer, const struct bw_field *member,
                               const struct bw_part *part)
{
    int level = (int)part->key->offset;
    if (printer->json) {
        bw_json_signed(printer->json, member->name, level);
        return;
    }
    bw_print_lead(printer, member);
    bw_buffer_format(printer->text, "%d", level);
}

static const struct bw_field metadata_item_members[] = {
    EXTENT_MEMBERS,
    {BW_NAME("level"), BW_LEAD(BW_LINE "tree block skinny level "), .kind = BW_KIND_SPECIAL,
     .write = write_skinny_level, .description = "level of the block: the offset of the key"},
    REFERENCES,
};
BW_STRUCTURE(metadata_item, sizeof(struct bw_disk_extent_item), "a tree block");

static const struct bw_field tree_block_ref_members[] = {BW_PLAIN(BW_LINE "tree block backref")};
BW_STRUCTURE(tree_block_ref, 0, "a tree that has a block: the offset of the key");

static const struct bw_field shared_block_ref_members[] = {
    BW_PLAIN(BW_LINE "shared block backref")};
BW_STRUCTURE(shared_block_ref, 0, "a node that points to a block: the offset of the key");

static const struct bw_field shared_data_ref_members[] = {
    BW_FIELD(BW_LINE "shared data backref count ", shared_data_ref, count, NUMBER,
             "how many of the leaf's items use it"),
};
BW_STRUCTURE(shared_data_ref, sizeof(struct bw_disk_shared_data_ref),
             "a leaf that uses an extent: the offset of the key");

static const struct bw_field extent_ref_v0_members[] = {
    BW_PLAIN(BW_LINE "extent ref v0 (deprecated)")};
BW_STRUCTURE(extent_ref_v0, 0, "a reference, in file systems before 2009");

const struct bw_value_names bw_group_flags = {
    (const struct bw_value_name[]){{BW_GROUP_DATA, "DATA", false},
                                   {BW_GROUP_METADATA, "METADATA", false},
                                   {BW_GROUP_SYSTEM, "SYSTEM", false},
                                   {BW_GROUP_RAID0, "RAID0", false},
                                   {BW_GROUP_RAID1, "RAID1", false},
                                   {BW_GROUP_DUP, "DUP", false},
                                   {BW_GROUP_RAID10, "RAID10", false},
                                   {BW_GROUP_RAID5, "RAID5", false},
                                   {BW_GROUP_RAID6, "RAID6", false},
                                   {BW_GROUP_RAID1C3, "RAID1C3", false},
                                   {BW_GROUP_RAID1C4, "RAID1C4", false},
                                   {BW_GROUP_PROFILE_MASK, "single", true},
                                   {BW_GROUP_REMAPPED, "REMAPPED", false},
                                   {BW_GROUP_METADATA_REMAP, "METADATA_REMAP", false},
                                   {0, NULL, false}},
    NULL, ""};

static const struct bw_field block_group_v2_members[] = {
    BW_FIELD(BW_LINE "remap_bytes ", block_group_v2, remap_bytes, NUMBER,
             "bytes that were moved here from other block groups"),
    BW_FIELD(" identity_remap_count ", block_group_v2, identity_remap_count, NUMBER,
             "ranges that have not been moved yet"),
};
static BW_STRUCTURE(block_group_v2, sizeof(struct bw_disk_block_group_v2), "with a remap tree");

static const struct bw_structure *const block_groups[] = {&bw_structure_block_group_v2, NULL};

static size_t choose_block_group(const struct bw_part *part)
{
    return part->cursor->next == part->cursor->end;
}

static const struct bw_field block_group_members[] = {
    BW_FIELD(BW_LINE "block group used ", block_group, used, NUMBER, "bytes in use"),
    BW_FIELD(" chunk_objectid ", block_group, chunk_objectid, NUMBER,
             "256, or the number of the tree of extents"),
    BW_WORDED(" flags ", block_group, flags, FLAGS, bw_group_flags, "type and profile"),
    {.kind = BW_KIND_CHOICE,
     .structures = block_groups,
     .choose = choose_block_group,
     .description = "if the file system has a remap tree"},
};
BW_STRUCTURE(block_group, sizeof(struct bw_disk_block_group),
             "a range of addresses that is used for one thing");

static const struct bw_field free_space_info_members[] = {
    BW_FIELD(BW_LINE "free space info extent count ", free_space_info, extent_count, NUMBER,
             "free ranges of the block group"),
    BW_FIELD(" flags ", free_space_info, flags, NUMBER, "1: they are kept as bitmaps"),
};
BW_STRUCTURE(free_space_info, sizeof(struct bw_disk_free_space_info),
             "free space of a block group");

static const struct bw_field free_space_extent_members[] = {BW_PLAIN(BW_LINE "free space extent")};
BW_STRUCTURE(free_space_extent, 0, "a free range, which the key describes");

static const struct bw_field free_space_bitmap_members[] = {
    {BW_NAME("bitmap"), BW_LEAD(BW_LINE "free space bitmap"), .kind = BW_KIND_REST,
     .description = "a bit for each sector, lowest first; 1: free"}};
BW_STRUCTURE(free_space_bitmap, 0, "free sectors in the range that the key describes");

static const struct bw_field free_space_header_members[] = {
    BW_FIELD(BW_LINE "location ", free_space_header, location, KEY, "inode of the cache"),
    BW_FIELD(BW_LINE "cache generation ", free_space_header, generation, NUMBER,
             "transaction that wrote the cache"),
    BW_FIELD(" entries ", free_space_header, entries, NUMBER, "free ranges"),
    BW_FIELD(" bitmaps ", free_space_header, bitmaps, NUMBER, "bitmaps"),
};
BW_STRUCTURE(free_space_header, sizeof(struct bw_disk_free_space_header),
             "free space cache of a block group, version 1");

const struct bw_structure bw_structure_nothing = {.name = "nothing",
                                                  .description = "the key says all"};

static const struct bw_field remap_members[] = {
    BW_FIELD(BW_LINE "address ", remap, address, NUMBER,
             "new address of the range; in a REMAP_BACKREF the old one"),
};
BW_STRUCTURE(remap, sizeof(struct bw_disk_remap), "a range that was moved");
