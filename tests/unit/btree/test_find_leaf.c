/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/btree: ranges of items in damaged trees, with adopted leaves in place of lost nodes. */
#include <limits.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "support/fake_layer.h"

#define GROUP_SETUP limit_resources

enum { ITEMS = 100, PER_LEAF = 5, TREE = BW_UUID_TREE, LEAVES_PER_NODE = 5 };

/* The items (1000 + n, 255, UINT64_MAX), after which the next key has another object id. */
static struct bw_key key_of(uint64_t n)
{
    return (struct bw_key){1000 + n, UINT8_MAX, UINT64_MAX};
}

/* A tree whose second node of level 1 is lost. An adopter knows leaves below it. */
struct bench {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_tree tree;
    struct bw_tree_reader reader;
    uint64_t lost_node;
    struct bw_adopted adopted;
    struct bw_adopter adopter;
    bool without_memory;
};

static struct bw_error *find_adopted(void *context, const struct bw_tree *tree, uint64_t bytenr,
                                     const struct bw_adopted **adopted)
{
    const struct bench *bench = context;
    assert_int_equal(tree->id, TREE);
    assert_int_equal(bytenr, bench->lost_node);
    *adopted = bench->without_memory ? NULL : &bench->adopted;
    return bench->without_memory ? bw_error_no_memory() : NULL;
}

static struct iw_image *make_image(void)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    for (uint64_t n = 0; n < ITEMS; n++)
        iw_item(image, TREE, key_of(n), "item", 4);
    iw_shape(image, TREE, PER_LEAF, LEAVES_PER_NODE, 2);
    iw_write_memory(image);
    return image;
}

static void open_bench(struct bench *bench, struct iw_image *image)
{
    const struct iw_block *root = iw_root_block(image, TREE);
    *bench = (struct bench){
        .image = image,
        .tree = {TREE, {root->logical, root->generation, (uint8_t)root->level}, 0},
        .adopter = {find_adopted, bench},
        .lost_node = iw_block_find(image, TREE, 1, 1)->logical,
    };
    expect_success(open_image(image, NULL, &bench->fs));
    bench->reader = bench->fs->reader;
    bench->reader.adopter = &bench->adopter;
}

static void close_bench(struct bench *bench)
{
    bw_adopted_free(&bench->adopted);
    bw_fs_close(bench->fs);
    iw_destroy(bench->image);
}

/* Adopts leaves, by number within the tree. The range of each ends at the next one, or with the
 * lost node. */
static void adopt(struct bench *bench, const size_t *leaves, size_t count, bool complete)
{
    bench->adopted.complete = complete;
    for (size_t i = 0; i < count; i++) {
        const struct iw_block *leaf = iw_block_find(bench->image, TREE, 0, leaves[i]);
        const struct iw_block *end =
            iw_block_find(bench->image, TREE, 0, i + 1 < count ? leaves[i + 1] : 10);
        const struct bw_adopted_leaf adopted = {
            .pointer = {leaf->logical,
                        {.owner = TREE,
                         .generation = leaf->generation,
                         .first_key = leaf->first_key,
                         .end_key = end->first_key,
                         .has_first_key = true}},
            .last_key = leaf->last_key,
        };
        expect_success(bw_adopted_leaves_push(&bench->adopted.leaves, adopted));
    }
}

/* The results of a range: how often each item occurred, and the number of losses. */
struct found {
    unsigned items[ITEMS];
    unsigned losses, outside;
};

static void read_items(struct bench *bench, uint64_t first, uint64_t last, struct found *found)
{
    struct bw_item_range range;
    *found = (struct found){{0}, 0, 0};
    bw_item_range_begin(&range, &bench->reader, &bench->tree, key_of(first), key_of(last));
    while (bw_item_range_next(&range)) {
        if (range.error && range.lost == BW_LOST_ITEM) {
            found->outside++;
            expect_error(BW_TAKE(range.error), BW_ERROR_CORRUPT, "lies outside its leaf");
        } else if (range.error) {
            found->losses++;
        } else {
            assert_in_range(range.item.key.objectid, 1000 + first, 1000 + last);
            found->items[range.item.key.objectid - 1000]++;
        }
    }
    expect_success(bw_item_range_end(&range, NULL));
}

/* The lost node has the items from 25 to 49, in leaves of five. */
static bool is_lost(uint64_t n)
{
    return n >= 25 && n < 50;
}

