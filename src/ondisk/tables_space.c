/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures of the items that say what space is used for: extents and their references, block
 * groups, free space, moved ranges. */
#include "ondisk/disk_items.h"
#include "ondisk/tables.h"

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
