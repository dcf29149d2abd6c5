/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk/tree_item_rules.c: items of the root tree; for each rule an item that breaks it, and
 * one that just does not. */
#include "support/item_cases.h"

enum {
    OLD_ROOT = offsetof(struct bw_disk_root_item, generation_v2),
    PROGRESS = offsetof(struct bw_disk_root_item, drop_progress),
};

static const struct good_item root = {{257, BW_ROOT_ITEM, 0},
                                      sizeof(struct bw_disk_root_item),
                                      BW_ROOT_TREE,
                                      {SET(root_item, generation, 101),
                                       SET(root_item, root_directory, 256),
                                       SET(root_item, bytenr, NODE),
                                       SET(root_item, last_snapshot, 101),
                                       SET(root_item, flags, BW_ROOT_READ_ONLY | BW_ROOT_DEAD),
                                       SET(root_item, drop_level, 7),
                                       {PROGRESS, 8, 257, NULL},
                                       SET(root_item, level, 7),
                                       SET(root_item, generation_v2, 101)}};
/* A snapshot that was made in transaction 50. */
static const struct good_item snapshot = {
    {257, BW_ROOT_ITEM, 50},
    sizeof(struct bw_disk_root_item),
    BW_ROOT_TREE,
    {SET(root_item, generation, 60), SET(root_item, root_directory, 256),
     SET(root_item, generation_v2, 60), SET(root_item, origin_transid, 50),
     SET(root_item, parent_uuid[0], 1)}};
static const struct good_item extents = {{BW_EXTENT_TREE, BW_ROOT_ITEM, 0},
                                         sizeof(struct bw_disk_root_item),
                                         BW_ROOT_TREE,
                                         {SET(root_item, generation, 1)}};

static void test_roots(void **state)
{
    static const struct item_case cases[] = {
        {.good = &root},
        {.good = &root,
         .owner = BW_TREE_LOG,
         .key = {BW_TREE_LOG, BW_ROOT_ITEM, 257},
         .in_log = true},
        {.good = &root,
         .longer = OLD_ROOT - 439 - 1,
         BAD(root_item, "size is 238, not 239 to 439")},
        {.good = &root, .longer = OLD_ROOT - 439},
        {.good = &root, .longer = OLD_ROOT - 439 + 1, BAD(root_item, "size is 240")},
        {.good = &root, .key = {0, BW_ROOT_ITEM, 0}, BAD(root_item, "no tree has the id 0")},
        {.good = &root, .key = {BW_TREE_RELOC, BW_ROOT_ITEM, 257}},
        {.good = &root, .key = {BW_TREE_RELOC, BW_ROOT_ITEM, BW_DATA_RELOC_TREE}},
        {.good = &root,
         .key = {BW_TREE_RELOC, BW_ROOT_ITEM, 0},
         BAD(root_item, "relocation of tree 0, which is not a subvolume")},
        {.good = &root,
         .key = {BW_TREE_RELOC, BW_ROOT_ITEM, 7},
         BAD(root_item, "relocation of tree 7, which is not a subvolume")},
        {.good = &root, .changes = {SET(root_item, generation, 0)}, BAD(root_item, "generation 0")},
        {.good = &root,
         .changes = {SET(root_item, generation, 102)},
         BAD(root_item, "generation 102 is later than the superblock's, 100")},
        {.good = &root,
         .changes = {SET(root_item, generation_v2, 102)},
         BAD(root_item, "generation_v2 102 is later than the superblock's, 100")},
        {.good = &root,
         .changes = {SET(root_item, last_snapshot, 102)},
         BAD(root_item, "last_snapshot 102 is later than the superblock's, 100")},
        {.good = &root,
         .changes = {SET(root_item, bytenr, 1)},
         BAD(root_item, "bytenr 1 is not aligned to 4096")},
        {.good = &root, .changes = {SET(root_item, level, 8)}, BAD(root_item, "level 8")},
        {.good = &root, .changes = {SET(root_item, drop_level, 8)}, BAD(root_item, "drop_level 8")},
        {.good = &root,
         .changes = {SET(root_item, drop_level, 0)},
         BAD(root_item, "drop_level 0 with progress at (257 0 0)")},
        {.good = &root,
         .changes = {{PROGRESS, 8, 0, NULL}},
         BAD(root_item, "drop_level 7 without progress")},
        {.good = &root, .changes = {{PROGRESS, 8, 0, NULL}, SET(root_item, drop_level, 0)}},
        {.good = &extents},
        {.good = &extents,
         .changes = {{PROGRESS, 8, 257, NULL}, SET(root_item, drop_level, 1)},
         BAD(root_item, "drop progress of a tree that is never dropped")},
        {.good = &extents,
         .key = {BW_EXTENT_TREE, BW_ROOT_ITEM, 1},
         BAD(root_item, "no tree has this key")},
        {.good = &extents,
         .key = {BW_EXTENT_TREE, BW_ROOT_ITEM, 1},
         .features = BW_INCOMPAT_EXTENT_TREE_V2},
        {.good = &extents,
         .key = {BW_DEVICE_TREE, BW_ROOT_ITEM, 1},
         .features = BW_INCOMPAT_EXTENT_TREE_V2,
         BAD(root_item, "no tree has this key")},
        {.good = &snapshot},
        {.good = &snapshot,
         .changes = {SET(root_item, origin_transid, 51)},
         BAD(root_item, "made in transaction 51")},
        {.good = &snapshot,
         .key = {257, BW_ROOT_ITEM, 0},
         BAD(root_item, "made in transaction 50")},
        {.good = &snapshot,
         .key = {257, BW_ROOT_ITEM, 0},
         .changes = {SET(root_item, parent_uuid[0], 0)}},
        {.good = &snapshot,
         .key = {257, BW_ROOT_ITEM, 51},
         .changes = {SET(root_item, parent_uuid[0], 0)},
         BAD(root_item, "made in transaction 50")},
        {.good = &snapshot,
         .key = {257, BW_ROOT_ITEM, 51},
         .changes = {SET(root_item, generation, 61)}},
        {.good = &snapshot, .changes = {SET(root_item, origin_transid, 0)}},
        {.good = &root,
         .changes = {SET(root_item, change_transid, 102)},
         BAD(root_item, "change_transid 102 is later than the superblock's, 100")},
        {.good = &root,
         .changes = {SET(root_item, origin_transid, 102)},
         BAD(root_item, "origin_transid 102 is later than the superblock's, 100")},
        {.good = &root,
         .changes = {SET(root_item, root_directory, 257)},
         BAD(root_item, "root_directory 257")},
        {.good = &root,
         .key = {BW_DATA_RELOC_TREE, BW_ROOT_ITEM, 102},
         .changes = {{PROGRESS, 8, 0, NULL}, SET(root_item, drop_level, 0)},
         BAD(root_key, "transaction 102 in the key, generation 101 of the root")},
        {.good = &snapshot,
         .key = {257, BW_ROOT_ITEM, 61},
         .changes = {SET(root_item, origin_transid, 61)},
         BAD(root_key, "transaction 61 in the key, generation 60 of the root")},
        {.good = &root, .changes = {SET(root_item, flags, 2)}, BAD(root_item, "unknown flags 0x2")},
    };
    expect_verdicts(cases, COUNT(cases));
}

