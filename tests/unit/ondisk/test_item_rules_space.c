/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk/tree_item_rules.c: for each rule an item that breaks it, and one that just does not.
 */
#include "support/item_cases.h"

enum {
    HEAD = sizeof(struct bw_disk_extent_item),
    INFO = sizeof(struct bw_disk_tree_block_info),
    SMALL = sizeof(struct bw_disk_inline_reference),
    SHARED = sizeof(struct bw_disk_inline_shared_data_ref),
    DATA = sizeof(struct bw_disk_inline_data_ref),
    ADDRESS = 1 << 20,
    LENGTH = 16 * SECTOR,
};

/* Of tree 5: inode 257 at 0 and at 8192, inode 258 at 0. */
#define HASH_257      UINT64_C(1007496934145758698)
#define HASH_257_8192 UINT64_C(1007496933831743063)
#define HASH_258      UINT64_C(1007496934479754521)

/* A reference inside an extent item, `at` bytes on. */
#define PLAIN_REF(at, type, offset) \
    BYTE(at, type),                 \
    {                               \
        (at) + 1, 8, offset, NULL   \
    }
#define DATA_REF(at, root, inode, offset, count)                                         \
    BYTE(at, BW_EXTENT_DATA_REF), {(at) + 1, 8, root, NULL}, {(at) + 9, 8, inode, NULL}, \
        {(at) + 17, 8, offset, NULL},                                                    \
    {                                                                                    \
        (at) + 25, 4, count, NULL                                                        \
    }
#define SHARED_REF(at, parent, count)                          \
    BYTE(at, BW_SHARED_DATA_REF), {(at) + 1, 8, parent, NULL}, \
    {                                                          \
        (at) + 9, 4, count, NULL                               \
    }

static const struct good_item data = {{ADDRESS, BW_EXTENT_ITEM, LENGTH},
                                      HEAD + DATA,
                                      BW_EXTENT_TREE,
                                      {SET(extent_item, references, 3),
                                       SET(extent_item, generation, 100),
                                       SET(extent_item, flags, 1), DATA_REF(HEAD, 5, 257, 0, 3)}};
static const struct good_item block = {{ADDRESS, BW_METADATA_ITEM, 7},
                                       HEAD + SMALL,
                                       BW_EXTENT_TREE,
                                       {SET(extent_item, references, 1), SET(extent_item, flags, 2),
                                        PLAIN_REF(HEAD, BW_TREE_BLOCK_REF, 5)}};
static const struct good_item old_block = {
    {ADDRESS, BW_EXTENT_ITEM, NODE},
    HEAD + INFO + SMALL,
    BW_EXTENT_TREE,
    {SET(extent_item, references, 1), SET(extent_item, flags, 2),
     SET_AT(HEAD, tree_block_info, level, 7), PLAIN_REF(HEAD + INFO, BW_TREE_BLOCK_REF, 5)}};

