/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk on sound images of many shapes: tree levels, node sizes, checksums, deep and moved
 * directories, links, subvolumes and snapshots, options, order and threads.
 */
#include <pthread.h>

#include "support/walk_helpers.h"

static struct walk_result walk_with(const struct iw_image *image,
                                    const struct bw_walk_options *options)
{
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, options);
    bw_fs_close(fs);
    return result;
}

static void check_and_destroy(struct iw_image *image)
{
    iw_write_memory(image);
    check_walk(image, NULL);
    iw_destroy(image);
}

static void test_empty(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    iw_write_memory(image);
    struct walk_result result = walk_with(image, &(struct bw_walk_options){0});
    assert_int_equal(result.count, 0);
    assert_int_equal(result.summary.directories, 1);
    assert_int_equal(result.summary.subvolumes, 1);
    walk_result_free(&result);
    iw_destroy(image);
}

static void test_sizes_and_checksums(void **state)
{
    for (uint32_t nodesize = 4096; nodesize <= BW_MAX_NODESIZE; nodesize *= 2)
        for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++)
            for (unsigned mixed = 0; mixed < 2; mixed++) {
                struct iw_image *image =
                    iw_create(&(struct iw_options){.nodesize = nodesize,
                                                   .sectorsize = mixed ? nodesize : 4096,
                                                   .checksum_type = (enum bw_checksum_type)type,
                                                   .mixed_groups = mixed,
                                                   .separate_metadata_uuid = mixed});
                fill_sample(image);
                check_and_destroy(image);
            }
}

static void test_levels(void **state)
{
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++) {
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
        iw_shape(image, FS, level ? 60 : 0, 0, level);
        if (level) {
            iw_shape(image, BW_ROOT_TREE, 3, 3, level);
            iw_shape(image, BW_CHUNK_TREE, 1, 2, level);
            fill_sample(image);
        } else {
            iw_file(image, FS, iw_directory(image, FS, TOP, "directory"), "file");
        }
        iw_write_memory(image);
        assert_true(iw_root_block(image, FS)->level >= level);
        check_walk(image, NULL);
        iw_destroy(image);
    }
}

static void test_small_leaves(void **state)
{
    for (unsigned items = 1; items <= 12; items++)
        for (unsigned pointers = 3; pointers <= 9; pointers += 3) {
            struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
            iw_shape(image, FS, items, pointers, 0);
            fill_sample(image);
            check_and_destroy(image);
        }
}

static void test_deep_directories(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    uint64_t directory = TOP;
    for (unsigned depth = 0; depth < 150; depth++) {
        char name[64];
        snprintf(name, sizeof name, "file at %u", depth);
        iw_file(image, FS, directory, name);
        snprintf(name, sizeof name, "directory at %u", depth);
        directory = iw_directory(image, FS, directory, name);
    }
    iw_file(image, FS, directory, "deepest");
    check_and_destroy(image);
}

/* Each directory lies in one that is younger, so that every wave of the walk finds one more. */
static void test_moved_directories(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 5});
    uint64_t inner = iw_directory(image, FS, TOP, "0");
    for (unsigned i = 1; i < 25; i++) {
        char name[16], old[16];
        snprintf(old, sizeof old, "%u", i - 1);
        snprintf(name, sizeof name, "%u", i);
        iw_file(image, FS, inner, "file");
        uint64_t outer = iw_directory(image, FS, TOP, name);
        iw_move(image, FS, inner, TOP, old, outer, "moved");
        inner = outer;
    }
    check_and_destroy(image);
}

static void test_links(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    uint64_t file = iw_file(image, FS, TOP, "first"), other = iw_directory(image, FS, TOP, "other");
    for (unsigned i = 0; i < 600; i++) {
        char name[64];
        snprintf(name, sizeof name, "link number %u of a file that has very many of them", i);
        iw_link(image, FS, file, i % 3 ? TOP : other, name);
    }
    check_and_destroy(image);
}

