/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/btree: scans of ranges on every level, lost blocks, lenient scans, pointers instead of
 * leaves. */
#include "btree/scan.h"
#include "fs/fs.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

enum { ITEMS = 100, TREE = BW_UUID_TREE };

/* A tree of items (1000 + n, 1, n), n from 0, with some per leaf and at least `level` levels. */
static struct iw_image *make_tree(unsigned items_per_leaf, unsigned level)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    for (uint64_t n = 0; n < ITEMS; n++)
        iw_item(image, TREE, (struct bw_key){1000 + n, 1, n}, "item", 4);
    iw_shape(image, TREE, items_per_leaf, level < 4 ? 5 : 3, level);
    iw_write_memory(image);
    return image;
}

static struct bw_tree tree_of(const struct iw_image *image)
{
    const struct iw_block *root = iw_root_block(image, TREE);
    return (struct bw_tree){TREE, {root->logical, root->generation, (uint8_t)root->level}, 0};
}

struct collected {
    unsigned seen[ITEMS]; /* how often each item came */
    size_t leaves, pointers, lost;
    uint64_t last;
    bool ordered;
    size_t stop_after;
};

static struct bw_error *take_leaf(struct collected *collected, const struct bw_node *leaf)
{
    collected->leaves++;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_key key = bw_leaf_key(leaf, slot);
        assert_in_range(key.objectid, 1000, 1000 + ITEMS - 1);
        collected->seen[key.objectid - 1000]++;
        collected->ordered &= key.objectid > collected->last;
        collected->last = key.objectid;
    }
    return collected->leaves == collected->stop_after ? bw_error_create(BW_ERROR_STOPPED, "enough")
                                                      : NULL;
}

/* Scans down to the leaves, or only down to the pointers to nodes of level 1. */
static struct bw_error *run_scan(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                 struct bw_block_scan *scan, struct collected *collected)
{
    struct bw_error *error = NULL;
    bw_block_scan_begin(scan, reader, tree);
    while (!error && bw_block_scan_next(scan)) {
        const struct bw_tree_block_expectation *expectation = &scan->pointer.expectation;
        if (scan->step == BW_SCAN_LEAF) {
            error = take_leaf(collected, &scan->node);
        } else if (scan->step == BW_SCAN_POINTER) {
            scan->selected = expectation->level > 1;
            collected->pointers += !scan->selected;
        } else {
            assert_int_equal(scan->step, BW_SCAN_LOST);
            assert_non_null(scan->error);
            assert_int_equal(scan->node.item_count, 0);
            collected->lost++;
            assert_true(bw_key_compare(&expectation->first_key, &expectation->end_key) < 0);
        }
    }
    error = bw_error_first(error, bw_block_scan_end(scan));
    bw_block_scan_free(scan);
    return error;
}

static struct bw_error *scan_tree(const struct iw_image *image, struct bw_block_scan scan,
                                  struct collected *collected)
{
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    const struct bw_tree tree = tree_of(image);
    size_t stop_after = collected->stop_after;
    *collected = (struct collected){.ordered = true, .stop_after = stop_after};
    struct bw_error *error = run_scan(&fs->reader, &tree, &scan, collected);
    bw_fs_close(fs);
    return error;
}

static void test_whole_trees(void **state)
{
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        for (unsigned lenient = 0; lenient < 2; lenient++) {
            struct collected collected = {0};
            struct iw_image *image = make_tree(level ? 7 : ITEMS, level);
            const struct bw_block_scan scan = {BW_SCAN_ALL, .lenient = lenient};
            assert_true(iw_root_block(image, TREE)->level >= level);
            expect_success(scan_tree(image, scan, &collected));
            for (size_t n = 0; n < ITEMS; n++)
                assert_int_equal(collected.seen[n], 1);
            assert_true(collected.ordered);
            assert_int_equal(collected.lost, 0);
            assert_int_equal(collected.leaves, level ? (ITEMS + 6) / 7 : 1);
            iw_destroy(image);
        }
}

