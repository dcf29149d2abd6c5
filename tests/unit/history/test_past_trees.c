/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/history: trees from the blocks of a scan: their lost parts, and roots of trees without a root
 * tree. */
#include "history/history.h"
#include "history/scan.h"
#include "rescue/root_tree.h"
#include "support/walk_helpers.h"

enum { NODESIZE = 4096, FILES = 210 };

/* An image whose tree of files has several levels, and the blocks that are found in it. */
struct scanned {
    struct fixture fixture;
    struct bw_found_index index;
};

static void make_image(struct scanned *scanned)
{
    char name[32];
    scanned->fixture = make_fixture();
    struct iw_image *image = scanned->fixture.image;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        iw_file(image, FS, TOP, name);
    }
    iw_shape(image, FS, 4, 3, 0);
    iw_shape(image, BW_ROOT_TREE, 3, 2, 0);
    iw_write_memory(image);
}

static void lose(struct iw_image *image, const struct iw_block *block, enum iw_damage damage)
{
    assert_non_null(block);
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 0, NODESIZE, damage);
}

static void scan(struct scanned *scanned)
{
    struct bw_scan_ranges ranges = {0};
    open_written(&scanned->fixture);
    struct bw_history_scan scan = {
        .fs = scanned->fixture.fs, .ranges = &ranges, .index = &scanned->index};
    bw_found_init(&scanned->index);
    expect_success(bw_scan_add_chunks(scan.fs, &ranges));
    expect_success(bw_history_scan(&scan));
    bw_scan_range_list_free(&ranges.ranges);
}

static void end(struct scanned *scanned)
{
    bw_found_free(&scanned->index);
    close_fixture(&scanned->fixture);
}

static struct bw_root_pointer root_of(const struct scanned *scanned, uint64_t tree)
{
    const struct iw_block *root = iw_root_block(scanned->fixture.image, tree);
    return (struct bw_root_pointer){root->logical, root->generation, (uint8_t)root->level};
}

/* Nodes of a level are read in batches: there are more of level 1 than fit into one. */
static void test_completeness(void **state)
{
    struct scanned scanned;
    struct bw_completeness *completeness;
    bool readable;
    make_image(&scanned);
    struct iw_image *image = scanned.fixture.image;
    assert_non_null(iw_block_find(image, FS, 1, BW_BATCH + 1));
    lose(image, iw_block_find(image, FS, 0, 0), IW_FLIP);
    lose(image, iw_block_find(image, FS, 0, FILES / 2), IW_ZERO);
    lose(image, iw_block_find(image, FS, 0, FILES - 1), IW_FLIP);
    scan(&scanned);
    expect_success(bw_completeness_create(scanned.fixture.fs, &scanned.index, 0, &completeness));
    const struct bw_tree tree = {.id = FS, .root = root_of(&scanned, FS)};
    struct bw_loss loss;
    expect_success(bw_completeness_of_tree(completeness, &tree, &loss, &readable));
    assert_true(readable);
    assert_int_equal(loss.missing, 3);
    assert_int_equal(loss.trimmed, 1);
    const struct bw_tree root_tree = {.id = BW_ROOT_TREE, .root = root_of(&scanned, BW_ROOT_TREE)};
    expect_success(bw_completeness_of_tree(completeness, &root_tree, &loss, &readable));
    assert_int_equal(loss.missing, 0);
    bw_completeness_destroy(completeness);
    end(&scanned);
}

/* A root that the scan has not found, because another mirror was scanned, can be of several
 * generations. */
static void test_root_of_another_mirror(void **state)
{
    struct scanned scanned;
    struct bw_completeness *completeness;
    make_image(&scanned);
    const struct bw_tree tree = {.id = FS, .root = root_of(&scanned, FS)};
    lose(scanned.fixture.image, iw_root_block(scanned.fixture.image, FS), IW_FLIP);
    scan(&scanned);
    lose(scanned.fixture.image, iw_root_block(scanned.fixture.image, FS), IW_FLIP);
    assert_null(bw_found_find(&scanned.index, tree.root.bytenr, tree.root.generation));
    expect_success(bw_completeness_create(scanned.fixture.fs, &scanned.index, 1, &completeness));
    for (unsigned generation = 0; generation < 2; generation++) {
        bool readable = false;
        struct bw_loss loss;
        expect_success(bw_completeness_of_tree(completeness, &tree, &loss, &readable));
        assert_int_equal(loss.missing, 0);
        assert_true(readable);
    }
    bw_completeness_destroy(completeness);
    end(&scanned);
}

