/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space in use of hostile images. tests/kernel compares that of good ones with the kernel. */
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

/* An offset of device 1, and whether it is in use. */
struct probe {
    uint64_t offset;
    bool in_use;
};

static struct bw_error *on_range(void *context, const struct bw_used_range *range)
{
    struct probe *probe = context;
    if (probe->offset - range->offset < range->length)
        probe->in_use = range->in_use;
    return NULL;
}

static bool is_in_use(struct bw_used_map *map, const struct iw_chunk *chunk)
{
    struct probe probe = {.offset = chunk->stripes[0].offset + (16 << 10)};
    expect_success(bw_used_map_device(map, 1, on_range, &probe));
    return probe.in_use;
}

/* Moved ranges that overlap each other: only the first one counts, as for reading. So the work does
 * not grow with the square of the size of the tree. */
static void test_overlapping_moves(void **state)
{
    enum { LENGTH = 128 << 10, STEP = 64 << 10 };
    static const uint8_t extent[24] = {1};
    const struct iw_options options = {.data_chunks = 3, .incompat_flags = BW_INCOMPAT_REMAP_TREE};
    struct iw_image *model = iw_create(&options);
    struct fixture fixture = {.image = iw_create(&options)};
    struct bw_used_map *map;
    iw_write_memory(model);
    const uint64_t from = iw_chunk(model, 0)->logical;
    iw_item(fixture.image, BW_EXTENT_TREE, (struct bw_key){from, BW_EXTENT_ITEM, 2 * LENGTH},
            extent, sizeof extent);
    for (unsigned i = 0; i < 2; i++) {
        const bw_le64 target = bw_put64(iw_chunk(model, i + 1)->logical);
        iw_item(fixture.image, BW_REMAP_TREE, (struct bw_key){from + i * STEP, BW_REMAP, LENGTH},
                &target, sizeof target);
    }
    iw_write_memory(fixture.image);
    iw_use_remap_tree(fixture.image);
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    assert_int_equal(report_log_count(&fixture.log, "invalid range"), 1);
    expect_success(bw_used_map_open(fixture.fs, NULL, &map));
    assert_true(is_in_use(map, iw_chunk(model, 1)));
    assert_false(is_in_use(map, iw_chunk(model, 2)));
    bw_used_map_close(map);
    iw_destroy(model);
    close_fixture(&fixture);
}
