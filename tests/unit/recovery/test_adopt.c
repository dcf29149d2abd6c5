/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lost internal nodes: the leaves below them are found through the extent tree. Nothing is missing
 * or listed twice, and the loss is reported. Also decodes the extent items that this needs.
 */
#include "ondisk/items.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

/* Deep enough that nodes of three levels can be lost; a snapshot shares most of it, and has changed
 * since. */
static struct iw_image *make_image(bool with_snapshot)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.items_per_leaf = 7, .pointers_per_node = 3});
    fill_depths(image, 6, 9);
    if (with_snapshot) {
        iw_snapshot(image, 256, FS, FS, TOP, "snapshot", 0);
        iw_file(image, 256, TOP, "only in the snapshot");
        iw_file(image, FS, TOP, "only in the source");
    }
    iw_write_memory(image);
    return image;
}

static void check_lost_node(const struct iw_image *image, const struct iw_block *node,
                            size_t *reported)
{
    struct report_log log = {0};
    struct bw_fs *fs;
    struct iw_paths all = iw_expected_paths(image);
    expect_success(open_image(image, &log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    expect_success(result.error);
    bw_fs_close(fs);
    const char *example = "";
    if (count_foreign(&result, &all, &example))
        fail_msg("node of level %u at %llu lost: \"%s\" is too much", node->level,
                 (unsigned long long)node->logical, example);
    if (count_missing(&result, &all, &example))
        fail_msg("node of level %u at %llu lost: \"%s\" is missing", node->level,
                 (unsigned long long)node->logical, example);
    /* A node with nothing but inodes below it need not be read. */
    assert_true(log.counts[BW_DAMAGE] <= 1 && (log.counts[BW_DAMAGE] || result.count == all.count));
    *reported += log.counts[BW_DAMAGE];
    walk_result_free(&result);
    iw_paths_free(&all);
    report_log_free(&log);
}

/* Loses every internal node of the tree in turn, the root included. */
static void lose_each_node(bool with_snapshot)
{
    struct iw_image *image = make_image(with_snapshot);
    size_t lost = 0, reported = 0;
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        if ((block->tree != FS && block->tree != 256) || !block->level)
            continue;
        iw_corrupt(image, block->logical, 1, 64, 64, IW_FLIP);
        check_lost_node(image, block, &reported);
        iw_corrupt(image, block->logical, 1, 64, 64, IW_FLIP);
        lost++;
    }
    assert_true(lost > 10 && reported > 5);
    iw_destroy(image);
}

static void test_nothing_is_missing(void **state)
{
    lose_each_node(false);
}

/* If a snapshot shares a node, the extent tree gives the blocks below it to the source only. */
static void test_snapshots(void **state)
{
    lose_each_node(true);
}

static const char *const names[] = {"a", "b", "c", "d", "e", "f"};

/* A snapshot shares some nodes; since then, a directory was moved, so others are different. */
static struct iw_image *make_moved(void)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.items_per_leaf = 7, .pointers_per_node = 8});
    uint64_t directories[COUNT(names)];
    for (size_t i = 0; i < COUNT(names); i++) {
        directories[i] = iw_directory(image, FS, TOP, names[i]);
        for (size_t file = 0; file < COUNT(names); file++)
            iw_file(image, FS, directories[i], names[file]);
    }
    iw_snapshot(image, 256, FS, 0, 0, "snapshot", 0);
    iw_use_full_references(image, 256);
    iw_move(image, FS, directories[1], TOP, "b", directories[0], "moved");
    iw_write_memory(image);
    return image;
}

static void flip(struct iw_image *image, const struct iw_block *block)
{
    iw_corrupt(image, block->logical, 1, 64, 64, IW_FLIP);
}

static void check_foreign(const struct iw_image *image)
{
    struct iw_paths all = iw_expected_paths(image);
    struct bw_fs *fs;
    const char *example = "";
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
    expect_success(result.error);
    if (count_foreign(&result, &all, &example))
        fail_msg("\"%s\" is too much", example);
    bw_fs_close(fs);
    walk_result_free(&result);
    iw_paths_free(&all);
}

/* Leaves of the snapshot do not replace those that are lost with a node, also if it shares another
 * lost node. */