static void expect_root(const struct scanned *scanned, const struct bw_tree_roots *roots,
                        uint64_t tree)
{
    const struct bw_tree_root *found = bw_tree_root_of(roots, tree);
    const struct bw_root_pointer root = root_of(scanned, tree);
    assert_non_null(found);
    assert_int_equal(found->root.bytenr, root.bytenr);
    assert_int_equal(found->root.generation, root.generation);
    assert_int_equal(found->root.level, root.level);
}

static void find_roots(struct scanned *scanned, struct bw_tree_roots *roots)
{
    struct bw_fs *fs = scanned->fixture.fs;
    *roots = (struct bw_tree_roots){0};
    expect_success(bw_tree_roots_find(fs, &scanned->index, fs->superblock.generation, roots));
    expect_root(scanned, roots, FS);
    expect_root(scanned, roots, BW_EXTENT_TREE);
    assert_null(bw_tree_root_of(roots, BW_ROOT_TREE));
}

/* The extent tree also lists the leaves of the root tree that are in use. */
static void test_roots(void **state)
{
    struct scanned scanned;
    struct bw_tree_roots roots;
    const struct iw_block *leaf;
    size_t leaves = 0;
    make_image(&scanned);
    scan(&scanned);
    find_roots(&scanned, &roots);
    assert_true(roots.proven);
    while ((leaf = iw_block_find(scanned.fixture.image, BW_ROOT_TREE, 0, leaves))) {
        assert_int_not_equal(bw_key_map_get(&roots.leaves, leaf->logical, UINT32_MAX), UINT32_MAX);
        leaves++;
    }
    assert_true(leaves > 1);
    assert_int_equal(roots.leaves.count, leaves);
    bw_tree_roots_free(&roots);
    end(&scanned);
}

/* Without an extent tree, the root of a tree is the highest of its newest blocks. */
static void test_highest_blocks(void **state)
{
    struct scanned scanned;
    struct bw_tree_roots roots = {0};
    make_image(&scanned);
    struct iw_image *image = scanned.fixture.image;
    for (size_t i = 0; i < iw_block_count(image); i++)
        if (iw_block(image, i)->tree == BW_EXTENT_TREE)
            lose(image, iw_block(image, i), IW_ZERO);
    scan(&scanned);
    struct bw_fs *fs = scanned.fixture.fs;
    expect_success(bw_tree_roots_find(fs, &scanned.index, fs->superblock.generation, &roots));
    assert_false(roots.proven);
    assert_int_equal(roots.leaves.count, 0);
    assert_true(root_of(&scanned, FS).level > 1);
    expect_root(&scanned, &roots, FS);
    bw_tree_roots_free(&roots);
    end(&scanned);
}

/* A leaf of the extent tree with an item for itself and for the root tree is not the whole tree. */
static void test_part_of_extent_tree(void **state)
{
    struct scanned scanned;
    struct bw_tree_roots roots = {0};
    make_image(&scanned);
    struct iw_image *image = scanned.fixture.image;
    const struct iw_block *root = iw_root_block(image, BW_EXTENT_TREE);
    assert_int_equal(root->level, 1);
    lose(image, root, IW_ZERO);
    scan(&scanned);
    struct bw_fs *fs = scanned.fixture.fs;
    expect_success(bw_tree_roots_find(fs, &scanned.index, fs->superblock.generation, &roots));
    assert_true(roots.generation > 0);
    assert_false(roots.proven);
    expect_root(&scanned, &roots, FS);
    expect_root(&scanned, &roots, BW_CSUM_TREE);
    bw_tree_roots_free(&roots);
    end(&scanned);
}