static void test_extent_items(void **state)
{
    static const struct item_case cases[] = {
        {.good = &data},
        {.good = &block},
        {.good = &old_block},
        {.good = &data, .longer = -30, BAD(extent_item, "size is 23, less than 24")},
        {.good = &data, .longer = -29},
        {.good = &block,
         .features = BW_INCOMPAT_SKINNY_METADATA,
         BAD(extent_item, "METADATA_ITEM without the feature skinny-metadata")},
        {.good = &old_block, .features = BW_INCOMPAT_SKINNY_METADATA},
        {.good = &data, .changes = {SET(extent_item, generation, 101)}},
        {.good = &data, .leaf_generation = 100},
        {.good = &data,
         .leaf_generation = 99,
         BAD(extent_generation, "generation 100 is later than the leaf's, 99")},
        {.good = &data,
         .changes = {SET(extent_item, generation, 102)},
         BAD(extent_item, "generation 102 is later than the superblock's, 100")},
        {.good = &data, .changes = {SET(extent_item, flags, 0)}, BAD(extent_item, "flags 0x0")},
        {.good = &data, .changes = {SET(extent_item, flags, 3)}, BAD(extent_item, "flags 0x3")},
        {.good = &data,
         .changes = {SET(extent_item, flags, 0x101)},
         BAD(extent_item, "flags 0x101")},
        {.good = &block, .changes = {SET(extent_item, flags, 0x102)}},
        {.good = &block, .changes = {SET(extent_item, flags, 6)}, BAD(extent_item, "flags 0x6")},
        {.good = &data,
         .key = {ADDRESS + 1, BW_EXTENT_ITEM, LENGTH},
         BAD(extent_item, "address 1048577 is not aligned to 4096")},
        {.good = &data,
         .key = {ADDRESS, BW_EXTENT_ITEM, 5},
         BAD(extent_item, "length 5 is not aligned to 4096")},
        {.good = &data,
         .key = {ADDRESS, BW_METADATA_ITEM, 0},
         BAD(extent_item, "data in a METADATA_ITEM")},
        {.good = &block, .key = {ADDRESS, BW_METADATA_ITEM, 8}, BAD(extent_item, "level 8")},
        {.good = &old_block,
         .key = {ADDRESS, BW_EXTENT_ITEM, SECTOR},
         BAD(extent_item, "tree block of 4096 bytes")},
        {.good = &old_block,
         .changes = {SET_AT(HEAD, tree_block_info, level, 8)},
         BAD(extent_item, "level 8")},
        {.good = &old_block,
         .longer = -SMALL - 1,
         BAD(extent_item, "level and key of the tree block are cut off")},
        {.good = &old_block, .longer = -SMALL},
        {.good = &data,
         .previous = &data,
         .previous_key = {ADDRESS - LENGTH, BW_EXTENT_ITEM, LENGTH}},
        {.good = &data,
         .previous = &data,
         .previous_key = {ADDRESS - LENGTH, BW_EXTENT_ITEM, LENGTH + SECTOR},
         BAD(items_overlap, "the previous extent has 69632 bytes at 983040")},
        {.good = &block, .previous = &block, .previous_key = {ADDRESS - NODE, BW_METADATA_ITEM, 0}},
        {.good = &block,
         .previous = &block,
         .previous_key = {ADDRESS - SECTOR, BW_METADATA_ITEM, 0},
         BAD(items_overlap, "the previous extent has 16384 bytes at 1044480")},
        {.good = &block,
         .owner = BW_CHUNK_TREE,
         BAD(item_type, "items of type METADATA_ITEM do not belong in tree 3")},
    };
    expect_verdicts(cases, COUNT(cases));
}

/* Items that have two references of a kind, which the cases set. */
static const struct good_item two_data = {{ADDRESS, BW_EXTENT_ITEM, LENGTH},
                                          HEAD + 2 * DATA,
                                          BW_EXTENT_TREE,
                                          {SET(extent_item, references, 2),
                                           SET(extent_item, flags, 1), DATA_REF(HEAD, 5, 258, 0, 1),
                                           DATA_REF(HEAD + DATA, 5, 257, 0, 1)}};
static const struct good_item two_shared = {
    {ADDRESS, BW_EXTENT_ITEM, LENGTH},
    HEAD + 2 * SHARED,
    BW_EXTENT_TREE,
    {SET(extent_item, references, 3), SET(extent_item, flags, 1), SHARED_REF(HEAD, 2 * SECTOR, 1),
     SHARED_REF(HEAD + SHARED, SECTOR, 2)}};
static const struct good_item two_blocks = {
    {ADDRESS, BW_METADATA_ITEM, 0},
    HEAD + 2 * SMALL,
    BW_EXTENT_TREE,
    {SET(extent_item, references, 2), SET(extent_item, flags, 2),
     PLAIN_REF(HEAD, BW_TREE_BLOCK_REF, 5), PLAIN_REF(HEAD + SMALL, BW_SHARED_BLOCK_REF, NODE)}};
