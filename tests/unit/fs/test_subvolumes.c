/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subvolume table, paths and look-ups of subvolumes, and walks of one subvolume or without
 * snapshots. */
#include "fs/fs.h"
#include "fs/lookup.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static struct bw_fs *open_sample(struct iw_image **image)
{
    struct bw_fs *fs;
    *image = sample_image(&(struct iw_options){.nodesize = 4096});
    expect_success(open_image(*image, NULL, &fs));
    return fs;
}

static void test_table(void **state)
{
    struct iw_image *image;
    struct bw_fs *fs = open_sample(&image);
    const struct bw_subvolume_table *table = &fs->subvolumes;
    static const uint64_t ids[] = {5, 256, 257, 300, 301, 302};
    assert_int_equal(table->count, COUNT(ids));
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_int_equal(table->items[i].tree.id, ids[i]);
    assert_int_equal(table->default_id, 5);
    assert_null(bw_subvolume_by_id(fs, 255));
    assert_null(bw_subvolume_by_id(fs, 303));
    const struct bw_subvolume *inner = bw_subvolume_by_id(fs, 257);
    assert_int_equal(inner->parent, 256);
    assert_int_equal(inner->name_length, 5);
    assert_memory_equal(bw_subvolume_name(table, inner), "inner", 5);
    assert_false(inner->deleted || inner->is_snapshot);
    assert_true(bw_subvolume_by_id(fs, 302)->deleted);
    assert_true(bw_subvolume_by_id(fs, 300)->is_snapshot);
    assert_int_equal(bw_subvolume_by_id(fs, 5)->parent, 0);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* The cache of shared leaves is made for snapshots only, and not for those being deleted. */
static void test_have_snapshots(void **state)
{
    for (unsigned step = 0; step < 3; step++) {
        struct bw_fs *fs;
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
        iw_subvolume(image, 256, FS, TOP, "subvolume", 0);
        if (step)
            iw_snapshot(image, 257, FS, FS, TOP, "snapshot", 0);
        if (step == 2)
            iw_delete_subvolume(image, 257);
        iw_write_memory(image);
        expect_success(open_image(image, NULL, &fs));
        assert_int_equal(fs->subvolumes.count, step ? 3 : 2);
        assert_int_equal(bw_subvolumes_have_snapshots(&fs->subvolumes), step == 1);
        bw_fs_close(fs);
        iw_destroy(image);
    }
}

static void test_paths(void **state)
{
    static const struct {
        uint64_t id;
        const char *path;
    } cases[] = {{5, "/"},
                 {256, "/high/nest/"},
                 {257, "/high/nest/inner/"},
                 {300, "/snapshot/"},
                 {301, "/high/nest/inner/alias/"}};
    struct iw_image *image;
    struct bw_fs *fs = open_sample(&image);
    struct bw_buffer path = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_success(
            bw_directory_path(fs, NULL, bw_subvolume_by_id(fs, cases[i].id), TOP, &path));
        assert_int_equal(path.length, strlen(cases[i].path));
        assert_memory_equal(path.data, cases[i].path, path.length);
    }
    expect_error(bw_directory_path(fs, NULL, bw_subvolume_by_id(fs, 302), TOP, &path),
                 BW_ERROR_NOT_FOUND, "no subvolume 302");
    /* From a subvolume to one that is nested in it; there is no way to one around it. */
    const struct bw_subvolume *nest = bw_subvolume_by_id(fs, 256);
    expect_success(bw_directory_path(fs, nest, bw_subvolume_by_id(fs, 301), TOP, &path));
    assert_int_equal(path.length, strlen("/inner/alias/"));
    assert_memory_equal(path.data, "/inner/alias/", path.length);
    expect_success(bw_directory_path(fs, nest, nest, TOP, &path));
    assert_int_equal(path.length, 1);
    expect_error(bw_directory_path(fs, nest, bw_subvolume_by_id(fs, 300), TOP, &path),
                 BW_ERROR_NOT_FOUND, "no subvolume");
    bw_buffer_free(&path);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_lookups(void **state)
{
    static const struct {
        const char *text;
        uint64_t id; /* 0: none */
    } cases[] = {
        {"5", 5},
        {"256", 256},
        {"300", 300},
        {"302", 0},
        {"999", 0},
        {"default", 5},
        {"/", 5},
        {"//", 5},
        {"/high/nest", 256},
        {"high/nest/", 256},
        {"//high/nest//", 256},
        {"/high/nest/inner", 257},
        {"/snapshot", 300},
        {"snapshot", 300},
        {"nest", 0},
        {"/nest", 0},
        {"/high", 0},
        {"/doomed", 0},
        {"shot", 0},
        {"/snapshot/inner", 0},
        {"0", 0},
        {"-5", 0},
        {"18446744073709551616", 0},
        {"256x", 0},
        {"high//nest", 256},
        {"./high/./nest/.", 256},
        {".", 5},
        {"high/..", 0},
    };
    struct iw_image *image;
    struct bw_fs *fs = open_sample(&image);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_subvolume *found;
        struct bw_error *error = bw_subvolume_by_name(fs, cases[i].text, &found);
        if (!error != (cases[i].id != 0))
            fail_msg("look-up of \"%s\"", cases[i].text);
        if (error)
            expect_error(error, BW_ERROR_NOT_FOUND, "there is no subvolume");
        else
            assert_int_equal(found->tree.id, cases[i].id);
    }
    bw_fs_close(fs);
    iw_destroy(image);
}

