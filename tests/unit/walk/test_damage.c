/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lost blocks: images with one copy of everything, in which each block of the top-level subvolume
 * is destroyed in turn. The walk must list exactly the paths of the model in
 * tests/support/recoverable.c, and report the loss. Also single damaged entries.
 */
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

enum { FILES = 8 };

static void make_file(struct iw_image *image, uint64_t directory, const char *prefix,
                      unsigned number)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%u", prefix, number);
    iw_file(image, FS, directory, name);
}

/* Directories in directories, one that was moved under a younger one, links in several places. */
static struct iw_image *make_image(const struct iw_options *options)
{
    struct iw_image *image = iw_create(options);
    uint64_t directory = TOP, moved = iw_directory(image, FS, TOP, "to be moved");
    for (unsigned depth = 0; depth < 4; depth++) {
        for (unsigned i = 0; i < FILES; i++)
            make_file(image, directory, "file", i);
        for (unsigned i = 0; i < 3; i++)
            make_file(image, moved, "in moved", depth * 3 + i);
        char name[32];
        snprintf(name, sizeof name, "directory %u", depth);
        directory = iw_directory(image, FS, directory, name);
    }
    uint64_t linked = iw_file(image, FS, directory, "linked");
    iw_link(image, FS, linked, TOP, "linked at the top");
    iw_link(image, FS, linked, moved, "linked in moved");
    iw_link_extended(image, FS, linked, TOP, "linked by extref");
    iw_symlink(image, FS, TOP, "symlink", "linked");
    iw_next_inode(image, FS, 9000);
    uint64_t late = iw_directory(image, FS, TOP, "late");
    iw_move(image, FS, moved, TOP, "to be moved", late, "moved");
    iw_write_memory(image);
    return image;
}

static struct walk_result walk_image(const struct iw_image *image, struct report_log *log,
                                     unsigned threads)
{
    struct bw_fs *fs;
    expect_success(open_image(image, log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = threads});
    expect_success(result.error);
    bw_fs_close(fs);
    return result;
}

static void check_lost_block(const struct iw_image *image, const struct iw_block *lost)
{
    struct report_log log = {0};
    struct iw_paths all = iw_expected_paths(image), recoverable = recoverable_paths(image, lost);
    struct walk_result result = walk_image(image, &log, 1);
    const char *example = "";
    size_t foreign = count_foreign(&result, &all, &example);
    if (foreign)
        fail_msg("block of level %u at (%llu %u %llu) lost: %zu paths too many, as \"%s\"",
                 lost->level, (unsigned long long)lost->first_key.objectid, lost->first_key.type,
                 (unsigned long long)lost->first_key.offset, foreign, example);
    size_t missing = count_missing(&result, &recoverable, &example);
    if (missing)
        fail_msg("block of level %u at (%llu %u %llu) lost: %zu of %zu paths missing, as \"%s\"",
                 lost->level, (unsigned long long)lost->first_key.objectid, lost->first_key.type,
                 (unsigned long long)lost->first_key.offset, missing, recoverable.count, example);
    /* A leaf without directory entries need not be read. */
    if (result.count < all.count) {
        assert_true(log.counts[BW_DAMAGE] > 0);
        assert_int_equal(result.summary.lost_blocks, 1);
    }
    assert_int_equal(result.summary.files, result.count);
    walk_result_free(&result);
    iw_paths_free(&recoverable);
    iw_paths_free(&all);
    report_log_free(&log);
}

static void check_every_block(const struct iw_options *options)
{
    struct iw_image *image = make_image(options);
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        if (block->tree != FS)
            continue;
        iw_corrupt(image, block->logical, 1, 64, 64, IW_FLIP);
        check_lost_block(image, block);
        iw_corrupt(image, block->logical, 1, 64, 64, IW_FLIP);
    }
    check_walk(image, NULL);
    iw_destroy(image);
}

static void test_every_block_lost(void **state)
{
    static const struct iw_options shapes[] = {
        {.nodesize = 4096},
        {.nodesize = 4096, .items_per_leaf = 10, .pointers_per_node = 8},
        {.nodesize = 4096, .items_per_leaf = 3, .pointers_per_node = 4},
        {.nodesize = 16384, .items_per_leaf = 7, .pointers_per_node = 3},
        {.nodesize = 4096, .items_per_leaf = 1, .pointers_per_node = 5},
        {.nodesize = 4096, .items_per_leaf = 2, .pointers_per_node = 3},
    };
    for (size_t i = 0; i < COUNT(shapes); i++)
        check_every_block(&shapes[i]);
}