/* All of a range is met, and no more leaves than hold it. */
static void test_ranges(void **state)
{
    struct iw_image *image = make_tree(5, 3);
    for (uint64_t first = 0; first < ITEMS; first += 3)
        for (uint64_t last = first; last < ITEMS; last += 7) {
            struct collected collected = {0};
            const struct bw_block_scan scan = {.first = {1000 + first, 0, 0},
                                               .last = {1000 + last, 255, UINT64_MAX}};
            expect_success(scan_tree(image, scan, &collected));
            for (uint64_t n = first; n <= last; n++)
                assert_int_equal(collected.seen[n], 1);
            assert_true(collected.leaves <= last / 5 - first / 5 + 2);
            assert_true(collected.ordered);
        }
    struct collected none = {0};
    expect_success(scan_tree(
        image, (struct bw_block_scan){.first = {5000, 0, 0}, .last = {6000, 0, 0}}, &none));
    assert_true(none.leaves <= 1);
    iw_destroy(image);
}

static void test_stop_above_leaves(void **state)
{
    for (unsigned level = 0; level < 5; level++) {
        struct collected collected = {0};
        struct iw_image *image = make_tree(level ? 7 : ITEMS, level);
        size_t nodes = 0;
        while (iw_block_find(image, TREE, 1, nodes))
            nodes++;
        expect_success(
            scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL, .pointers = true}, &collected));
        assert_int_equal(collected.leaves, 0);
        assert_int_equal(collected.pointers, nodes ? nodes : 1);
        iw_destroy(image);
    }
}

static void test_leaf_function_ends_the_scan(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    struct collected collected = {.stop_after = 3};
    expect_error(scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL}, &collected),
                 BW_ERROR_STOPPED, "enough");
    assert_int_equal(collected.leaves, 3);
    iw_destroy(image);
}

/* Loses each block in turn: exactly the items below it are missing. */
static void test_lost_blocks(void **state)
{
    struct iw_image *image = make_tree(5, 3);
    for (unsigned level = 0; level <= 3; level++) {
        const struct iw_block *block;
        for (size_t nth = 0; (block = iw_block_find(image, TREE, level, nth)); nth++) {
            const struct iw_block *next = iw_block_find(image, TREE, level, nth + 1);
            uint64_t end = next ? next->first_key.objectid : 1000 + ITEMS;
            struct collected collected = {0};
            iw_corrupt(image, block->logical, 1, 0, 32, IW_FLIP);
            expect_success(scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL}, &collected));
            assert_int_equal(collected.lost, 1);
            for (uint64_t n = 0; n < ITEMS; n++)
                assert_int_equal(collected.seen[n],
                                 1000 + n < block->first_key.objectid || 1000 + n >= end);
            iw_corrupt(image, block->logical, 1, 0, 32, IW_FLIP);
        }
    }
    iw_destroy(image);
}

/* Editors. */

static struct bw_disk_key_pointer *pointers_of(uint8_t *block)
{
    return (void *)(block + sizeof(struct bw_disk_header));
}

static void point_all_at_first(uint8_t *block, uint32_t nodesize, void *closure)
{
    for (uint32_t i = 1; i < bw_get32(((struct bw_disk_header *)block)->item_count); i++)
        pointers_of(block)[i].bytenr = pointers_of(block)[0].bytenr;
}

static void spoil_key(uint8_t *block, uint32_t nodesize, void *closure)
{
    pointers_of(block)[1].key.objectid = bw_put64(*(const uint64_t *)closure);
}