static void test_odd_names(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    char name[BW_NAME_MAX + 1] = "";
    for (unsigned byte = 1; byte < 256; byte++) {
        memset(name, (int)byte, BW_NAME_MAX);
        if (byte != '/')
            iw_file(image, FS, TOP, name);
    }
    iw_file(image, FS, TOP, "...");
    iw_file(image, FS, TOP, "\n");
    iw_file(image, FS, iw_directory(image, FS, TOP, " "), "\xff");
    check_and_destroy(image);
}

static void test_other_types(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    for (uint8_t type = BW_FILE_CHARACTER_DEVICE; type <= BW_FILE_SYMLINK; type++) {
        char name[] = {(char)('a' + type), '\0'};
        iw_make(image, FS, TOP, name, type);
    }
    iw_entry(image, FS,
             &(struct iw_entry){.directory = TOP,
                                .name = "encrypted",
                                .type = BW_FILE_REGULAR | 0x80,
                                .location = {300, BW_INODE_ITEM, 0}});
    iw_write_memory(image);
    struct walk_result result = walk_with(image, &(struct bw_walk_options){0});
    assert_int_equal(result.count, 1);
    assert_string_equal(result.paths[0], "/encrypted");
    walk_result_free(&result);
    iw_destroy(image);
}

/* Large enough for several tasks and waves: the bytes do not depend on the threads. */
static struct iw_image *large_image(void)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.nodesize = 4096, .pointers_per_node = 10});
    uint64_t directories[40] = {TOP};
    for (unsigned i = 1; i < COUNT(directories); i++) {
        char name[32];
        snprintf(name, sizeof name, "directory %u", i);
        directories[i] = iw_directory(image, FS, directories[i / 3], name);
        for (unsigned n = 0; n < 40; n++) {
            snprintf(name, sizeof name, "file %u of %u", n, i);
            iw_file(image, FS, directories[i * 7 % i], name);
        }
    }
    for (uint64_t id = 256; id < 262; id++) {
        char name[32];
        snprintf(name, sizeof name, "snapshot %u", (unsigned)id);
        iw_snapshot(image, id, FS, FS, directories[id % 7], name, 0);
        snprintf(name, sizeof name, "new in %u", (unsigned)id);
        iw_file(image, id, TOP, name);
    }
    iw_write_memory(image);
    return image;
}

static void test_threads(void **state)
{
    static const unsigned threads[] = {1, 2, 5, 0, 64, UINT32_MAX};
    struct iw_image *image = large_image();
    struct walk_result first = walk_with(image, &(struct bw_walk_options){.threads = 1});
    expect_paths(image, &first);
    for (size_t i = 1; i < COUNT(threads); i++) {
        struct walk_result other =
            walk_with(image, &(struct bw_walk_options){.threads = threads[i]});
        expect_success(other.error);
        assert_int_equal(other.bytes.length, first.bytes.length);
        assert_memory_equal(other.bytes.data, first.bytes.data, first.bytes.length);
        assert_memory_equal(&other.summary, &first.summary, sizeof first.summary);
        walk_result_free(&other);
    }
    walk_result_free(&first);
    iw_destroy(image);
}

/* Consumers. */

struct counter {
    size_t calls, limit;
    bool broken; /* a run that is no whole paths */
};

static struct bw_error *count_calls(void *context, const char *paths, size_t length)
{
    struct counter *counter = context;
    counter->broken |= length == 0 || paths[0] != '/' || paths[length - 1] != '\0';
    if (++counter->calls == counter->limit)
        return bw_error_create(BW_ERROR_STOPPED, "enough");
    return NULL;
}

static void test_consumer_stops(void **state)
{
    struct iw_image *image = large_image();
    for (unsigned threads = 1; threads <= 5; threads += 2)
        for (size_t limit = 1; limit < 40; limit += 4) {
            struct counter counter = {.limit = limit};
            struct bw_walk_options options = {.struct_size = sizeof options,
                                              .threads = threads,
                                              .consume = count_calls,
                                              .context = &counter};
            struct bw_fs *fs;
            expect_success(open_image(image, NULL, &fs));
            struct bw_error *error = bw_walk(fs, &options, NULL);
            if (counter.calls >= limit)
                expect_error(error, BW_ERROR_STOPPED, "enough");
            else
                expect_success(error);
            assert_true(counter.calls <= limit);
            assert_false(counter.broken);
            bw_fs_close(fs);
        }
    iw_destroy(image);
}

