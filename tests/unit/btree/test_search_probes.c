/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/btree: what the probes of searches and blocks report, and that nothing is read because of
 * them. */
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "probe/probe.h"
#include "support/walk_helpers.h"

enum { ITEMS = 30, PER_LEAF = 3, LEAVES = ITEMS / PER_LEAF, TREE = BW_UUID_TREE };

static struct bw_key key_of(uint64_t n)
{
    return (struct bw_key){1000 + n, 1, n};
}

/* The events of the four probes, and their times and errors. */
struct events {
    struct bw_probe_consumer consumer;
    size_t starts, ends, block_starts, block_ends, errors;
    uint64_t first_id, last_id, shortest;
};

static void visit(struct bw_probe_consumer *consumer, const struct bw_probe_event *event)
{
    struct events *events = (struct events *)consumer;
    const unsigned number = event->probe->number;
    if (event->probe->record == &bw_keyinfo_record) {
        const struct bw_keyinfo *key = event->record;
        if (key->tree != TREE)
            return;
        events->first_id = key->key_objectid;
        events->last_id = key->last_key_objectid;
        events->starts += number == BW_PROBE_key__search__start;
        events->ends += number == BW_PROBE_key__search__done;
        if (number == BW_PROBE_key__search__done && key->ns < events->shortest)
            events->shortest = key->ns;
        return;
    }
    const struct bw_blockinfo *block = event->record;
    if (block->tree != TREE)
        return;
    events->block_starts += number == BW_PROBE_block__read__start;
    events->block_ends += number == BW_PROBE_block__read__done;
    events->errors += number == BW_PROBE_block__read__done && block->error;
}

/* Each look at the clock takes a microsecond. */
static uint64_t ticks;

static uint64_t fake_clock(void)
{
    return ticks += 1000;
}

struct bench {
    struct iw_image *image;
    struct bw_probes *probes;
    struct bw_fs *fs;
    struct bw_tree tree;
    struct events events;
};

/* An image with a lost leaf, opened with a consumer of these probes. */
static void open_bench(struct bench *bench, const char *selected)
{
    const char *paths[IW_MAX_DEVICES];
    *bench = (struct bench){.events = {.consumer = {.visit = visit}, .shortest = UINT64_MAX}};
    bench->image = iw_create(&(struct iw_options){.nodesize = 4096});
    for (uint64_t n = 0; n < ITEMS; n++)
        iw_item(bench->image, TREE, key_of(n), "item", 4);
    iw_shape(bench->image, TREE, PER_LEAF, 20, 1);
    iw_write_memory(bench->image);
    iw_corrupt(bench->image, iw_block_find(bench->image, TREE, 0, 1)->logical, IW_ALL_COPIES, 0, 32,
               IW_FLIP);
    const struct iw_block *root = iw_root_block(bench->image, TREE);
    bench->tree = (struct bw_tree){TREE, {root->logical, root->generation, 1}, 0};
    expect_success(bw_probes_create(&bench->probes));
    bw_probes_set_clock(bench->probes, fake_clock);
    expect_success(bw_probes_select(selected, bench->events.consumer.selected));
    bw_probes_add(bench->probes, &bench->events.consumer);
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = paths,
                                          .path_count = iw_paths_of(bench->image, paths),
                                          .superblock_copy = BW_ANY_SUPERBLOCK_COPY,
                                          .probes = bench->probes};
    expect_success(bw_fs_open(&options, &bench->fs));
    const struct bw_probe_consumer consumer = bench->events.consumer;
    bench->events = (struct events){.consumer = consumer, .shortest = UINT64_MAX};
}

static void close_bench(struct bench *bench)
{
    bw_fs_close(bench->fs);
    bw_probes_destroy(bench->probes);
    iw_destroy(bench->image);
}

static void scan_leaves(struct bench *bench)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    size_t leaves = 0, lost = 0;
    bw_block_scan_begin(&scan, &bench->fs->reader, &bench->tree);
    while (bw_block_scan_next(&scan)) {
        leaves += scan.step == BW_SCAN_LEAF;
        lost += scan.step == BW_SCAN_LOST;
    }
    expect_success(bw_block_scan_end(&scan));
    assert_int_equal(leaves, LEAVES - 1);
    assert_int_equal(lost, 1);
}

static void read_items(struct bench *bench)
{
    struct bw_item_range range;
    size_t items = 0, lost = 0;
    bw_item_range_begin(&range, &bench->fs->reader, &bench->tree, key_of(0), key_of(ITEMS - 1));
    while (bw_item_range_next(&range)) {
        items += !range.error;
        lost += range.error != NULL;
    }
    expect_success(bw_item_range_end(&range, NULL));
    assert_int_equal(items, ITEMS - PER_LEAF);
    assert_int_equal(lost, 1);
}

static void test_a_scan_and_a_range_are_one_search_each_with_their_keys_and_time(void **state)
{
    struct bench bench;
    open_bench(&bench, "key-search-*");
    scan_leaves(&bench);
    assert_int_equal(bench.events.starts, 1);
    assert_int_equal(bench.events.ends, 1);
    assert_int_equal(bench.events.first_id, 0);
    assert_true(bench.events.last_id == UINT64_MAX);
    assert_in_range(bench.events.shortest, 1000, 10000000);
    read_items(&bench);
    assert_int_equal(bench.events.starts, 2);
    assert_int_equal(bench.events.ends, 2);
    assert_int_equal(bench.events.first_id, 1000);
    assert_int_equal(bench.events.last_id, 1000 + ITEMS - 1);
    assert_in_range(bench.events.shortest, 1000, 10000000);
    assert_int_equal(bench.events.block_starts + bench.events.block_ends, 0);
    close_bench(&bench);
}

static void
test_a_block_is_reported_before_and_after_it_is_read_and_a_lost_one_with_its_error(void **state)
{
    struct bench bench;
    open_bench(&bench, "block-read-*");
    scan_leaves(&bench);
    assert_int_equal(bench.events.block_starts, LEAVES + 1);
    assert_int_equal(bench.events.block_ends, LEAVES + 1);
    assert_int_equal(bench.events.errors, 1);
    read_items(&bench);
    assert_int_equal(bench.events.block_starts, bench.events.block_ends);
    assert_int_equal(bench.events.errors, 2);
    assert_int_equal(bench.events.starts + bench.events.ends, 0);
    close_bench(&bench);
}

static void test_a_probe_that_only_sees_ends_measures_no_time_of_others(void **state)
{
    struct bench bench;
    open_bench(&bench, "block-read-done");
    read_items(&bench);
    assert_int_equal(bench.events.block_starts, 0);
    assert_in_range(bench.events.block_ends, LEAVES + 1, 2 * LEAVES);
    assert_int_equal(bench.events.errors, 1);
    close_bench(&bench);
}