static void test_leaves_of_a_snapshot(void **state)
{
    struct iw_image *image = make_moved();
    const struct iw_block *changed = iw_block_find(image, FS, 1, 0), *leaf;
    const struct iw_block *shared = iw_block_find(image, FS, 1, 2);
    assert_int_not_equal(changed->logical, iw_block_find(image, 256, 1, 0)->logical);
    assert_int_equal(shared->logical, iw_block_find(image, 256, 1, 2)->logical);
    flip(image, changed);
    flip(image, shared);
    for (size_t i = 0; (leaf = iw_block_find(image, FS, 0, i)) && i < 8; i++) {
        flip(image, leaf);
        check_foreign(image);
        flip(image, leaf);
    }
    iw_destroy(image);
}

/* Many lost nodes at once, including some that the walk does not reach because the paths to their
 * directories are lost. */
static void test_most_nodes(void **state)
{
    for (unsigned spared = 0; spared < 5; spared++) {
        struct iw_image *image = make_image(false);
        const struct iw_block *node = NULL;
        for (size_t i = 0; (node = iw_block_find(image, FS, 1, i)); i++)
            if (i % 5 != spared)
                iw_corrupt(image, node->logical, 1, 64, 64, IW_FLIP);
        struct bw_fs *fs;
        expect_success(open_image(image, NULL, &fs));
        struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
        expect_success(result.error);
        expect_paths(image, &result);
        walk_result_free(&result);
        bw_fs_close(fs);
        iw_destroy(image);
    }
}

/* Without the extent tree, everything below a lost node is lost. */
static void test_extent_tree_is_lost_too(void **state)
{
    struct iw_image *image = make_image(false);
    const struct iw_block *root = iw_root_block(image, FS);
    struct bw_fs *fs;
    iw_corrupt(image, root->logical, 1, 64, 64, IW_FLIP);
    iw_corrupt(image, iw_root_block(image, BW_EXTENT_TREE)->logical, 1, 64, 64, IW_FLIP);
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
    expect_success(result.error);
    assert_int_equal(result.count, 0);
    walk_result_free(&result);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_extent_items(void **state)
{
    struct {
        struct bw_disk_extent_item extent;
        struct bw_disk_inline_reference references[2];
    } bytes = {
        .extent = {.generation = bw_put64(7), .flags = bw_put64(BW_EXTENT_TREE_BLOCK)},
        .references = {{BW_TREE_BLOCK_REF, bw_put64(5)}, {BW_SHARED_BLOCK_REF, bw_put64(4096)}}};
    struct bw_item item = {{8192, BW_METADATA_ITEM, 2}, (const void *)&bytes, sizeof bytes};
    struct bw_tree_extent extent;
    struct bw_extent_reference reference;
    assert_true(bw_tree_extent_decode(&item, &extent));
    assert_int_equal(extent.bytenr, 8192);
    assert_int_equal(extent.generation, 7);
    assert_int_equal(extent.level, 2);
    assert_true(bw_extent_reference_next(&extent.references, &reference));
    assert_true(!reference.shared && reference.referrer == 5);
    assert_true(bw_extent_reference_next(&extent.references, &reference));
    assert_true(reference.shared && reference.referrer == 4096);
    assert_false(bw_extent_reference_next(&extent.references, &reference));
    item.key.type = BW_BLOCK_GROUP_ITEM;
    assert_false(bw_tree_extent_decode(&item, &extent));
    item.key.type = BW_METADATA_ITEM;
    item.size = sizeof bytes - 1;
    assert_true(bw_tree_extent_decode(&item, &extent));
    assert_true(bw_extent_reference_next(&extent.references, &reference));
    assert_false(bw_extent_reference_next(&extent.references, &reference));
    item.size = sizeof bytes.extent - 1;
    assert_false(bw_tree_extent_decode(&item, &extent));
    /* An EXTENT_ITEM of file data, and one of a tree block that is too short for its level. */
    item.key.type = BW_EXTENT_ITEM;
    item.size = sizeof bytes.extent;
    assert_false(bw_tree_extent_decode(&item, &extent));
    bytes.extent.flags = bw_put64(1);
    item.size = sizeof bytes;
    assert_false(bw_tree_extent_decode(&item, &extent));
}
