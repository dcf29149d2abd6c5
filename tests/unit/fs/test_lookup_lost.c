/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths, inodes and contents below lost internal nodes: everything that the walk lists can be
 * looked up and read. If leaves are lost as well, unknown entries are not reported as missing.
 */
#include "btrfs-walk/inode.h"
#include "fs/inode.h"
#include "fs/lookup.h"
#include "support/data_image.h"

#define GROUP_SETUP limit_resources

static struct iw_image *make_image(void)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.items_per_leaf = 7, .pointers_per_node = 3});
    fill_depths(image, 5, 7);
    iw_write_memory(image);
    return image;
}

static void lose(struct iw_image *image, const struct iw_block *block)
{
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
}

/* Looks up all files; returns of how many neither path nor inode can be found. */
static size_t look_up_all(struct iw_image *image, struct report_log *log)
{
    struct iw_paths all = iw_expected_paths(image);
    struct bw_fs *fs;
    size_t failed = 0;
    expect_success(open_image(image, log, &fs));
    for (size_t i = 0; i < all.count; i++) {
        struct bw_place place;
        struct bw_inode inode;
        struct bw_error *error = bw_lookup(fs, NULL, all.paths[i], false, &place);
        if (!error)
            error = bw_inode_get(fs, &place, &inode);
        if (error && error->code == BW_ERROR_NOT_FOUND)
            fail_msg("%s is said not to be there: %s", all.paths[i], error->message);
        failed += error != NULL;
        bw_error_free(error);
    }
    bw_fs_close(fs);
    iw_paths_free(&all);
    return failed;
}

static void test_each_node(void **state)
{
    struct iw_image *image = make_image();
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        struct report_log log = {0};
        if (block->tree != FS || !block->level)
            continue;
        lose(image, block);
        assert_int_equal(look_up_all(image, &log), 0);
        assert_true(log.counts[BW_DAMAGE] <= 1);
        report_log_free(&log);
        lose(image, block);
    }
    iw_destroy(image);
}

static void test_directories(void **state)
{
    struct iw_image *image = make_image();
    struct bw_fs *fs;
    struct bw_place place;
    size_t count = 0;
    lose(image, iw_root_block(image, FS));
    expect_success(open_image(image, NULL, &fs));
    expect_success(bw_lookup(fs, NULL, "directory/directory", false, &place));
    struct bw_directory *directory;
    const struct bw_directory_entry *entry;
    expect_success(bw_directory_open(fs, &place, BW_DIRECTORY_START, &directory));
    while (expect_success(bw_directory_next(directory, &entry)), entry)
        count++;
    bw_directory_close(directory);
    assert_int_equal(count, 8);
    expect_error(bw_lookup(fs, NULL, "directory/nothing", false, &place), BW_ERROR_NOT_FOUND, NULL);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_leaves_as_well(void **state)
{
    struct iw_image *image = make_image();
    const struct iw_block *leaf;
    size_t failed = 0;
    lose(image, iw_root_block(image, FS));
    for (size_t i = 0; (leaf = iw_block_find(image, FS, 0, i)); i++) {
        struct report_log log = {0};
        lose(image, leaf);
        size_t lost = look_up_all(image, &log);
        assert_true(lost < 10 && log.counts[BW_DAMAGE] >= 1);
        failed += lost;
        report_log_free(&log);
        lose(image, leaf);
    }
    assert_true(failed > 0);
    iw_destroy(image);
}

/* More snapshots than the cache of names holds, without directory entries: names are found through
 * the inodes every time. */
enum { SNAPSHOTS = 11, FILES = 20 };

static void lose_entries(struct iw_image *image, uint64_t directory)
{
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        if (!block->level && block->first_key.objectid == directory &&
            block->first_key.type >= BW_DIR_ITEM && block->last_key.objectid == directory)
            lose(image, block);
    }
}

static void test_many_trees(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.items_per_leaf = 5});
    uint64_t directory = iw_directory(image, FS, TOP, "directory");
    struct bw_fs *fs;
    char name[64];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "file %u", i);
        iw_file(image, FS, directory, name);
    }
    for (unsigned i = 0; i < SNAPSHOTS; i++) {
        snprintf(name, sizeof name, "snapshot %u", i);
        iw_snapshot(image, 300 + i, FS, FS, TOP, name, 0);
    }
    iw_write_memory(image);
    lose_entries(image, directory);
    expect_success(open_image(image, NULL, &fs));
    for (unsigned round = 0; round < 2 * SNAPSHOTS * FILES; round++) {
        struct bw_place place;
        unsigned snapshot = round % SNAPSHOTS, file = round / SNAPSHOTS % FILES;
        snprintf(name, sizeof name, "snapshot %u/directory/file %u", snapshot, file);
        expect_success(bw_lookup(fs, NULL, name, false, &place));
        assert_int_equal(place.subvolume->tree.id, 300 + snapshot);
        assert_int_equal(place.inode, directory + 1 + file);
    }
    bw_fs_close(fs);
    iw_destroy(image);
}