/* Trees that exist once have no number in their keys, unless a feature gives them one. */
static void test_keys_of_roots(void **state)
{
    static const uint64_t unique[] = {BW_CHUNK_TREE,       BW_DEVICE_TREE, BW_TOP_SUBVOLUME,
                                      BW_QUOTA_TREE,       BW_UUID_TREE,   BW_BLOCK_GROUP_TREE,
                                      BW_RAID_STRIPE_TREE, BW_REMAP_TREE};
    static const uint64_t global[] = {BW_EXTENT_TREE, BW_CSUM_TREE, BW_FREE_SPACE_TREE};
    struct item_case one = {.good = &extents};
    one.kind = BW_FAULT_root_item;
    one.message = "no tree has this key";
    for (size_t i = 0; i < COUNT(unique); i++)
        for (unsigned v2 = 0; v2 < 2; v2++) {
            one.key = (struct bw_key){unique[i], BW_ROOT_ITEM, 1};
            one.features = v2 ? BW_INCOMPAT_EXTENT_TREE_V2 : 0;
            expect_verdicts(&one, 1);
        }
    for (size_t i = 0; i < COUNT(global); i++) {
        one.key = (struct bw_key){global[i], BW_ROOT_ITEM, 1};
        one.features = 0;
        one.message = "no tree has this key";
        expect_verdicts(&one, 1);
        one.features = BW_INCOMPAT_EXTENT_TREE_V2;
        one.message = NULL;
        expect_verdicts(&one, 1);
    }
}

static const struct good_item root_ref = {
    {5, BW_ROOT_REF, 257},
    sizeof(struct bw_disk_root_ref) + 4,
    BW_ROOT_TREE,
    {SET(root_ref, directory, 256), SET(root_ref, name_length, 4), TEXT(18, "name")}};

static void test_references(void **state)
{
    static const struct item_case cases[] = {
        {.good = &root_ref},
        {.good = &root_ref, .key = {257, BW_ROOT_BACKREF, 5}},
        {.good = &root_ref, .longer = -4, BAD(root_ref, "size is 18, less than 19")},
        {.good = &root_ref, .longer = -1, BAD(root_ref, "size is 21, which does not fit its name")},
        {.good = &root_ref, .longer = 1, BAD(root_ref, "size is 23, which does not fit its name")},
        {.good = &root_ref,
         .key = {7, BW_ROOT_REF, 257},
         BAD(root_ref, "no reference between subvolumes has this key")},
        {.good = &root_ref,
         .key = {257, BW_ROOT_BACKREF, 7},
         BAD(root_ref, "no reference between subvolumes has this key")},
        {.good = &root_ref,
         .changes = {SET(root_ref, directory, 255)},
         BAD(root_ref, "directory 255")},
        {.good = &root_ref,
         .changes = {TEXT(18, "na/e")},
         BAD(root_ref, "a name of 4 bytes that no subvolume can have")},
    };
    expect_verdicts(cases, COUNT(cases));
}