static const struct good_item owned = {{ADDRESS, BW_EXTENT_ITEM, LENGTH},
                                       HEAD + SMALL + SHARED,
                                       BW_EXTENT_TREE,
                                       {SET(extent_item, references, 1), SET(extent_item, flags, 1),
                                        PLAIN_REF(HEAD, BW_EXTENT_OWNER_REF, 257),
                                        SHARED_REF(HEAD + SMALL, SECTOR, 1)}};

static void test_references_in_extent_items(void **state)
{
    static const struct item_case cases[] = {
        {.good = &two_data},
        {.good = &two_shared},
        {.good = &two_blocks},
        {.good = &owned, .features = BW_INCOMPAT_SIMPLE_QUOTA},
        {.good = &owned,
         .changes = {{HEAD + 1, 8, BW_ROOT_TREE, NULL}},
         .features = BW_INCOMPAT_SIMPLE_QUOTA},
        {.good = &owned,
         .changes = {{HEAD + 1, 8, (uint64_t)BW_DATA_RELOC_TREE, NULL}},
         .features = BW_INCOMPAT_SIMPLE_QUOTA},
        {.good = &owned,
         .changes = {{HEAD + 1, 8, BW_CSUM_TREE, NULL}},
         .features = BW_INCOMPAT_SIMPLE_QUOTA,
         BAD(extent_ref, "owner is tree 7")},
        {.good = &owned, BAD(extent_ref, "EXTENT_OWNER_REF without the feature simple-quota")},
        {.good = &data, .longer = -1, BAD(extent_ref, "reference of type 178 is cut off")},
        {.good = &data, .longer = 1, BAD(extent_ref, "reference of unknown type 0")},
        {.good = &block, .longer = -1, BAD(extent_ref, "reference of type 176 is cut off")},
        {.good = &data,
         .changes = {BYTE(HEAD, 180)},
         BAD(extent_ref, "reference of unknown type 180")},
        {.good = &data,
         .changes = {SET(extent_item, references, 2)},
         BAD(extent_ref, "3 references, but it counts 2")},
        {.good = &data, .changes = {SET(extent_item, references, 4)}},
        {.good = &two_shared,
         .changes = {SET(extent_item, references, 2)},
         BAD(extent_ref, "3 references, but it counts 2")},
        {.good = &two_blocks,
         .changes = {SET(extent_item, references, 1)},
         BAD(extent_ref, "2 references, but it counts 1")},
        {.good = &owned,
         .changes = {SET(extent_item, references, 0)},
         .features = BW_INCOMPAT_SIMPLE_QUOTA,
         BAD(extent_ref, "1 reference, but it counts 0")},
        {.good = &data,
         .changes = {{HEAD + 1, 8, BW_CSUM_TREE, NULL}},
         BAD(extent_ref, "data ref of tree 7")},
        {.good = &data,
         .changes = {{HEAD + 1, 8, UINT64_C(1) << 48, NULL}},
         BAD(extent_ref, "data ref of tree 281474976710656")},
        {.good = &data, .changes = {{HEAD + 1, 8, (UINT64_C(1) << 48) - 1, NULL}}},
        {.good = &data, .changes = {{HEAD + 1, 8, BW_ROOT_TREE, NULL}}},
        {.good = &data, .changes = {{HEAD + 1, 8, BW_DATA_RELOC_TREE, NULL}}},
        {.good = &data,
         .changes = {{HEAD + 9, 8, 255, NULL}},
         BAD(extent_ref, "data ref of inode 255")},
        {.good = &data, .changes = {{HEAD + 9, 8, BW_FREE_INODE, NULL}}},
        {.good = &data,
         .changes = {{HEAD + 17, 8, 1, NULL}},
         BAD(extent_ref, "offset of data ref 1 is not aligned to 4096")},
        {.good = &data,
         .changes = {{HEAD + 25, 4, 0, NULL}},
         BAD(extent_ref, "data ref with the count 0")},
        {.good = &two_shared,
         .changes = {{HEAD + 9, 4, 0, NULL}},
         BAD(extent_ref, "shared data ref with the count 0")},
        {.good = &two_shared,
         .changes = {{HEAD + 1, 8, 2 * SECTOR + 1, NULL}},
         BAD(extent_ref, "parent 8193 is not aligned to 4096")},
        {.good = &two_blocks,
         .changes = {{HEAD + SMALL + 1, 8, 1, NULL}},
         BAD(extent_ref, "parent 1 is not aligned to 4096")},
        {.good = &block,
         .changes = {SET(extent_item, flags, 1)},
         .key = {ADDRESS, BW_EXTENT_ITEM, LENGTH},
         BAD(extent_ref, "reference of type 176 to data")},
        {.good = &block,
         .changes = {BYTE(HEAD, BW_EXTENT_OWNER_REF)},
         BAD(extent_ref, "reference of type 172 to a tree block")},
        {.good = &two_data, .changes = {{HEAD + DATA + 9, 8, 258, NULL}}},
        {.good = &two_data,
         .changes = {{HEAD + 9, 8, 257, NULL}, {HEAD + DATA + 9, 8, 258, NULL}},
         BAD(extent_ref_order, "reference of type 178 follows type 178")},
        {.good = &two_shared, .changes = {{HEAD + 1, 8, SECTOR, NULL}}},
        {.good = &two_shared,
         .changes = {{HEAD + 1, 8, 0, NULL}},
         BAD(extent_ref_order, "reference of type 184 follows type 184")},
        {.good = &two_blocks,
         .changes = {BYTE(HEAD, BW_SHARED_BLOCK_REF),
                     {HEAD + 1, 8, 0, NULL},
                     BYTE(HEAD + SMALL, BW_TREE_BLOCK_REF)},
         BAD(extent_ref_order, "reference of type 176 follows type 182")},
    };
    expect_verdicts(cases, COUNT(cases));
}

