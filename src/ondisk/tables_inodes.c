/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures of the items of subvolume trees: inodes, their names and attributes, file extents,
 * verity; and the checksums of data. */
#include "base/decimal.h"
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

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

/* A name that follows the structure; its length stands in the member name_length. */
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
BW_STRUCTURE(bytes, 0, "a piece of what fs-verity stores for a file");

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
     .description = "logical addresses of the data, and the checksums, if they are asked for"}};
BW_STRUCTURE(extent_csum, 0, "checksums of data from the offset of the key on, one a sector");

static const struct bw_field csum_item_members[] = {BW_PLAIN(BW_LINE "csum item")};
BW_STRUCTURE(csum_item, 0, "checksums, in file systems before 2008");