/* A key of a node is wrong: strictly, its child is lost; leniently, it is met. */
static void test_wrong_key(void **state)
{
    uint64_t wrong = 1006;
    struct iw_image *image = make_tree(5, 2);
    struct collected collected = {0};
    iw_rewrite_block(image, iw_block_find(image, TREE, 1, 0)->logical, spoil_key, &wrong, true);
    expect_success(scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL}, &collected));
    assert_int_equal(collected.lost, 1);
    for (size_t n = 0; n < ITEMS; n++)
        assert_int_equal(collected.seen[n], n < 5 || n >= 10);
    expect_success(
        scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL, .lenient = true}, &collected));
    assert_int_equal(collected.lost, 0);
    for (size_t n = 0; n < ITEMS; n++)
        assert_int_equal(collected.seen[n], 1);
    iw_destroy(image);
}

/* All pointers of all nodes lead to one child each: leniently each block is met once, strictly the
 * others are lost. */
static void test_many_ways(void **state)
{
    for (unsigned lenient = 0; lenient < 2; lenient++) {
        struct iw_image *image = make_tree(1, 7);
        struct collected collected = {0};
        const struct iw_block *node;
        for (unsigned level = 1; level < 8; level++)
            for (size_t nth = 0; (node = iw_block_find(image, TREE, level, nth)); nth++)
                iw_rewrite_block(image, node->logical, point_all_at_first, NULL, true);
        expect_success(
            scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL, .lenient = lenient}, &collected));
        assert_int_equal(collected.leaves, 1);
        assert_int_equal(collected.seen[0], 1);
        assert_true(lenient ? collected.lost == 0 : collected.lost > 0);
        iw_destroy(image);
    }
}

/* A node of level 2 has a key outside the range of its parent: the child is lost, and no item comes
 * twice. */
static void test_key_beyond_the_parents(void **state)
{
    uint64_t far = 1090;
    struct iw_image *image = make_tree(1, 3);
    struct collected collected = {0};
    iw_rewrite_block(image, iw_block_find(image, TREE, 2, 0)->logical, spoil_key, &far, true);
    expect_success(scan_tree(image, (struct bw_block_scan){BW_SCAN_ALL}, &collected));
    assert_true(collected.lost > 0);
    assert_true(collected.ordered);
    for (size_t n = 0; n < ITEMS; n++)
        assert_true(collected.seen[n] <= 1);
    iw_destroy(image);
}

static void spoil_last_keys(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *items = (void *)(block + sizeof(struct bw_disk_header));
    items[3].key.objectid = bw_put64(1050);
    items[4].key.objectid = bw_put64(1051);
}

/* The last keys of a leaf belong in a later one: `cut` leaves these items out, also if the leaf
 * that they belong in is lost. */
