/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk/file_item_rules.c: fs-verity, orphans and logs; for each rule an item that breaks it,
 * and one that just does not. */
#include <sys/stat.h>

#include "support/item_cases.h"

static const struct good_item inode = {{257, BW_INODE_ITEM, 0},
                                       sizeof(struct bw_disk_inode_item),
                                       FS,
                                       {SET(inode_item, generation, 100),
                                        SET(inode_item, mode, S_IFREG | 0644),
                                        SET(inode_item, link_count, 1)}};

static const struct good_item orphan = {{BW_ORPHAN, BW_ORPHAN_ITEM, 257}, 0, FS, {{0}}};
static const struct good_item dir_log = {{256, BW_DIR_LOG_INDEX, 7},
                                         sizeof(struct bw_disk_dir_log),
                                         BW_TREE_LOG,
                                         {SET(dir_log, end, 7)}};
static const struct good_item verity = {{257, BW_VERITY_DESC_ITEM, 0},
                                        sizeof(struct bw_disk_verity_descriptor),
                                        FS,
                                        {SET(verity_descriptor, size, INT32_MAX)}};
static const struct good_item unknown = {{257, 77, 0}, 8, FS, {{0}}};

static void test_other_items_of_files(void **state)
{
    static const struct item_case cases[] = {
        {.good = &orphan},
        {.good = &orphan, .longer = 1, BAD(orphan_item, "size is 1, not 0")},
        {.good = &orphan,
         .key = {257, BW_ORPHAN_ITEM, 257},
         BAD(orphan_item, "no orphan has this key")},
        {.good = &dir_log, .in_log = true},
        {.good = &dir_log,
         .changes = {SET(dir_log, end, 6)},
         BAD(dir_log_item, "its range ends at 6, before it begins")},
        {.good = &dir_log, .longer = 1, BAD(dir_log_item, "size is 9, not 8")},
        {.good = &dir_log,
         .owner = FS,
         BAD(item_type, "items of type DIR_LOG_INDEX do not belong in tree 5")},
        {.good = &verity,
         .longer = -25,
         .key = {257, BW_VERITY_MERKLE_ITEM, 0},
         BAD(verity_item, "size is 0, less than 1")},
        {.good = &dir_log},
        {.good = &unknown, .owner = BW_SYNOLOGY_FIRST_TREE},
        {.good = &unknown, .owner = BW_SYNOLOGY_LAST_TREE},
        {.good = &unknown,
         .owner = BW_SYNOLOGY_LAST_TREE + 1,
         BAD(item_type, "items of type 77 are unknown")},
        {.good = &unknown, BAD(item_type, "items of type 77 are unknown")},
        {.good = &unknown, .owner = 77, BAD(item_type, "items of type 77 are unknown")},
        {.good = &unknown, .key = {257, BW_STRING_ITEM, 0}},
        {.good = &unknown,
         .key = {257, BW_UNTYPED, 0},
         BAD(item_type, "items of type 0 are unknown")},
        {.good = &inode, .owner = 77},
        {.good = &inode, .owner = BW_DATA_RELOC_TREE},
    };
    expect_verdicts(cases, COUNT(cases));
}

/* Bytes of its descriptor, and of its tree of hashes. */
static const struct good_item piece = {
    {257, BW_VERITY_DESC_ITEM, 1}, 2048, FS, {BYTE(0, 1), {4, 4, 3000 - 256, NULL}}};
static const struct good_item long_verity = {{257, BW_VERITY_DESC_ITEM, 0},
                                             sizeof(struct bw_disk_verity_descriptor),
                                             FS,
                                             {SET(verity_descriptor, size, 3000)}};
static void test_verity(void **state)
{
    static const struct item_case cases[] = {
        {.good = &verity},
        {.good = &verity, .longer = -1, BAD(verity_item, "size is 24, not 25")},
        {.good = &piece},
        {.good = &piece, .previous = &long_verity},
        {.good = &piece, .longer = 1, BAD(verity_item, "2049 bytes at 0 are no piece")},
        {.good = &piece,
         .key = {257, BW_VERITY_DESC_ITEM, 2},
         BAD(verity_item, "2048 bytes at 1 are no piece")},
        {.good = &piece,
         .key = {257, BW_VERITY_DESC_ITEM, 2},
         .longer = -2047,
         BAD(verity_item, "1 byte at 1 is no piece")},
        {.good = &piece, .key = {257, BW_VERITY_DESC_ITEM, 2049}, .previous = &piece},
        {.good = &piece,
         .key = {257, BW_VERITY_DESC_ITEM, 4097},
         .previous = &piece,
         BAD(verity_item, "no piece ends at 4096")},
        {.good = &piece,
         .key = {257, BW_VERITY_DESC_ITEM, 4097},
         .owner = BW_TREE_LOG,
         .in_log = true,
         .previous = &piece},
        {.good = &piece, .key = {257, BW_VERITY_MERKLE_ITEM, 0}, .previous = &piece},
        {.good = &piece, .key = {257, BW_VERITY_MERKLE_ITEM, 1024}, .longer = -1024},
        {.good = &piece,
         .key = {257, BW_VERITY_MERKLE_ITEM, 2048},
         .previous = &piece,
         BAD(verity_item, "no piece ends at 2048")},
        {.good = &piece,
         .key = {257, BW_VERITY_MERKLE_ITEM, 2048},
         .previous = &piece,
         .previous_key = {257, BW_VERITY_MERKLE_ITEM, 0}},
        {.good = &piece,
         .key = {257, BW_VERITY_MERKLE_ITEM, 2048},
         .previous = &piece,
         .previous_key = {256, BW_VERITY_MERKLE_ITEM, 0},
         BAD(verity_item, "no piece ends at 2048")},
        {.good = &verity,
         .changes = {SET(verity_descriptor, size, UINT64_C(1) << 31)},
         BAD(verity_item, "size of the descriptor 2147483648")},
        {.good = &verity,
         .changes = {SET(verity_descriptor, reserved[0], 1)},
         BAD(verity_item, "reserved bytes are not zero")},
        {.good = &verity,
         .changes = {SET(verity_descriptor, reserved[1], 1)},
         BAD(verity_item, "reserved bytes are not zero")},
        {.good = &verity,
         .changes = {SET(verity_descriptor, encryption, 1)},
         BAD(verity_item, "encryption 1")},
    };
    expect_verdicts(cases, COUNT(cases));
}
