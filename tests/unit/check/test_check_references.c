/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/check: reference counts, references as the extent tree has them, and lists of the references
 * of both sides; blocks that were visited. */
#include "check/blocks.h"
#include "check/extents.h"
#include "check/inode_sums.h"
#include "check/reference_counts.h"
#include "support/walk_helpers.h"

#include <sys/resource.h>

static void test_counts_agree(void **state)
{
    struct bw_reference_counts *counts = calloc(1, sizeof(struct bw_reference_counts));
    const uint64_t first = bw_reference_hash(1, 2, 3, 4), second = bw_reference_hash(2, 2, 3, 4);
    bw_reference_counts_add(counts, 4096, first, 3);
    bw_reference_counts_add(counts, 4096, second, 1);
    assert_int_equal(bw_reference_counts_disagreeing(counts), 1);
    assert_true(counts->buckets[bw_reference_bucket(4096)]);
    bw_reference_counts_add(counts, 4096, second, UINT64_MAX);
    bw_reference_counts_add(counts, 4096, first, (uint64_t)-2);
    assert_int_equal(bw_reference_counts_disagreeing(counts), 1);
    bw_reference_counts_add(counts, 4096, first, UINT64_MAX);
    assert_int_equal(bw_reference_counts_disagreeing(counts), 0);
    free(counts);
}

/* Every argument of the hash matters, and so does its place. */
static void test_reference_hash(void **state)
{
    const uint64_t hashes[] = {bw_reference_hash(1, 2, 3, 4), bw_reference_hash(0, 2, 3, 4),
                               bw_reference_hash(1, 3, 2, 4), bw_reference_hash(1, 2, 4, 3),
                               bw_reference_hash(1, 2, 3, 5), bw_reference_hash(2, 1, 3, 4)};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(hashes[i], hashes[k]);
}

/* A check of a file system without trees. */
static void make_check(struct bw_check *check, struct bw_fs *fs)
{
    memset(fs, 0, sizeof *fs);
    fs->superblock.nodesize = 16384;
    memset(check, 0, sizeof *check);
    check->fs = fs;
}

/* Two numbers that differ from the right ones in their highest bits do not cancel out. */
static void test_highest_bits(void **state)
{
    static struct bw_check check;
    static struct bw_fs fs;
    make_check(&check, &fs);
    check.secrets = bw_fact_secrets_of(1);
    check.references = calloc(1, sizeof *check.references);
    const struct bw_reference right = {.bytenr = 1 << 20,
                                       .length = 4096,
                                       .kind = BW_EXTENT_DATA_REF,
                                       .source = 5,
                                       .inode = 257,
                                       .count = 1};
    struct bw_reference wrong = right;
    bw_count_promised_reference(&check, &right);
    bw_count_reference(&check, &right);
    assert_int_equal(bw_reference_counts_disagreeing(check.references), 0);
    uint64_t *numbers[] = {&wrong.length, &wrong.source, &wrong.inode, &wrong.offset};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++) {
            memset(check.references, 0, sizeof *check.references);
            *numbers[i] ^= UINT64_C(1) << 63;
            *numbers[k] ^= UINT64_C(1) << 63;
            bw_count_promised_reference(&check, &wrong);
            bw_count_reference(&check, &right);
            assert_int_equal(bw_reference_counts_disagreeing(check.references), 1);
            wrong = right;
        }
    free(check.references);
}

/* An extent item: 2 references of tree 5, 1 of the leaf at 65536, and an owner, which is none. */
static const uint8_t data_item[] = {
    3,   0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,  0, 0, 0, 0, 0,    /* item */
    172, 5, 0, 0, 0, 0, 0, 0, 0,                                                  /* owner */
    178, 5, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, /* tree */
    2,   0, 0, 0,                                                                 /* count */
    184, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0};                                     /* leaf */

static void test_extent_item(void **state)
{
    static struct bw_check check;
    static struct bw_fs fs;
    make_check(&check, &fs);
    struct bw_item item = {{1 << 20, BW_EXTENT_ITEM, 8192}, data_item, sizeof data_item};
    struct bw_extent_entry extent;
    struct bw_reference reference;
    assert_true(bw_extent_entry_decode(&fs, &item, &extent));
    assert_int_equal(extent.length, 8192);
    assert_int_equal(extent.references, 3);
    assert_false(extent.is_block);
    assert_true(bw_extent_reference_step(&extent, &reference));
    assert_int_equal(reference.count, 0);
    assert_true(bw_extent_reference_step(&extent, &reference));
    assert_int_equal(reference.kind, BW_EXTENT_DATA_REF);
    assert_int_equal(reference.source, 5);
    assert_int_equal(reference.inode, 257);
    assert_int_equal(reference.offset, 8192);
    assert_int_equal(reference.count, 2);
    assert_int_equal(reference.length, 8192);
    assert_true(bw_extent_reference_step(&extent, &reference));
    assert_int_equal(reference.kind, BW_SHARED_DATA_REF);
    assert_int_equal(reference.source, 65536);
    assert_int_equal(reference.count, 1);
    assert_false(bw_extent_reference_step(&extent, &reference));
    assert_false(bw_cursor_bad(&extent.inside));
    item.size--;
    assert_true(bw_extent_entry_decode(&fs, &item, &extent));
    while (bw_extent_reference_step(&extent, &reference))
        continue;
    assert_true(bw_cursor_bad(&extent.inside));
    item.size = 25; /* a type, and nothing else */
    assert_true(bw_extent_entry_decode(&fs, &item, &extent));
    assert_false(bw_extent_reference_step(&extent, &reference));
    assert_true(bw_cursor_bad(&extent.inside));
    item.size = 23;
    assert_false(bw_extent_entry_decode(&fs, &item, &extent));
}

