/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/rescue/root_tree.c: a leaf that takes the place of the lost root of a subvolume. */
#include "support/walk_helpers.h"

#include "btree/find_leaf.h"
#include "fs/fs.h"
#include "fs/subvolume.h"

static const char *const MESSAGE = "the root of subvolume 5 was not found";

static void lose(struct iw_image *image, const struct iw_block *block)
{
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 0, 4096, IW_ZERO);
}

/* Nobody knows the other leaves without a root, a root tree and an extent tree: items that belong
 * behind the last key of the leaf are lost, not absent. */
static void test_lost_root(void **state)
{
    (void)state;
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct report_log log = {0};
    struct bw_item_range range;
    struct bw_fs *fs;
    unsigned lost = 0, behind = 0;
    iw_shape(image, BW_TOP_SUBVOLUME, 1, 0, 0);
    fill_sample(image);
    iw_write_memory(image);
    lose(image, iw_root_block(image, BW_TOP_SUBVOLUME));
    lose(image, iw_root_block(image, BW_EXTENT_TREE));
    for (size_t i = 0; i < iw_block_count(image); i++)
        if (iw_block(image, i)->tree == BW_ROOT_TREE)
            lose(image, iw_block(image, i));
    expect_success(open_image(image, &log, &fs));
    const struct bw_tree *tree = &bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME)->tree;
    assert_int_equal(tree->root.level, 1);
    bw_item_range_begin(&range, &fs->reader, tree, (struct bw_key){0}, BW_KEY_MAX);
    while (bw_item_range_next(&range)) {
        const bool is_lost = range.error && strstr(range.error->message, MESSAGE);
        lost += is_lost;
        behind = is_lost;
    }
    expect_success(bw_item_range_end(&range, NULL));
    assert_in_range(lost, 1, 2);
    assert_int_equal(behind, 1);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost_root)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
