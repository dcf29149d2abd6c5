/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An image that ends in a chunk without contents, whose items are in trees with few items in each
 * leaf: first ones, too, so that the keys of nodes change.
 */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

#include "btrfs-walk/repair.h"
#include "record/record_types.h"
#include "repair/repair.h"

enum { DEVICES = 8 };

/* Whether only data chunks, which have no contents, lie behind this place. */
static bool is_end(const struct iw_image *image, unsigned device, uint64_t offset)
{
    for (size_t i = 0; i < iw_chunk_count(image); i++)
        for (unsigned j = 0; j < iw_chunk(image, i)->stripe_count; j++)
            if (!(iw_chunk(image, i)->type & BW_GROUP_DATA) &&
                iw_chunk(image, i)->stripes[j].device == device &&
                iw_chunk(image, i)->stripes[j].offset > offset)
                return false;
    return true;
}

/* Cuts all devices of a data chunk in it. */
static void cut(struct iw_image *image)
{
    for (size_t i = iw_chunk_count(image); i-- > 0;) {
        const unsigned count = iw_chunk(image, i)->stripe_count;
        bool is_possible = iw_chunk(image, i)->type & BW_GROUP_DATA;
        for (unsigned j = 0; j < count; j++)
            is_possible &= is_end(image, iw_chunk(image, i)->stripes[j].device,
                                  iw_chunk(image, i)->stripes[j].offset);
        for (unsigned j = 0; is_possible && j < count; j++)
            iw_truncate_device(image, iw_chunk(image, i)->stripes[j].device,
                               iw_chunk(image, i)->stripes[j].offset + 65536);
        if (is_possible)
            return;
    }
    fail_msg("behind each data chunk lie contents");
}

static unsigned data_chunks = 5;
static size_t taken_over; /* leaves, by all plans */

/* Cuts an image with leaves of so many items in a chunk without contents, and plans. Returns the
 * number of changes of keys in nodes. */
static size_t repair(uint64_t profile, unsigned items_per_leaf, unsigned pointers_per_node,
                     bool is_possible)
{
    const char *paths[IW_MAX_DEVICES];
    struct report_log log = {0};
    struct bw_fs *fs;
    struct bw_repair *plan;
    uint64_t left = 0;
    size_t keys = 0;
    struct iw_image *image = iw_create(&(struct iw_options){
        .data_chunks = data_chunks, .data_profile = profile, .device_count = DEVICES});
    static const uint64_t trees[] = {BW_EXTENT_TREE /* not so small */, BW_CHUNK_TREE,
                                     BW_DEVICE_TREE};
    for (size_t i = items_per_leaf == 1; i < sizeof trees / sizeof *trees; i++)
        iw_shape(image, trees[i], items_per_leaf, pointers_per_node, 0);
    iw_write_memory(image);
    cut(image);
    const struct bw_fs_options how = {.struct_size = sizeof how,
                                      .paths = paths,
                                      .path_count = iw_paths_of(image, paths),
                                      .log = BW_LOG_IGNORE,
                                      .reporter = report_log_reporter(&log)};
    const struct bw_repair_options options = {.struct_size = sizeof options};
    expect_success(bw_fs_open(&how, &fs));
    expect_success(bw_repair_open(fs, &how, &options, &plan));
    assert_int_equal(bw_repair_count(plan) > 0, is_possible);
    if (is_possible)
        expect_success(bw_repair_try(plan, &left));
    assert_int_equal(left, 0);
    for (size_t i = 0; i < bw_repair_count(plan); i++) {
        struct bw_repairinfo row;
        bw_repair_change(plan, i, &row);
        assert_int_equal(row.chosen, 1);
        assert_null(row.failure);
        keys += strncmp(row.what, "key of a leaf", 13) == 0;
        taken_over += strncmp(row.what, "leaf that takes over", 20) == 0;
    }
    bw_repair_close(plan);
    bw_fs_close(fs);
    iw_destroy(image);
    report_log_free(&log);
    return keys;
}

static void large_leaves(void **state)
{
    assert_int_equal(repair(0, 0, 0, true), 0);
}

static void first_items(void **state)
{
    size_t keys = 0;
    for (unsigned items = 3; items < 9; items++)
        for (unsigned pointers = 3; pointers < 5; pointers++)
            keys += repair(0, items, pointers, true);
    assert_true(keys > 3);
}

/* Leaves would be empty, and take over an item of the leaf before or behind them; with two items in
 * each, a leaf gives its only one, and takes over another one. */
static void emptied_leaves(void **state)
{
    taken_over = 0;
    for (data_chunks = 3; data_chunks < 9; data_chunks++)
        for (unsigned items = data_chunks == 3 ? 3 : 2; items < 5; items++) /* or none is left */
            repair(BW_GROUP_RAID1, items, 3, true);
    data_chunks = 5;
    assert_true(taken_over > 3);
}

/* A leaf would be empty, and its neighbours have only one item. */
static void single_items(void **state)
{
    repair(0, 1, 0, false);
}

/* The chunk lies behind the ends of two images. */
static void two_devices(void **state)
{
    assert_int_equal(repair(BW_GROUP_RAID1, 0, 0, true), 0);
}
