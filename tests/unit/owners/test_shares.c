/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared space of more snapshots than a word has bits. */
#include "btrfs-walk/space.h"
#include "support/walk_helpers.h"

enum { SOURCE = 256, OTHER, FIRST, GROUP = 100, FILES = 40, NODESIZE = 4096 };

static void add_snapshots(struct iw_image *image, uint64_t source, uint64_t first)
{
    for (uint64_t id = first; id < first + GROUP; id++)
        iw_snapshot(image, id, source, 0, 0, NULL, 0);
}

/* Two groups of snapshots, of sources that differ in their last leaf. */
static struct iw_image *make_image(void)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.nodesize = NODESIZE, .items_per_leaf = 10});
    const struct bw_key last = {1 << 20, BW_ORPHAN_ITEM, 0};
    char name[16];
    iw_subvolume(image, SOURCE, 0, 0, NULL, 0);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "file-%u", i);
        iw_file(image, SOURCE, TOP, name);
    }
    iw_item(image, SOURCE, last, "1", 1);
    iw_snapshot(image, OTHER, SOURCE, 0, 0, NULL, 0);
    *(char *)iw_item_bytes(image, OTHER, last, NULL) = '2';
    add_snapshots(image, SOURCE, FIRST);
    add_snapshots(image, OTHER, FIRST + GROUP);
    iw_write_memory(image);
    return image;
}

/* A line for each set of more than one subvolume: blocks, and the ranges of ids. */
static struct bw_error *take(void *context, const struct bw_shared_set *set)
{
    if (set->subvolume_count < 2)
        return NULL;
    bw_buffer_format(context, "%d:", (int)(set->bytes / NODESIZE));
    for (size_t i = 0; i < set->range_count; i++)
        bw_buffer_format(context, " %d-%d", (int)set->ranges[i].first, (int)set->ranges[i].last);
    bw_buffer_append_byte(context, '\n');
    return NULL;
}

static void test_groups_of_snapshots(void **state)
{
    struct iw_image *image = make_image();
    struct bw_buffer text = {0};
    struct bw_fs *fs;
    struct bw_shares *shares;
    const struct bw_shares_options options = {.struct_size = sizeof options};
    expect_success(open_image(image, NULL, &fs));
    expect_success(bw_shares_open(fs, &options, &shares));
    expect_success(bw_shares_sets(shares, take, &text));
    assert_string_equal(bw_buffer_text(&text),
                        "16: 256-457\n1: 256-256 258-357\n1: 257-257 358-457\n");
    for (uint64_t id = SOURCE; id < FIRST + 2 * GROUP; id++)
        assert_int_equal(bw_shares_subvolume(shares, id)->exclusive, NODESIZE);
    bw_buffer_free(&text);
    bw_shares_close(shares);
    bw_fs_close(fs);
    iw_destroy(image);
}

static bool stop(void *context)
{
    ++*(unsigned *)context;
    return false;
}

/* Who stops it at once has nothing read, and hears of no lost block. */
static void test_stop(void **state)
{
    struct iw_image *image = make_image();
    struct report_log log = {0};
    struct bw_fs *fs;
    struct bw_shares *shares;
    unsigned asked = 0;
    struct bw_shares_options options = {.struct_size = sizeof options, .threads = 1};
    iw_corrupt(image, iw_block_find(image, BW_EXTENT_TREE, 0, 0)->logical, IW_ALL_COPIES, 0,
               NODESIZE, IW_ZERO);
    expect_success(open_image(image, &log, &fs));
    expect_success(bw_shares_open(fs, &options, &shares));
    assert_true(log.counts[BW_DAMAGE] > 0);
    bw_shares_close(shares);
    bw_fs_close(fs);
    report_log_free(&log);
    log = (struct report_log){0};
    options.progress = stop;
    options.context = &asked;
    expect_success(open_image(image, &log, &fs));
    expect_error(bw_shares_open(fs, &options, &shares), BW_ERROR_STOPPED, NULL);
    assert_true(asked > 0);
    assert_int_equal(log.counts[BW_DAMAGE], 1); /* no path leads to its subvolumes */
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}