/* Two lost blocks: nothing wrong is listed, and everything known without either block is. */
static void test_pairs_of_leaves_lost(void **state)
{
    struct iw_image *image =
        make_image(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 12});
    struct iw_paths all = iw_expected_paths(image);
    const struct iw_block *first, *second;
    for (size_t i = 0; (first = iw_block_find(image, FS, 0, i)); i++)
        for (size_t j = i + 1; (second = iw_block_find(image, FS, 0, j)); j++) {
            const char *example = "";
            struct report_log log = {0};
            iw_corrupt(image, first->logical, 1, 64, 64, IW_ZERO);
            iw_corrupt(image, second->logical, 1, 64, 64, IW_ZERO);
            struct walk_result result = walk_image(image, &log, 1);
            assert_int_equal(count_foreign(&result, &all, &example), 0);
            assert_true(result.count == all.count || log.counts[BW_DAMAGE]);
            walk_result_free(&result);
            report_log_free(&log);
            uint8_t bytes[4096];
            unsigned device;
            uint64_t offset;
            const struct iw_block *const both[] = {first, second};
            for (size_t at = 0; at < 2; at++) {
                iw_block_bytes(image, both[at]->logical, bytes);
                iw_locate(image, both[at]->logical, 1, &device, &offset);
                iw_device_write(image, device, offset, bytes, sizeof bytes);
            }
        }
    check_walk(image, NULL);
    iw_paths_free(&all);
    iw_destroy(image);
}

/* Damage does not make the order depend on the threads. */
static void test_threads_agree_on_damage(void **state)
{
    struct iw_image *image = make_image(
        &(struct iw_options){.nodesize = 4096, .items_per_leaf = 5, .pointers_per_node = 4});
    for (size_t nth = 0; nth < 20; nth += 3) {
        const struct iw_block *leaf = iw_block_find(image, FS, 0, nth);
        iw_corrupt(image, leaf->logical, 1, 64, 64, IW_FLIP);
        struct walk_result one = walk_image(image, NULL, 1), five = walk_image(image, NULL, 5);
        assert_int_equal(one.bytes.length, five.bytes.length);
        assert_memory_equal(one.bytes.data, five.bytes.data, one.bytes.length);
        assert_int_equal(one.summary.lost_blocks, five.summary.lost_blocks);
        walk_result_free(&one);
        walk_result_free(&five);
        iw_corrupt(image, leaf->logical, 1, 64, 64, IW_FLIP);
    }
    iw_destroy(image);
}

/* The entry of a subvolume is lost; the root tree brings it back. */
static void test_lost_subvolume_entry(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 1});
    uint64_t directory = iw_directory(image, FS, TOP, "directory");
    iw_subvolume(image, 256, FS, directory, "nest", 0);
    iw_file(image, 256, TOP, "egg");
    iw_write_memory(image);
    const struct iw_block *leaf =
        iw_block_of_key(image, FS, (struct bw_key){directory, BW_DIR_INDEX, 2});
    assert_non_null(leaf);
    iw_corrupt(image, leaf->logical, 1, 0, 4096, IW_ZERO);
    struct report_log log = {0};
    struct walk_result result = walk_image(image, &log, 1);
    expect_paths(image, &result);
    assert_int_equal(log.counts[BW_DAMAGE], 1);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

/* A block that two snapshots share is lost to both, and reported once. */
static void test_shared_block_is_reported_once(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 4});
    for (unsigned i = 0; i < 30; i++)
        make_file(image, TOP, "file", i);
    iw_snapshot(image, 256, FS, FS, TOP, "one", 0);
    iw_snapshot(image, 257, FS, FS, TOP, "two", 0);
    iw_write_memory(image);
    const struct iw_block *leaf =
        iw_block_of_key(image, 256, (struct bw_key){TOP, BW_DIR_INDEX, 12});
    assert_int_equal(leaf->tree, FS);
    iw_corrupt(image, leaf->logical, 1, 64, 64, IW_FLIP);
    struct report_log log = {0};
    struct walk_result result = walk_image(image, &log, 2);
    expect_paths(image, &result);
    assert_int_equal(log.counts[BW_DAMAGE], 1);
    assert_int_equal(result.summary.lost_blocks, 3);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