static void test_escape(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    iw_file(image, FS, iw_directory(image, FS, TOP, "a b"), "new\nline");
    iw_subvolume(image, 256, FS, TOP, "sub volume", 0);
    iw_file(image, 256, TOP, "\x1b[31m");
    iw_write_memory(image);
    const struct bw_rows_options paths = {
        .struct_size = sizeof paths, .style = BW_ROWS_PATHS, .escape = true};
    struct bw_rows *rows;
    expect_success(bw_rows_create("fileinfo", &paths, &rows));
    struct walk_result result = walk_with(image, &(struct bw_walk_options){.rows = rows});
    assert_int_equal(result.count, 2);
    assert_string_equal(result.paths[0], "/a\\ b/new\\nline");
    assert_string_equal(result.paths[1], "/sub\\ volume/\\033[31m");
    walk_result_free(&result);
    bw_rows_destroy(rows);
    iw_destroy(image);
}

/* Walking twice gives the same twice. */
static void test_again(void **state)
{
    struct iw_image *image = sample_image(&(struct iw_options){.nodesize = 4096});
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result first = walk_fs(fs, &(struct bw_walk_options){0});
    struct walk_result second = walk_fs(fs, &(struct bw_walk_options){.threads = 3});
    expect_paths(image, &first);
    assert_int_equal(first.bytes.length, second.bytes.length);
    assert_memory_equal(first.bytes.data, second.bytes.data, first.bytes.length);
    assert_true(bw_fs_bytes_read(fs) > 0);
    walk_result_free(&first);
    walk_result_free(&second);
    bw_fs_close(fs);
    bw_fs_close(NULL);
    iw_destroy(image);
}

/* The greatest key that an entry of a directory can have, also as the first one of a node. */
/* A walk with its result, for a thread. */
struct concurrent_walk {
    pthread_t thread;
    struct bw_fs *fs;
    struct walk_result result;
};

static void *walk_in_thread(void *context)
{
    struct concurrent_walk *walk = context;
    walk->result = walk_fs(walk->fs, &(struct bw_walk_options){.threads = 2});
    return NULL;
}

static void test_at_once(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct concurrent_walk walks[4] = {0};
    struct bw_fs *fs;
    iw_shape(image, FS, 3, 3, 3);
    fill_sample(image);
    iw_write_memory(image);
    expect_success(open_image(image, NULL, &fs));
    for (size_t i = 0; i < COUNT(walks); i++) {
        walks[i].fs = fs;
        assert_int_equal(pthread_create(&walks[i].thread, NULL, walk_in_thread, &walks[i]), 0);
    }
    for (size_t i = 0; i < COUNT(walks); i++)
        pthread_join(walks[i].thread, NULL);
    assert_true(walks[0].result.count > 10);
    for (size_t i = 1; i < COUNT(walks); i++) {
        assert_int_equal(walks[i].result.count, walks[0].result.count);
        for (size_t k = 0; k < walks[0].result.count; k++)
            assert_string_equal(walks[i].result.paths[k], walks[0].result.paths[k]);
    }
    for (size_t i = 0; i < COUNT(walks); i++)
        walk_result_free(&walks[i].result);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_last_index(void **state)
{
    for (unsigned pointers = 4; pointers <= 16; pointers++) {
        struct iw_image *image = iw_create(&(struct iw_options){
            .nodesize = 4096, .items_per_leaf = 1, .pointers_per_node = pointers});
        const uint64_t directory = iw_directory(image, FS, TOP, "directory");
        const uint64_t file = iw_file(image, FS, directory, "first");
        iw_entry(image, FS,
                 &(struct iw_entry){.directory = directory,
                                    .name = "last",
                                    .type = BW_FILE_REGULAR,
                                    .location = {file, BW_INODE_ITEM, 0},
                                    .index = UINT64_MAX,
                                    .without_item = true});
        check_and_destroy(image);
    }
}