static const struct good_item tree_ref = {
    {ADDRESS, BW_TREE_BLOCK_REF, 5}, 0, BW_EXTENT_TREE, {{0}}};
static const struct good_item shared_block = {
    {ADDRESS, BW_SHARED_BLOCK_REF, NODE}, 0, BW_EXTENT_TREE, {{0}}};
static const struct good_item shared_data = {
    {ADDRESS, BW_SHARED_DATA_REF, NODE}, 4, BW_EXTENT_TREE, {SET(shared_data_ref, count, 1)}};
static const struct good_item data_ref = {
    {ADDRESS, BW_EXTENT_DATA_REF, HASH_257_8192},
    sizeof(struct bw_disk_extent_data_ref),
    BW_EXTENT_TREE,
    {SET(extent_data_ref, root, 5), SET(extent_data_ref, objectid, 257),
     SET(extent_data_ref, offset, 8192), SET(extent_data_ref, count, 1)}};

static void test_references_of_their_own(void **state)
{
    static const struct item_case cases[] = {
        {.good = &tree_ref},
        {.good = &shared_block},
        {.good = &shared_data},
        {.good = &data_ref},
        {.good = &tree_ref, .longer = 1, BAD(extent_ref, "size is 1, not 0")},
        {.good = &shared_block, .longer = 1, BAD(extent_ref, "size is 1, not 0")},
        {.good = &shared_data, .longer = -1, BAD(extent_ref, "size is 3, not 4")},
        {.good = &shared_data,
         .changes = {SET(shared_data_ref, count, 0)},
         BAD(extent_ref, "shared data ref with the count 0")},
        {.good = &tree_ref,
         .key = {ADDRESS + 1, BW_TREE_BLOCK_REF, 5},
         BAD(extent_ref, "address 1048577 is not aligned to 4096")},
        {.good = &shared_block,
         .key = {ADDRESS, BW_SHARED_BLOCK_REF, 5},
         BAD(extent_ref, "parent 5 is not aligned to 4096")},
        {.good = &shared_data,
         .key = {ADDRESS, BW_SHARED_DATA_REF, 5},
         BAD(extent_ref, "parent 5 is not aligned to 4096")},
        {.good = &data_ref, .longer = -1, BAD(extent_ref, "size is 27, less than 28")},
        {.good = &data_ref, .longer = 1, BAD(extent_ref, "size is 29, not a multiple of 28")},
        {.good = &data_ref,
         .key = {ADDRESS + 1, BW_EXTENT_DATA_REF, HASH_257_8192},
         BAD(extent_ref, "address 1048577 is not aligned to 4096")},
        {.good = &data_ref, .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_257_8192 + UINT16_MAX}},
        {.good = &data_ref,
         .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_257_8192 + UINT16_MAX + 1},
         BAD(extent_ref, "data ref has the hash 1007496933831743063")},
        {.good = &data_ref,
         .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_257_8192 - 1},
         BAD(extent_ref, "data ref has the hash 1007496933831743063")},
        {.good = &data_ref,
         .changes = {SET(extent_data_ref, offset, 0)},
         .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_257}},
        {.good = &data_ref,
         .changes = {SET(extent_data_ref, offset, 0), SET(extent_data_ref, objectid, 258)},
         .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_258}},
        {.good = &data_ref,
         .changes = {SET(extent_data_ref, count, 0)},
         BAD(extent_ref, "data ref with the count 0")},
        {.good = &data_ref, /* several references: the key belongs to none of them */
         .changes = {{28, 8, 5, NULL}, {36, 8, 258, NULL}, {52, 4, 1, NULL}},
         .key = {ADDRESS, BW_EXTENT_DATA_REF, HASH_257_8192 - 1},
         .longer = 28},
        {.good = &data_ref,
         .changes = {{28, 8, 5, NULL}, {36, 8, 258, NULL}},
         .longer = 28,
         BAD(extent_ref, "data ref with the count 0")},
        {.good = &data_ref,
         .changes = {SET(extent_data_ref, root, 4)},
         BAD(extent_ref, "data ref of tree 4")},
    };
    expect_verdicts(cases, COUNT(cases));
}

