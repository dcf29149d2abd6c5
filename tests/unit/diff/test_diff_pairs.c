/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/diff/pairs.c: two trees, one of which was made from the other by changes, like a snapshot and
 * its origin. Exactly the changes are reported, and shared blocks are not read. */
#include "base/hash_table.h"
#include "diff/diff.h"

#include "btree/edit.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "support/walk_helpers.h"

enum { KEYS = 3000, TREE = BW_UUID_TREE, LARGEST = 900, NODESIZE = 4096 };

/* Two trees with the sizes of their items; 0: no item. */
struct trees {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_block_memory memory;
    struct bw_tree_editor editor;
    struct bw_tree before;
    uint32_t sizes[2][KEYS];
    bool told[KEYS], unknown[KEYS];
    unsigned losses;
    uint64_t announced;
};

static struct bw_key key_of(size_t number)
{
    return (struct bw_key){1000 + number / 10, 1, number % 10};
}

static size_t number_of(const struct bw_key *key)
{
    return (size_t)(key->objectid - 1000) * 10 + (size_t)key->offset;
}

static const uint8_t *bytes_of(size_t number, uint32_t size)
{
    static uint8_t bytes[LARGEST + 1];
    memset(bytes, (int)(number * 7 + size), size);
    return bytes;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void make_trees(struct trees *trees)
{
    *trees = (struct trees){.memory.nodesize = NODESIZE};
    trees->image = iw_create(&(struct iw_options){.nodesize = NODESIZE});
    for (size_t number = 0; number < KEYS; number += 2) {
        trees->sizes[0][number] = trees->sizes[1][number] = 50;
        iw_item(trees->image, TREE, key_of(number), bytes_of(number, 50), 50);
    }
    iw_shape(trees->image, TREE, 12, 6, 2);
    iw_write_memory(trees->image);
    expect_success(open_image(trees->image, NULL, &trees->fs));
    const struct iw_block *root = iw_root_block(trees->image, TREE);
    trees->before =
        (struct bw_tree){TREE, {root->logical, root->generation, (uint8_t)root->level}, 0};
    expect_success(
        bw_editor_create(&trees->editor, &trees->fs->reader, &trees->memory, &trees->before, 77));
}

static void free_trees(struct trees *trees)
{
    bw_editor_destroy(&trees->editor);
    bw_memory_free(&trees->memory);
    bw_fs_close(trees->fs);
    iw_destroy(trees->image);
}

static void put(struct trees *trees, size_t number, uint32_t size)
{
    const struct bw_key key = key_of(number);
    expect_success(size ? bw_edit_put(&trees->editor, &key, bytes_of(number, size), size)
                        : bw_edit_remove(&trees->editor, &key));
    trees->sizes[1][number] = size;
}

/* Changes near one another, so that leaves are split and vanish. */
static void change(struct trees *trees, unsigned count, uint32_t *seed)
{
    size_t near = next_random(seed) % KEYS;
    for (unsigned i = 0; i < count; i++) {
        size_t number = (near + next_random(seed) % (i % 3 ? 60 : KEYS)) % KEYS;
        put(trees, number, next_random(seed) % 2 ? 0 : 1 + next_random(seed) % LARGEST);
    }
}

static void on_pair(struct trees *trees, const struct bw_item_pair *pair)
{
    const size_t number = number_of(&pair->key);
    assert_in_range(number, 0, KEYS - 1);
    assert_false(trees->told[number]);
    trees->told[number] = true;
    trees->unknown[number] = pair->unknown;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_item *item = pair->items[side];
        const uint32_t size = trees->sizes[side][number];
        assert_true(item ? size != 0 : !size || pair->unknown);
        if (item) {
            assert_int_equal(item->size, size);
            assert_memory_equal(item->data, bytes_of(number, size), size);
        }
    }
}

/* Compares, and returns how many blocks that has read. */
static uint64_t compare(struct trees *trees, bool shared)
{
    struct bw_pairs pairs = {.readers = {trees->editor.reader, trees->editor.reader},
                             .trees = {trees->before, trees->editor.tree},
                             .shared = shared};
    memset(trees->told, 0, sizeof trees->told);
    trees->losses = 0;
    while (bw_pairs_next(&pairs)) {
        if (pairs.error)
            trees->losses++;
        else
            on_pair(trees, &pairs.pair);
    }
    expect_success(bw_pairs_end(&pairs, NULL));
    trees->announced = pairs.announced;
    return pairs.blocks;
}