static void test_adopted_leaves(void **state)
{
    static const size_t leaves[] = {6, 8}; /* items 30 to 34 and 40 to 44 */
    for (unsigned complete = 0; complete < 2; complete++) {
        struct bench bench;
        struct found found;
        struct iw_image *image = make_image();
        iw_corrupt(image, iw_block_find(image, TREE, 1, 1)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
        open_bench(&bench, image);
        adopt(&bench, leaves, COUNT(leaves), complete);
        for (uint64_t first = 0; first < ITEMS; first += 3)
            for (uint64_t last = first; last < ITEMS; last += 4) {
                unsigned unknown = 0;
                read_items(&bench, first, last, &found);
                for (uint64_t n = first; n <= last; n++) {
                    const bool is_adopted = (n >= 30 && n < 35) || (n >= 40 && n < 45);
                    assert_int_equal(found.items[n], !is_lost(n) || is_adopted);
                    unknown += is_lost(n) && !is_adopted;
                }
                /* With a complete list, the tree has no other items. */
                assert_int_equal(found.losses > 0, unknown > 0 && !complete);
            }
        close_bench(&bench);
    }
}

/* A key that is searched after a later one, which an adopted leaf has: the lost node is named, not
 * that leaf. */
static void test_lost_before_adopted(void **state)
{
    static const size_t leaves[] = {6, 8};
    const struct bw_key adopted = key_of(32), lost = key_of(26);
    struct bench bench;
    struct bw_leaf_finder finder;
    struct iw_image *image = make_image();
    const uint64_t node = iw_block_find(image, TREE, 1, 1)->logical;
    iw_corrupt(image, node, IW_ALL_COPIES, 0, 32, IW_FLIP);
    open_bench(&bench, image);
    adopt(&bench, leaves, COUNT(leaves), false);
    bw_leaf_finder_init(&finder, &bench.reader, &bench.tree);
    expect_success(bw_find_leaf(&finder, &adopted));
    assert_false(finder.lost);
    expect_success(bw_find_leaf(&finder, &lost));
    assert_true(finder.lost);
    assert_int_equal(finder.bytenr, node);
    assert_int_equal(finder.first.objectid, key_of(25).objectid);
    bw_leaf_finder_free(&finder);
    close_bench(&bench);
}

/* Memory that runs out ends a range, whose result is then not complete. */
static void test_adopter_without_memory(void **state)
{
    struct bench bench;
    struct bw_item_range range;
    struct iw_image *image = make_image();
    iw_corrupt(image, iw_block_find(image, TREE, 1, 1)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
    open_bench(&bench, image);
    bench.without_memory = true;
    unsigned count = 0;
    bw_item_range_begin(&range, &bench.reader, &bench.tree, (struct bw_key){0}, BW_KEY_MAX);
    while (bw_item_range_next(&range))
        count++;
    assert_int_equal(count, 25);
    assert_false(bw_item_range_next(&range));
    expect_error(bw_item_range_end(&range, bw_error_create(BW_ERROR_STOPPED, "other")),
                 BW_ERROR_NO_MEMORY, NULL);
    close_bench(&bench);
}

/* Scans use the same leaves. */
/* Counts the items of a scan and its losses; ends it after `most` leaves. */
static struct bw_error *count_scan(struct bw_block_scan *scan, struct bench *bench, unsigned most,
                                   struct found *found)
{
    *found = (struct found){{0}, 0, 0};
    bw_block_scan_begin(scan, &bench->reader, &bench->tree);
    while (most && bw_block_scan_next(scan)) {
        most -= !scan->error;
        found->losses += scan->error != NULL;
        if (scan->error)
            assert_int_equal(scan->pointer.expectation.level, 1);
        for (uint32_t slot = 0; slot < scan->node.item_count; slot++)
            found->items[bw_leaf_key(&scan->node, slot).objectid - 1000]++;
    }
    return bw_block_scan_end(scan);
}

static void test_scan_of_adopted_leaves(void **state)
{
    static const size_t leaves[] = {6, 8};
    for (unsigned complete = 0; complete < 2; complete++) {
        struct bench bench;
        struct found found = {{0}, 0, 0};
        struct iw_image *image = make_image();
        iw_corrupt(image, iw_block_find(image, TREE, 1, 1)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
        open_bench(&bench, image);
        adopt(&bench, leaves, COUNT(leaves), complete);
        BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true};
        expect_success(count_scan(&scan, &bench, UINT_MAX, &found));
        for (uint64_t n = 0; n < ITEMS; n++)
            assert_int_equal(found.items[n],
                             !is_lost(n) || (n >= 30 && n < 35) || (n >= 40 && n < 45));
        assert_int_equal(found.losses, !complete);

        /* Only keys that one leaf has: nothing is lost. */
        scan.first = key_of(31);
        scan.last = key_of(33);
        expect_success(count_scan(&scan, &bench, UINT_MAX, &found));
        assert_int_equal(found.losses, 0);
        assert_int_equal(found.items[31], 1);

        /* A scan that ends in an adopted leaf starts again at the first one. */
        for (unsigned i = 0; i < 2; i++) {
            expect_success(count_scan(&scan, &bench, 1, &found));
            assert_int_equal(found.items[31], 1);
        }
        bench.without_memory = true;
        expect_error(count_scan(&scan, &bench, UINT_MAX, &found), BW_ERROR_NO_MEMORY, NULL);
        close_bench(&bench);
    }
}

/* Leaves whose checksums match, but whose contents are wrong. */

static struct bw_disk_item *items_of(uint8_t *leaf)
{
    return (void *)(leaf + sizeof(struct bw_disk_header));
}

static void reverse_keys(uint8_t *leaf, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *items = items_of(leaf);
    for (unsigned i = 1; i < PER_LEAF; i++) { /* the first key is in the node above */
        if (i >= PER_LEAF - i)
            break;
        const struct bw_disk_key key = items[i].key;
        items[i].key = items[PER_LEAF - i].key;
        items[PER_LEAF - i].key = key;
    }
}

static void move_item_out(uint8_t *leaf, uint32_t nodesize, void *closure)
{
    items_of(leaf)[2].offset = bw_put32(nodesize);
}

static void raise_last_keys(uint8_t *leaf, uint32_t nodesize, void *closure)
{
    for (unsigned i = PER_LEAF - *(const unsigned *)closure; i < PER_LEAF; i++)
        items_of(leaf)[i].key.objectid = bw_put64(1000 + 60 + i);
}

/* The last items of a leaf have keys of items that other leaves have. */
static void expect_cut(unsigned count)
{
    struct bench bench;
    struct found found;
    struct iw_image *image = make_image();
    const uint64_t lost = 50 + PER_LEAF - count;
    iw_rewrite_block(image, iw_block_of_key(image, TREE, key_of(50))->logical, raise_last_keys,
                     &count, true);
    open_bench(&bench, image);
    for (uint64_t first = 48; first < 66; first++)
        for (uint64_t last = first; last < 66; last++) {
            read_items(&bench, first, last, &found);
            for (uint64_t n = first; n <= last; n++)
                assert_int_equal(found.items[n], n < lost || n >= 50 + PER_LEAF);
            assert_int_equal(found.losses, first < 50 + PER_LEAF && last >= lost);
        }
    close_bench(&bench);
}

static void test_one_key_beyond_leaf(void **state)
{
    expect_cut(1);
}

static void test_two_keys_beyond_leaf(void **state)
{
    expect_cut(2);
}

static void test_keys_out_of_order(void **state)
{
    struct bench bench;
    struct found found;
    struct iw_image *image = make_image();
    iw_rewrite_block(image, iw_block_of_key(image, TREE, key_of(50))->logical, reverse_keys, NULL,
                     true);
    open_bench(&bench, image);
    for (uint64_t first = 48; first < 57; first++)
        for (uint64_t last = first; last < 57; last++) {
            read_items(&bench, first, last, &found);
            for (uint64_t n = first; n <= last; n++)
                assert_int_equal(found.items[n], 1);
            assert_int_equal(found.losses, 0);
        }
    close_bench(&bench);
}

/* A range in another version of the tree must not use the leaf that was read before. */
static void test_restart_in_another_tree(void **state)
{
    struct bench bench;
    struct bw_item_range range;
    open_bench(&bench, make_image());
    bench.reader.adopter = NULL;
    bw_item_range_begin(&range, &bench.reader, &bench.tree, key_of(7), key_of(7));
    assert_true(bw_item_range_next(&range));
    expect_success(bw_item_range_stop(&range, NULL));
    struct bw_tree other = bench.tree;
    other.root.generation++;
    bw_item_range_restart(&range, &bench.reader, &other, key_of(7), key_of(7));
    assert_true(bw_item_range_next(&range) && range.error); /* no block has this generation */
    expect_success(bw_item_range_stop(&range, NULL));
    other = bench.tree;
    other.root.bytenr = iw_root_block(bench.image, FS)->logical;
    bw_item_range_restart(&range, &bench.reader, &other, key_of(7), key_of(7));
    assert_true(bw_item_range_next(&range) && range.error);
    expect_success(bw_item_range_stop(&range, NULL));
    bw_item_range_restart(&range, &bench.reader, &bench.tree, key_of(7), key_of(8));
    assert_true(bw_item_range_next(&range) && !range.error);
    assert_int_equal(range.item.key.objectid, 1007);
    expect_success(bw_item_range_end(&range, NULL));
    close_bench(&bench);
}

/* Neither must a finder use the leaves that were adopted for another version. */
static void test_adopted_leaves_of_another_tree(void **state)
{
    static const size_t leaves[] = {6};
    struct bench bench;
    struct bw_leaf_finder finder;
    struct iw_image *image = make_image();
    const struct bw_key key = key_of(30);
    iw_corrupt(image, iw_block_find(image, TREE, 1, 1)->logical, IW_ALL_COPIES, 0, 32, IW_FLIP);
    open_bench(&bench, image);
    adopt(&bench, leaves, COUNT(leaves), false);
    bw_leaf_finder_init(&finder, &bench.reader, &bench.tree);
    expect_success(bw_find_leaf(&finder, &key));
    assert_false(finder.lost);
    struct bw_tree other = bench.tree;
    other.root.generation++; /* no block has this generation */
    finder.reader.adopter = NULL;
    bw_leaf_finder_set_tree(&finder, &other);
    expect_success(bw_find_leaf(&finder, &key));
    assert_true(finder.lost);
    bw_leaf_finder_free(&finder);
    close_bench(&bench);
}

static void test_item_outside_leaf(void **state)
{
    struct bench bench;
    struct found found;
    struct iw_image *image = make_image();
    iw_rewrite_block(image, iw_block_of_key(image, TREE, key_of(50))->logical, move_item_out, NULL,
                     true);
    open_bench(&bench, image);
    read_items(&bench, 0, ITEMS - 1, &found);
    assert_int_equal(found.outside, 1);
    assert_int_equal(found.losses, 0);
    for (uint64_t n = 0; n < ITEMS; n++)
        assert_int_equal(found.items[n], n != 52);
    read_items(&bench, 53, 55, &found);
    assert_int_equal(found.outside, 0);
    close_bench(&bench);
}

/* Announced are leaves below the node that the last search has read, each once; the layer that gets
 * the announcements replies to no reads. */
static void test_announced_leaves(void **state)
{
    struct bench bench;
    struct bw_leaf_finder finder;
    struct fake_layer fake = {0};
    open_bench(&bench, make_image());
    struct bw_graph *graph = fake_graph(NULL);
    bw_leaf_finder_init(&finder, &bench.reader, &bench.tree);
    struct bw_key keys[] = {key_of(7), key_of(30), key_of(12), key_of(13), key_of(99)};
    assert_int_equal(bw_leaf_finder_announce(&finder, keys, COUNT(keys)), COUNT(keys));

    const struct bw_key first = key_of(0);
    expect_success(bw_find_leaf(&finder, &first));
    finder.reader.top = add_fake(graph, &fake);
    assert_int_equal(bw_leaf_finder_announce(&finder, keys, COUNT(keys)), 2);
    assert_int_equal(keys[0].objectid, 1030);
    assert_int_equal(keys[1].objectid, 1099);
    assert_int_equal(fake.hint_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(fake.hints[i].address,
                         iw_block_find(bench.image, TREE, 0, 1 + i)->logical);
    assert_int_equal(fake.read_count, 0);
    bw_leaf_finder_free(&finder);
    bw_graph_destroy(graph);
    close_bench(&bench);
}

static void test_next_keys(void **state)
{
    static const struct {
        struct bw_key key, next;
    } cases[] = {
        {{5, 1, 7}, {5, 1, 8}},
        {{5, 1, UINT64_MAX}, {5, 2, 0}},
        {{5, UINT8_MAX, UINT64_MAX}, {6, 0, 0}},
        {{UINT64_MAX, UINT8_MAX, UINT64_MAX}, {0, 0, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_key next = bw_key_after(cases[i].key);
        assert_int_equal(bw_key_compare(&next, &cases[i].next), 0);
    }
}