static const struct good_item group = {{ADDRESS, BW_BLOCK_GROUP_ITEM, 1 << 23},
                                       sizeof(struct bw_disk_block_group),
                                       BW_EXTENT_TREE,
                                       {SET(block_group, used, 1 << 23),
                                        SET(block_group, chunk_objectid, 256),
                                        SET(block_group, flags, BW_GROUP_DATA | BW_GROUP_RAID1)}};
static const struct good_item group_v2 = {
    {ADDRESS, BW_BLOCK_GROUP_ITEM, 1 << 23},
    sizeof(struct bw_disk_block_group_v2),
    BW_BLOCK_GROUP_TREE,
    {SET(block_group_v2, chunk_objectid, 256), SET(block_group_v2, flags, BW_GROUP_METADATA_REMAP),
     SET(block_group_v2, remap_bytes, 1 << 23), SET(block_group_v2, identity_remap_count, 2048)}};

static void test_block_groups(void **state)
{
    static const struct item_case cases[] = {
        {.good = &group},
        {.good = &group, .owner = BW_BLOCK_GROUP_TREE},
        {.good = &group, .longer = -1, BAD(block_group_item, "size is 23, not 24 to 36")},
        {.good = &group, .longer = 12, BAD(block_group_item, "size is 36")},
        {.good = &group, .features = BW_INCOMPAT_REMAP_TREE, BAD(block_group_item, "size is 24")},
        {.good = &group_v2, .features = BW_INCOMPAT_REMAP_TREE},
        {.good = &group_v2,
         .features = BW_INCOMPAT_REMAP_TREE,
         .changes = {SET(block_group_v2, remap_bytes, (1 << 23) + 1)},
         BAD(block_group_item, "remap_bytes 8388609 of 8388608")},
        {.good = &group_v2,
         .features = BW_INCOMPAT_REMAP_TREE,
         .changes = {SET(block_group_v2, identity_remap_count, 2049)},
         BAD(block_group_item, "identity_remap_count 2049")},
        {.good = &group_v2, BAD(block_group_item, "type 0x1000 without the feature remap-tree")},
        {.good = &group,
         .key = {ADDRESS, BW_BLOCK_GROUP_ITEM, 0},
         BAD(block_group_item, "length 0")},
        {.good = &group,
         .key = {ADDRESS, BW_BLOCK_GROUP_ITEM, -(uint64_t)ADDRESS},
         BAD(block_group_item, "length 18446744073708503040")},
        {.good = &group,
         .changes = {SET(block_group, used, (1 << 23) + 1)},
         BAD(block_group_item, "used 8388609 of 8388608")},
        {.good = &group,
         .changes = {SET(block_group, chunk_objectid, 1)},
         BAD(block_group_item, "chunk objectid 1")},
        {.good = &group,
         .changes = {SET(block_group, chunk_objectid, 1)},
         .features = BW_INCOMPAT_EXTENT_TREE_V2},
        {.good = &group,
         .changes = {SET(block_group, flags, 0x18 | BW_GROUP_DATA)},
         BAD(block_group_item, "more than one profile in the type 0x19")},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_RAID1)},
         BAD(block_group_item, "type 0x10")},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_DATA | BW_GROUP_SYSTEM)},
         BAD(block_group_item, "type 0x3")},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_DATA | BW_GROUP_METADATA)},
         .features = BW_INCOMPAT_MIXED_GROUPS},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_DATA | BW_GROUP_METADATA)},
         BAD(block_group_item, "data and metadata without the feature mixed-groups")},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_DATA | 1 << 13)},
         BAD(block_group_item, "unknown bits 0x2000 in the type")},
        {.good = &group,
         .changes = {SET(block_group, flags, BW_GROUP_DATA | BW_GROUP_REMAPPED)},
         BAD(block_group_item, "type 0x801 without the feature remap-tree")},
    };
    expect_verdicts(cases, COUNT(cases));
}