/* A subvolume whose name is a number is found by it unless a subvolume has this id. */
static void test_names_that_are_numbers(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    iw_subvolume(image, 256, FS, TOP, "257", 0);
    iw_subvolume(image, 257, FS, TOP, "2020", 0);
    iw_subvolume(image, 258, FS, TOP, "default", 0);
    iw_write_memory(image);
    struct bw_fs *fs;
    const struct bw_subvolume *found;
    expect_success(open_image(image, NULL, &fs));
    expect_success(bw_subvolume_by_name(fs, "257", &found));
    assert_int_equal(found->tree.id, 257);
    expect_success(bw_subvolume_by_name(fs, "/257", &found));
    assert_int_equal(found->tree.id, 256);
    expect_success(bw_subvolume_by_name(fs, "2020", &found));
    assert_int_equal(found->tree.id, 257);
    expect_success(bw_subvolume_by_name(fs, "/default", &found));
    assert_int_equal(found->tree.id, 258);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void set_default(struct iw_image *image, uint64_t id)
{
    struct bw_key key = {BW_ROOT_TREE_DIR, BW_DIR_ITEM, bw_name_hash("default", 7)};
    struct bw_disk_dir_item *entry = iw_item_bytes(image, BW_ROOT_TREE, key, NULL);
    entry->location.objectid = bw_put64(id);
}

static void test_default_subvolume(void **state)
{
    static const uint64_t ids[] = {257, 5, 302, 4711};
    for (size_t i = 0; i < COUNT(ids); i++) {
        struct iw_image *image = iw_create(&(struct iw_options){0});
        fill_sample(image);
        set_default(image, ids[i]);
        iw_write_memory(image);
        struct bw_fs *fs;
        expect_success(open_image(image, NULL, &fs));
        struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.subvolume = "default"});
        if (i < 2)
            expect_success(result.error);
        else
            assert_int_equal(result.error->code, BW_ERROR_NOT_FOUND);
        if (i == 0) {
            assert_int_equal(result.count, 3);
            assert_string_equal(result.paths[0], "/in inner subvolume 0");
        }
        walk_result_free(&result);
        bw_fs_close(fs);
        check_walk(image, NULL);
        iw_destroy(image);
    }
}

/* Paths of a full walk that begin with one of the prefixes and with none of the others. */
static size_t count_with_prefix(const struct iw_paths *paths, const char *prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < paths->count; i++)
        count += strncmp(paths->paths[i], prefix, strlen(prefix)) == 0;
    return count;
}