static void test_items_beyond_their_leaf(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    struct collected collected = {0};
    struct bw_block_scan scan = {BW_SCAN_ALL};
    iw_rewrite_block(image, iw_block_find(image, TREE, 0, 1)->logical, spoil_last_keys, NULL, true);
    iw_corrupt(image, iw_block_find(image, TREE, 0, 10)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
    expect_success(scan_tree(image, scan, &collected));
    assert_int_equal(collected.seen[50] + collected.seen[51], 2);
    scan.cut = true;
    expect_success(scan_tree(image, scan, &collected));
    assert_true(collected.ordered);
    assert_int_equal(collected.lost, 1);
    for (size_t n = 0; n < ITEMS; n++)
        assert_int_equal(collected.seen[n], n != 8 && n != 9 && (n < 50 || n >= 55));
    iw_destroy(image);
}

/* Nobody knows the leaves below a lost node: it is lost as a whole, also if they were wanted. */
static void test_nobody_adopts(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    struct collected collected = {.ordered = true};
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true};
    struct bw_fs *fs;
    iw_corrupt(image, iw_block_find(image, TREE, 1, 0)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
    expect_success(open_image(image, NULL, &fs));
    struct bw_tree_reader reader = fs->reader;
    const struct bw_tree tree = tree_of(image);
    reader.adopter = NULL;
    expect_success(run_scan(&reader, &tree, &scan, &collected));
    assert_int_equal(collected.lost, 1);
    assert_true(collected.leaves > 0);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* Leaves that are announced are selected once, before the first of them is read; those that are not
 * selected are not read. The same memory serves several scans, also after one that ended early. */
static void test_selected_leaves(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    const struct bw_tree tree = tree_of(image);
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    for (unsigned round = 0; round < 8; round++) {
        size_t asked = 0, read = 0, expected = 0;
        scan.announce = round & 1;
        bw_block_scan_begin(&scan, &fs->reader, &tree);
        while (bw_block_scan_next(&scan) && (round & 2 || read < 3)) {
            const uint8_t level = scan.pointer.expectation.level;
            if (scan.step == BW_SCAN_LEAF) {
                read++;
                continue;
            }
            assert_int_equal(scan.step, BW_SCAN_POINTER);
            scan.selected = level || asked % 2;
            asked += !level;
            expected += !level && scan.selected;
        }
        expect_success(bw_block_scan_end(&scan));
        if (round & 2) {
            assert_int_equal(asked, ITEMS / 5);
            assert_int_equal(read, expected);
        }
    }
    bw_fs_close(fs);
    iw_destroy(image);
}

/* The generations of a tree are all the same. */
static void test_only_newer_blocks_are_read_down_to_the_lowest_level(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    const struct bw_tree tree = tree_of(image);
    const uint64_t generation = tree.root.generation;
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    static const struct {
        uint64_t age; /* of the limit, plus one; 0: there is none */
        uint8_t lowest;
        size_t leaves, nodes;
    } cases[] = {{0, 0, 20, 5}, {2, 0, 20, 5}, {1, 0, 0, 0}, {0, 1, 0, 5}, {0, 2, 0, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        BW_SCOPED(bw_block_scan)
        struct bw_block_scan scan = {BW_SCAN_ALL,
                                     .newer_than = cases[i].age ? generation + 1 - cases[i].age : 0,
                                     .lowest_level = cases[i].lowest, .nodes = true};
        size_t leaves = 0, nodes = 0;
        bw_block_scan_begin(&scan, &fs->reader, &tree);
        while (bw_block_scan_next(&scan)) {
            leaves += scan.step == BW_SCAN_LEAF;
            nodes += scan.step == BW_SCAN_NODE;
        }
        expect_success(bw_block_scan_end(&scan));
        assert_int_equal(leaves, cases[i].leaves);
        assert_int_equal(nodes, cases[i].nodes);
    }
    bw_fs_close(fs);
    iw_destroy(image);
}

static struct bw_error *refuse_leaf(void *context, const struct bw_node *leaf)
{
    ++*(unsigned *)context;
    assert_true(leaf->item_count > 0);
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

/* The first of two adopted leaves cannot be read. */
static void
test_adopted_leaves_are_visited_until_one_is_refused_and_damaged_ones_are_skipped(void **state)
{
    struct iw_image *image = make_tree(5, 2);
    struct bw_adopted adopted = {0};
    struct bw_fs *fs;
    unsigned visited = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct iw_block *leaf = iw_block_find(image, TREE, 0, i);
        const struct bw_adopted_leaf found = {
            .pointer = {leaf->logical,
                        {.owner = TREE,
                         .generation = leaf->generation,
                         .first_key = leaf->first_key,
                         .end_key = iw_block_find(image, TREE, 0, i + 1)->first_key,
                         .has_first_key = true}},
            .last_key = leaf->last_key};
        expect_success(bw_adopted_leaves_push(&adopted.leaves, found));
    }
    iw_corrupt(image, iw_block_find(image, TREE, 0, 0)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
    expect_success(open_image(image, NULL, &fs));
    expect_error(bw_adopted_visit(&fs->reader, &adopted, &(struct bw_key){0}, &BW_KEY_MAX,
                                  refuse_leaf, &visited),
                 BW_ERROR_STOPPED, "enough");
    assert_int_equal(visited, 1);
    bw_adopted_free(&adopted);
    bw_fs_close(fs);
    iw_destroy(image);
}