static void expect_all_told(const struct trees *trees)
{
    for (size_t number = 0; number < KEYS; number++) {
        assert_int_equal(trees->told[number], trees->sizes[0][number] != trees->sizes[1][number]);
        assert_false(trees->told[number] && trees->unknown[number]);
    }
}

/* The addresses of a tree's blocks. */
struct blocks {
    struct bw_key_set seen;
    const struct blocks *other;
    uint64_t only; /* those that the other tree does not have */
};

static struct bw_error *note(struct blocks *blocks, const struct bw_node *node)
{
    const struct bw_disk_header *header = (const void *)node->block;
    const uint64_t address = bw_get64(header->bytenr);
    bool is_new;
    assert_null(bw_key_set_add(&blocks->seen, address, &is_new));
    blocks->only += blocks->other && !bw_key_set_has(&blocks->other->seen, address);
    return NULL;
}

static void scan(const struct trees *trees, const struct bw_tree *tree, struct blocks *blocks)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan all = {BW_SCAN_ALL, .nodes = true};
    bw_block_scan_begin(&all, &trees->editor.reader, tree);
    while (bw_block_scan_next(&all))
        expect_success(note(blocks, &all.node));
    expect_success(bw_block_scan_end(&all));
}

static uint64_t count_unshared(const struct trees *trees)
{
    struct blocks before = {.only = 0}, after = {.other = &before};
    scan(trees, &trees->before, &before);
    scan(trees, &trees->editor.tree, &after);
    uint64_t common = after.seen.count - after.only;
    uint64_t unshared = after.only + before.seen.count - common;
    bw_key_set_free(&before.seen);
    bw_key_set_free(&after.seen);
    return unshared;
}

static void test_changes(void **state)
{
    uint64_t announced = 0, unshared_blocks = 0;
    for (uint32_t seed = 1, round = 0; round < 40; round++) {
        struct trees trees;
        make_trees(&trees);
        change(&trees, (unsigned[]){1, 3, 20, 200}[round % 4], &seed);
        uint64_t read = compare(&trees, true);
        expect_all_told(&trees);
        /* One more if the tree has another root that the first one lies below. */
        const uint64_t unshared = count_unshared(&trees);
        assert_in_range(read, 0, unshared + 1);
        announced += trees.announced;
        unshared_blocks += unshared;
        compare(&trees, false);
        expect_all_told(&trees);
        free_trees(&trees);
    }
    assert_in_range(announced, unshared_blocks / 2, unshared_blocks);
}

/* A tree and itself, and a tree and nothing. */
static void test_ends(void **state)
{
    struct trees trees;
    make_trees(&trees);
    assert_int_equal(compare(&trees, true), 0);
    expect_all_told(&trees);
    for (size_t number = 0; number < KEYS; number++)
        put(&trees, number, 0);
    compare(&trees, true);
    expect_all_told(&trees);
    free_trees(&trees);
}

/* Items in a lost leaf are unknown; all others are reported. */
static void test_loss(void **state)
{
    struct trees trees;
    make_trees(&trees);
    const size_t at = 600;
    const struct iw_block *leaf = iw_block_of_key(trees.image, TREE, key_of(at));
    put(&trees, at, 20);
    put(&trees, KEYS - 1, 30);
    iw_corrupt(trees.image, leaf->logical, IW_ALL_COPIES, 200, 1, IW_FLIP);
    compare(&trees, true);
    assert_int_equal(trees.losses, 1);
    unsigned unknown = 0;
    for (size_t number = 0; number < KEYS; number++)
        unknown += trees.told[number] && trees.unknown[number];
    assert_int_equal(unknown, 12);
    assert_true(trees.told[at] && trees.unknown[at]);
    assert_true(trees.told[KEYS - 1] && !trees.unknown[KEYS - 1]);
    free_trees(&trees);
}