/* The root tree: a lost leaf costs the subvolumes in it, or their names if the other side is lost
 * as well. */
static void test_lost_blocks_of_the_root_tree(void **state)
{
    for (size_t nth = 0;; nth++) {
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
        iw_shape(image, BW_ROOT_TREE, 2, 3, 0);
        fill_sample(image);
        iw_write_memory(image);
        const struct iw_block *leaf = iw_block_find(image, BW_ROOT_TREE, 0, nth);
        if (!leaf) {
            iw_destroy(image);
            break;
        }
        iw_corrupt(image, leaf->logical, 1, 64, 64, IW_FLIP);
        struct report_log log = {0};
        struct iw_paths all = iw_expected_paths(image);
        struct walk_result result = walk_image(image, &log, 1);
        const char *example = "";
        assert_int_equal(count_foreign(&result, &all, &example), 0);
        assert_true(log.counts[BW_DAMAGE] > 0);
        walk_result_free(&result);
        iw_paths_free(&all);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* An unreadable entry in a readable leaf: the name is found through the inode. */
static void test_single_entries(void **state)
{
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    enum { FIRST = 2 }; /* index of the first entry of a directory */
    const char *example;
    for (unsigned i = 0; i < FILES; i++)
        make_file(image, TOP, "file", i);
    struct iw_paths expected = iw_expected_paths(image);
    assert_int_equal(expected.count, FILES);
    struct bw_disk_dir_item *entry =
        iw_item_bytes(image, FS, (struct bw_key){TOP, BW_DIR_INDEX, FIRST}, NULL);
    ((char *)(entry + 1))[1] = '/';
    entry = iw_item_bytes(image, FS, (struct bw_key){TOP, BW_DIR_INDEX, FIRST + 3}, NULL);
    entry->name_length = bw_put16(99);
    iw_item(image, FS, (struct bw_key){TOP, BW_DIR_INDEX, FIRST + FILES - 1}, "", 0);
    open_fixture(&fixture);
    struct walk_result result = walk_fs(fixture.fs, &(struct bw_walk_options){0});
    assert_int_equal(count_missing(&result, &expected, &example), 0);
    assert_int_equal(result.count, FILES);
    assert_int_equal(report_log_count(&fixture.log, "directory inode 256: an entry "), 3);
    walk_result_free(&result);
    iw_paths_free(&expected);
    close_fixture(&fixture);
}

static void make_others(struct iw_image *image, uint64_t directory, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        make_file(image, directory, "other", i);
}

static bool lists(const struct iw_image *image, const char *path)
{
    struct bw_fs *fs;
    bool found = false;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1});
    for (size_t i = 0; i < result.count; i++)
        found |= strcmp(result.paths[i], path) == 0;
    walk_result_free(&result);
    bw_fs_close(fs);
    return found;
}

/* A recovered name waits until its directory is known, also if that takes another search: here, the
 * entry of the directory above is found only after its leaf is known to be lost. The number of
 * other files decides which items share leaves. */
static void check_late_directory(unsigned padding)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 11});
    const uint64_t outer = iw_directory(image, FS, TOP, "outer");
    make_others(image, TOP, 20 + padding);
    const uint64_t middle = iw_directory(image, FS, outer, "middle");
    make_others(image, middle, 20);
    const uint64_t inner = iw_directory(image, FS, middle, "inner");
    make_file(image, iw_directory(image, FS, TOP, "neighbour"), "file", 0);
    make_others(image, outer, 20);
    make_file(image, inner, "file", 0);
    iw_subvolume(image, 256, FS, inner, "subvolume", 0);
    iw_file(image, 256, TOP, "in subvolume");
    iw_write_memory(image);
    const uint64_t directories[] = {TOP, outer, inner};
    for (size_t i = 0; i < COUNT(directories); i++) {
        const struct bw_key first = {directories[i], BW_DIR_INDEX, 2};
        iw_corrupt(image, iw_block_of_key(image, FS, first)->logical, 1, 64, 64, IW_ZERO);
    }
    if (!lists(image, "/outer/middle/inner/file-0"))
        fail_msg("with %u more files, a file is missing", padding);
    if (!lists(image, "/outer/middle/inner/subvolume/in subvolume"))
        fail_msg("with %u more files, a subvolume is missing", padding);
    iw_destroy(image);
}

static void test_late_directory(void **state)
{
    for (unsigned padding = 0; padding < 8; padding++)
        check_late_directory(padding);
}