static struct bw_reference_entry entry_of(uint64_t bytenr, uint8_t kind, uint64_t source, bool made)
{
    return (struct bw_reference_entry){
        .reference = {.bytenr = bytenr, .kind = kind, .source = source, .count = 1},
        .promised = !made,
        .made = made};
}

/* Only unbalanced entries of open accounts are kept. */
static void test_entries(void **state)
{
    static struct bw_check check;
    static struct bw_fs fs;
    make_check(&check, &fs);
    check.references = calloc(1, sizeof(struct bw_reference_counts));
    struct bw_entries list = {.check = &check, .end = BW_REFERENCE_BUCKETS};
    struct bw_reference_entry entry = entry_of(8192, BW_TREE_BLOCK_REF, 5, false);
    bw_entries_add(&list, &entry);
    assert_int_equal(list.entries.count, 0);
    bw_reference_counts_add(check.references, 8192, 1, 1);
    bw_entries_add(&list, &entry);
    entry = entry_of(8192, BW_TREE_BLOCK_REF, 5, true);
    bw_entries_add(&list, &entry);
    entry = entry_of(8192, BW_TREE_BLOCK_REF, 257, true);
    entry.tree = 256;
    bw_entries_add(&list, &entry);
    entry.tree = 0; /* the first tree that is known names a reference */
    bw_entries_add(&list, &entry);
    entry = entry_of(8192, BW_EXTENT_ITEM, 0, false);
    bw_entries_add(&list, &entry);
    assert_int_equal(list.entries.count, 5);
    bw_entries_merge(&list);
    assert_int_equal(list.entries.count, 2);
    assert_int_equal(list.entries.items[0].reference.kind, BW_EXTENT_ITEM);
    assert_int_equal(list.entries.items[1].reference.source, 257);
    assert_int_equal(list.entries.items[1].tree, 256);
    bw_reference_entries_free(&list.entries);
    free(check.references);
}

/* Too many entries: later accounts are postponed. */
static void test_entries_bounded(void **state)
{
    static struct bw_check check;
    static struct bw_fs fs;
    make_check(&check, &fs);
    check.references = calloc(1, sizeof(struct bw_reference_counts));
    struct bw_entries list = {.check = &check, .end = BW_REFERENCE_BUCKETS};
    for (uint64_t i = 1; i <= 300000; i++) {
        const struct bw_reference_entry entry = entry_of(i * 4096, BW_TREE_BLOCK_REF, 5, true);
        bw_reference_counts_add(check.references, i * 4096, i, 1);
        bw_entries_add(&list, &entry);
    }
    assert_false(list.no_memory);
    assert_true(list.end < BW_REFERENCE_BUCKETS);
    assert_true(list.entries.count < 200000);
    for (size_t i = 0; i < list.entries.count; i++)
        assert_true(bw_reference_bucket(list.entries.items[i].reference.bytenr) < list.end);
    bw_reference_entries_free(&list.entries);
    free(check.references);
}

/* Without memory, blocks that cannot be remembered are not read: a crafted tree would not end. */
static void test_visit_without_memory(void **state)
{
    static struct bw_check check;
    static struct bw_fs fs;
    struct bw_inode_sums sums = {0};
    struct rlimit before, limit;
    enum bw_visit visit = BW_VISIT_FIRST;
    make_check(&check, &fs);
    check.visited = bw_visited_create();
    if (ADDRESS_SPACE_LIMITED) {
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        limit = before;
        limit.rlim_cur = 1;
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        for (uint64_t i = 0; i < 1 << 20 && visit == BW_VISIT_FIRST && !check.no_memory; i++)
            visit = bw_visit(&check, &(struct bw_block_pointer){.bytenr = i << 16}, &sums);
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    }
    bw_visited_destroy(check.visited);
    if (!check.no_memory)
        skip(); /* an emulator has no limit, either */
    assert_int_equal(visit, BW_VISIT_SHARED);
}
