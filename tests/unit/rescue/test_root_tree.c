/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/rescue/root_tree.c: a block that replaces the lost root of a tree. */
#include "support/walk_helpers.h"

#include "btree/find_leaf.h"
#include "fs/fs.h"
#include "fs/subvolume.h"
#include "ondisk/tree_title.h"

static void lose(struct iw_image *image, const struct iw_block *block)
{
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 0, 4096, IW_ZERO);
}

static void lose_tree(struct iw_image *image, uint64_t id)
{
    for (size_t i = 0; i < iw_block_count(image); i++)
        if (iw_block(image, i)->tree == id)
            lose(image, iw_block(image, i));
}

/* A backup of the superblock names a block as the root of another tree. */
static void misname(struct bw_disk_superblock *super, void *closure)
{
    const struct iw_block *block = closure;
    super->backup_roots[0].device_root = bw_put64(block->logical);
    super->backup_roots[0].device_root_generation = bw_put64(block->generation);
    super->backup_roots[0].device_root_level = (uint8_t)block->level;
}

/* Loses the root of a tree, its root item and the extent tree. Counts the lost ranges: before the
 * first item, behind the last one, and all. */
static void lose_root(uint64_t id, unsigned *before, unsigned *behind, unsigned *lost)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct report_log log = {0};
    struct bw_item_range range;
    struct bw_fs *fs;
    unsigned count = 0;
    char message[128];
    snprintf(message, sizeof message, "the root of %s was not found", bw_tree_title(id).text);
    iw_shape(image, id, id == BW_EXTENT_TREE ? 8 : 1, 0, 0);
    fill_sample(image);
    for (uint64_t i = 0; i < 8; i++)
        iw_item(image, BW_CSUM_TREE,
                (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, (i + 1) << 20}, "sum", 4);
    iw_write_memory(image);
    lose(image, iw_root_block(image, id));
    if (id != BW_EXTENT_TREE)
        lose(image, iw_root_block(image, BW_EXTENT_TREE));
    lose_tree(image, BW_ROOT_TREE);
    struct iw_block next = {0};
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        if (block->tree == id && block != iw_root_block(image, id) &&
            (block->level > next.level ||
             (block->level == next.level && block->logical > next.logical)))
            next = *block;
    }
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, misname, &next, true);
    expect_success(open_image(image, &log, &fs));
    const struct bw_tree *tree = id == BW_EXTENT_TREE ? &fs->extent_tree
                                 : id == BW_CSUM_TREE ? &fs->checksum_trees.items[0]
                                                      : &bw_subvolume_by_id(fs, id)->tree;
    *before = *behind = *lost = 0;
    bw_item_range_begin(&range, &fs->reader, tree, (struct bw_key){0}, BW_KEY_MAX);
    while (bw_item_range_next(&range)) {
        const bool is_lost = range.error && strstr(range.error->message, message);
        *before += is_lost && !count;
        count++;
        *lost += is_lost;
        *behind = is_lost;
    }
    expect_success(bw_item_range_end(&range, NULL));
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

/* A block below the lost root replaces it. Items behind the last key of the block are lost, not
 * absent; so are those before its first key, except in a subvolume, whose first key is known.
 * Another tree's backup root does not make the block a root. */
static void test_lost_root(void **state)
{
    unsigned before, behind, lost;
    lose_root(BW_TOP_SUBVOLUME, &before, &behind, &lost);
    assert_in_range(lost, 1, 2);
    assert_int_equal(behind, 1);
    for (int i = 0; i < 2; i++) {
        lose_root(i ? BW_CSUM_TREE : BW_EXTENT_TREE, &before, &behind, &lost);
        assert_int_equal(before, 1);
        assert_int_equal(behind, 1);
        assert_int_equal(lost, 2);
    }
}

static void name_no_roots(struct bw_disk_superblock *super, void *closure)
{
    memset(super->backup_roots, 0, sizeof super->backup_roots);
}

/* If the tree root and the extent tree are lost, items behind the last one of this tree may be
 * lost, but not before the end of its range. */
static void expect_last(uint64_t id, struct bw_key key, const void *item, uint16_t size,
                        uint64_t length)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct report_log log = {0};
    struct bw_item_range range;
    struct bw_fs *fs;
    iw_item(image, id, key, item, size);
    iw_write_memory(image);
    lose(image, iw_root_block(image, BW_EXTENT_TREE));
    lose_tree(image, BW_ROOT_TREE);
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, name_no_roots, NULL, true);
    expect_success(open_image(image, &log, &fs));
    const struct bw_tree *tree =
        id == BW_CSUM_TREE ? &fs->checksum_trees.items[0] : &bw_subvolume_by_id(fs, id)->tree;
    for (unsigned behind = 0; behind < 2; behind++) {
        unsigned lost = 0;
        struct bw_key end = key;
        end.offset += length - 1 + behind;
        bw_item_range_begin(&range, &fs->reader, tree, key, end);
        while (bw_item_range_next(&range))
            lost += range.error != NULL;
        expect_success(bw_item_range_end(&range, NULL));
        assert_int_equal(lost, behind);
    }
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

/* A wrong extent covers nothing but its key. */
static void test_last_items(void **state)
{
    const struct bw_key sums = {BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, 8 << 20};
    const struct bw_key data = {300, BW_EXTENT_DATA, 4096};
    struct bw_disk_file_extent extent = {.type = 1,
                                         .ram_bytes = bw_put64(8192),
                                         .disk_bytenr = bw_put64(8 << 20),
                                         .disk_num_bytes = bw_put64(8192),
                                         .num_bytes = bw_put64(8192)};
    expect_last(BW_CSUM_TREE, sums, "sums of 4 blocks", 16, 4 * 4096);
    expect_last(BW_TOP_SUBVOLUME, data, &extent, sizeof extent, 8192);
    extent.type = 9;
    expect_last(BW_TOP_SUBVOLUME, data, &extent, sizeof extent, 1);
}

static void name_root(struct bw_disk_superblock *super, void *closure)
{
    const struct iw_block *block = closure;
    super->backup_roots[0].fs_root = bw_put64(block->logical);
    super->backup_roots[0].fs_root_generation = bw_put64(block->generation);
    super->backup_roots[0].fs_root_level = (uint8_t)block->level;
}

static void be_relocated(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_header *header = (void *)block;
    header->owner = bw_put64(BW_TOP_SUBVOLUME);
    header->flags = bw_put64(bw_get64(header->flags) | BW_HEADER_RELOCATED);
}

/* After a balance, the root of a reloc tree is as new as the root of the subvolume, but leads to
 * the old blocks. It is not chosen, even if it is higher. */
static void test_relocated(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct report_log log = {0};
    struct bw_fs *fs;
    fill_sample(image);
    iw_subvolume(image, 333, 0, 0, NULL, 0);
    iw_shape(image, 333, 0, 0, 3);
    iw_write_memory(image);
    struct iw_block root = *iw_root_block(image, BW_TOP_SUBVOLUME);
    assert_true(iw_root_block(image, 333)->level > root.level);
    assert_int_equal(iw_root_block(image, 333)->generation, root.generation);
    iw_rewrite_block(image, iw_root_block(image, 333)->logical, be_relocated, NULL, true);
    lose(image, iw_root_block(image, BW_EXTENT_TREE));
    lose_tree(image, BW_ROOT_TREE);
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, name_root, &root, true);
    expect_success(open_image(image, &log, &fs));
    assert_int_equal(bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME)->tree.root.bytenr, root.logical);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}