static const struct good_item sums = {
    {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, ADDRESS}, 16, BW_CSUM_TREE, {{0}}};

static void test_checksums(void **state)
{
    static const struct item_case cases[] = {
        {.good = &sums},
        {.good = &sums, .in_log = true},
        {.good = &sums, .longer = -16, BAD(checksum_item, "size is 0, less than 1")},
        {.good = &sums, .longer = -1, BAD(checksum_item, "size is 15, not a multiple of 4")},
        {.good = &sums,
         .key = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, 1},
         BAD(checksum_item, "address 1 is not aligned to 4096")},
        {.good = &sums,
         .key = {257, BW_EXTENT_CSUM, ADDRESS},
         BAD(checksum_item, "checksums with the object id 257")},
        {.good = &sums, .key = {BW_CSUM_CHANGE, BW_EXTENT_CSUM, ADDRESS}, .longer = 1},
        {.good = &sums,
         .previous = &sums,
         .previous_key = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, ADDRESS - 4 * SECTOR}},
        {.good = &sums,
         .previous = &sums,
         .previous_key = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, ADDRESS - 3 * SECTOR},
         BAD(items_overlap, "the previous checksums are of 16384 bytes at 1036288")},
        {.good = &sums,
         .previous = &sums,
         .previous_key = {BW_CSUM_CHANGE, BW_EXTENT_CSUM, ADDRESS - 3 * SECTOR}},
        {.good = &sums,
         .previous = &sums,
         .previous_key = {BW_EXTENT_CSUM_OBJECT, BW_STRING_ITEM, ADDRESS - 3 * SECTOR}},
    };
    expect_verdicts(cases, COUNT(cases));
}