/* Inodes follow each other in another order than the directories that they are in. */
static void test_names_out_of_order(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    struct bw_place place;
    iw_shape(image, FS, 3, 0, 0);
    const uint64_t first = iw_directory(image, FS, TOP, "first");
    const uint64_t second = iw_directory(image, FS, TOP, "second");
    for (unsigned i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof name, "file %u", i);
        iw_file(image, FS, i % 2 ? first : second, name);
    }
    iw_write_memory(image);
    lose_entries(image, first);
    open_written(&fixture);
    for (unsigned i = 1; i < FILES; i += 2) {
        char path[32];
        snprintf(path, sizeof path, "first/file %u", i);
        expect_success(bw_lookup(fixture.fs, NULL, path, false, &place));
        assert_int_equal(place.inode, second + 1 + i);
    }
    close_fixture(&fixture);
}

/* A file of many extents, one sector each, in many leaves. */
enum { EXTENTS = 60 };

static struct data_image *make_file(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    for (unsigned i = 0; i < EXTENTS; i += 4)
        data_image_checksums(image, i, 4);
    for (unsigned i = 0; i < EXTENTS; i++)
        data_image_plain(image, (uint64_t)i * SECTOR, (uint64_t)i * SECTOR, SECTOR);
    data_image_inode(image, (uint64_t)EXTENTS * SECTOR, 0);
    iw_shape(image->image, FS, 8, 0, 0);
    iw_shape(image->image, BW_CSUM_TREE, 4, 0, 0);
    return image;
}

static void lose_roots(struct data_image *image)
{
    lose(image->image, iw_root_block(image->image, FS));
    lose(image->image, iw_root_block(image->image, BW_CSUM_TREE));
}

static void lose_leaf_too(struct data_image *image)
{
    const struct bw_key key = {image->inode, BW_EXTENT_DATA, (uint64_t)EXTENTS / 2 * SECTOR};
    lose(image->image, iw_block_of_key(image->image, FS, key));
    lose_roots(image);
}

static void lose_checksums_too(struct data_image *image)
{
    lose(image->image, iw_block_find(image->image, BW_CSUM_TREE, 0, 1));
    lose_roots(image);
}

static void read_file(struct data_image *image, struct data_result *result)
{
    const struct bw_data_file file = data_image_file(image, (uint64_t)EXTENTS * SECTOR, false);
    data_image_read(image, &file, 0, UINT64_MAX, result);
}

static void test_contents(void **state)
{
    struct data_image *image = make_file();
    struct data_result result;
    data_image_open(image, lose_roots);
    read_file(image, &result);
    assert_int_equal(result.bad, 0);
    assert_int_equal(result.bytes.length, EXTENTS * SECTOR);
    assert_memory_equal(result.bytes.data, image->data, EXTENTS * SECTOR);
    assert_int_equal(image->log.counts[BW_DAMAGE], 2);
    data_result_free(&result);
    data_image_free(image);
}

/* Data in the lost leaf are bad, not holes; everything else is right. */
static void check_gap(void (*before)(struct data_image *image), size_t least, size_t most)
{
    struct data_image *image = make_file();
    struct data_result result;
    data_image_open(image, before);
    read_file(image, &result);
    assert_int_equal(result.holes, 0);
    assert_true(result.bad >= least * SECTOR && result.bad <= most * SECTOR);
    assert_int_equal(result.bytes.length, EXTENTS * SECTOR);
    for (size_t i = 0; i < result.bytes.length; i++)
        assert_true((uint8_t)result.bytes.data[i] == image->data[i] || result.bytes.data[i] == '!');
    data_result_free(&result);
    data_image_free(image);
}

static void test_extents_between(void **state)
{
    check_gap(lose_leaf_too, 8, 8);
}

static void test_checksums_between(void **state)
{
    check_gap(lose_checksums_too, 16, 16);
}