static void test_walk_of_one_subvolume(void **state)
{
    struct iw_image *image;
    struct bw_fs *fs = open_sample(&image);
    struct iw_paths all = iw_expected_paths(image);
    size_t inner = count_with_prefix(&all, "/high/nest/inner/"),
           alias = count_with_prefix(&all, "/high/nest/inner/alias/");
    size_t nest = count_with_prefix(&all, "/high/nest/"),
           snapshot = count_with_prefix(&all, "/snapshot/");
    const struct {
        const char *subvolume, *prefix;
        size_t count;
    } cases[] = {{"256", "/high/nest/", nest - inner},
                 {"/high/nest/inner", "/high/nest/inner/", inner - alias},
                 {"snapshot", "/snapshot/", snapshot},
                 {"301", "/high/nest/inner/alias/", alias},
                 {"5", "/", all.count - nest - snapshot}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct walk_result result =
            walk_fs(fs, &(struct bw_walk_options){.subvolume = cases[i].subvolume});
        expect_success(result.error);
        const size_t length = strlen(cases[i].prefix) - 1;
        struct walk_result whole = {.count = result.count};
        whole.paths = calloc(result.count + 1, sizeof *whole.paths);
        for (size_t at = 0; at < result.count; at++) {
            assert_int_equal(result.paths[at][0], '/');
            assert_true(asprintf(&whole.paths[at], "%.*s%s", (int)length, cases[i].prefix,
                                 result.paths[at]) > 0);
        }
        const char *example;
        assert_int_equal(count_foreign(&whole, &all, &example), 0);
        for (size_t at = 0; at < result.count; at++)
            free(whole.paths[at]);
        free(whole.paths);
        assert_int_equal(result.count, cases[i].count);
        assert_int_equal(result.summary.subvolumes, 1);
        walk_result_free(&result);
    }
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.subvolume = "/nowhere"});
    assert_int_equal(result.error->code, BW_ERROR_NOT_FOUND);
    assert_int_equal(result.count, 0);
    walk_result_free(&result);
    iw_paths_free(&all);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* Snapshots are excluded, but not the subvolumes inside them. */
static void test_no_snapshots(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    iw_file(image, FS, TOP, "file");
    iw_directory(image, FS, TOP, "directory");
    iw_snapshot(image, 256, FS, FS, TOP, "snapshot", 0);
    iw_file(image, 256, TOP, "in the snapshot");
    iw_subvolume(image, 257, 256, iw_directory(image, 256, TOP, "another"), "nested", 0);
    iw_file(image, 257, TOP, "in a snapshot's subvolume");
    iw_snapshot(image, 258, 257, 257, TOP, "of it", BW_ROOT_READ_ONLY);
    iw_write_memory(image);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.no_snapshots = true});
    expect_success(result.error);
    assert_int_equal(result.count, 2);
    assert_string_equal(result.paths[0], "/file");
    assert_string_equal(result.paths[1], "/snapshot/another/nested/in a snapshot's subvolume");
    assert_int_equal(result.summary.files, 2);
    walk_result_free(&result);
    bw_fs_close(fs);
    check_walk(image, NULL);
    iw_destroy(image);
}

static void test_many_subvolumes(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    uint64_t parent = FS;
    for (uint64_t id = 256; id < 300; id++) {
        char name[32];
        snprintf(name, sizeof name, "subvolume %u", (unsigned)id);
        iw_subvolume(image, id, parent, TOP, name, 0);
        iw_file(image, id, TOP, "file");
        parent = id % 5 ? id : FS;
    }
    for (uint64_t id = 300; id < 320; id++) {
        char name[32];
        snprintf(name, sizeof name, "snapshot %u", (unsigned)id);
        iw_snapshot(image, id, id - 40, FS, TOP, name, 0);
    }
    iw_subvolume(image, BW_LAST_SUBVOLUME, FS, TOP, "the last there can be", 0);
    iw_file(image, BW_LAST_SUBVOLUME, TOP, "file");
    iw_write_memory(image);
    check_walk(image, NULL);
    iw_destroy(image);
}
