/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows in place of paths, on sound images: the same files in the same order, with the attributes of
 * their inodes.
 */
#include "support/row_helpers.h"

enum { CHANGED = 7 };

static void check_all_known(struct iw_image *image)
{
    assert_int_equal(check_row_walks(image, &(struct bw_walk_options){0}, check_attributes), 0);
    iw_destroy(image);
}

/* Sound images. */

static void test_empty(void **state)
{
    check_all_known(numbered_image(&(struct iw_options){0}, 0));
}

static void test_one_leaf(void **state)
{
    check_all_known(numbered_image(&(struct iw_options){0}, 10));
}

/* With one item a leaf, the inode, its names and its property all lie in different leaves. */
static void test_shapes(void **state)
{
    for (uint32_t nodesize = 4096; nodesize <= BW_MAX_NODESIZE; nodesize *= 4)
        for (unsigned items = 0; items <= 7; items++)
            check_all_known(
                numbered_image(&(struct iw_options){.nodesize = nodesize,
                                                    .items_per_leaf = items,
                                                    .pointers_per_node = items ? items + 2 : 0},
                               items ? 100 : 900));
}

static void test_more_than_a_batch(void **state)
{
    check_all_known(numbered_image(&(struct iw_options){.nodesize = 4096}, 11000));
}

static void test_link_counts(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = 4});
    uint64_t directory = iw_directory(image, FS, TOP, "directory");
    make_numbered(image, FS, TOP, 600);
    make_numbered(image, FS, directory, 601);
    make_numbered_link(image, FS, directory, 600, 1);
    make_numbered_link(image, FS, TOP, 600, 2);
    iw_write_memory(image);
    struct walk_result result = walk_rows(image, &(struct bw_walk_options){0}, NULL);
    assert_int_equal(result.count, 4);
    for (size_t i = 0; i < result.count; i++) {
        struct parsed_row parsed;
        parse_row(result.paths[i], &parsed);
        assert_string_equal(parsed.columns[5], parsed.inode == 600 ? "3" : "1");
    }
    walk_result_free(&result);
    iw_destroy(image);
}

/* Names alone cost what paths cost. */
static void test_names_only(void **state)
{
    struct iw_image *image = numbered_image(&(struct iw_options){.nodesize = 4096}, 900);
    struct bw_rows *rows = make_rows("path");
    struct bw_fs *plain, *fs;
    expect_success(open_image(image, NULL, &plain));
    expect_success(open_image(image, NULL, &fs));
    struct walk_result paths = walk_fs(plain, &(struct bw_walk_options){.threads = 1});
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = 1, .rows = rows});
    assert_int_equal(bw_fs_bytes_read(fs), bw_fs_bytes_read(plain));
    assert_int_equal(paths.bytes.length, result.bytes.length);
    assert_memory_equal(paths.bytes.data, result.bytes.data, paths.bytes.length);
    walk_result_free(&paths);
    walk_result_free(&result);
    bw_fs_close(plain);
    bw_fs_close(fs);
    bw_rows_destroy(rows);
    iw_destroy(image);
}

/* Snapshots: most leaves are shared, and their names come from lists. */

static void change(struct iw_image *image, uint64_t subvolume, uint64_t number)
{
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, subvolume, (struct bw_key){number, BW_INODE_ITEM, 0}, NULL);
    item->size = bw_put64(CHANGED);
}

static void check_changed(const struct parsed_row *parsed)
{
    if (parsed->inode == 1300)
        assert_int_equal(strtoull(parsed->columns[3], NULL, 10),
                         parsed->subvolume == 256   ? numbered_size(1300)
                         : parsed->subvolume == 257 ? 2 * CHANGED
                                                    : CHANGED);
    else
        check_attributes(parsed);
}

static struct iw_image *snapshot_image(void)
{
    struct iw_image *image =
        iw_create(&(struct iw_options){.nodesize = 4096, .pointers_per_node = 12});
    fill_numbered(image, 700);
    iw_snapshot(image, 256, FS, FS, TOP, "before", BW_ROOT_READ_ONLY);
    change(image, FS, 1300);
    iw_snapshot(image, 257, FS, FS, TOP, "after", 0);
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, 257, (struct bw_key){1300, BW_INODE_ITEM, 0}, NULL);
    item->size = bw_put64(2 * CHANGED);
    make_numbered(image, 257, TOP, 9000);
    iw_subvolume(image, 258, FS, TOP, "subvolume", 0);
    make_numbered(image, 258, TOP, 300);
    iw_write_memory(image);
    return image;
}

static void test_snapshots(void **state)
{
    struct iw_image *image = snapshot_image();
    assert_int_equal(check_row_walks(image, &(struct bw_walk_options){0}, check_changed), 0);
    iw_destroy(image);
}

static void test_options(void **state)
{
    static const struct bw_walk_options options[] = {
        {.no_snapshots = true},
        {.subvolume = "256"},
        {.subvolume = "/after"},
        {.subvolume = "default"},
        {.subvolume = "258", .no_snapshots = true},
    };
    struct iw_image *image = snapshot_image();
    for (size_t i = 0; i < COUNT(options); i++)
        assert_int_equal(check_row_walks(image, &options[i], check_changed), 0);
    iw_destroy(image);
}

/* Properties. */

static void expect_compression(const struct iw_image *image, const char *value, size_t damages)
{
    struct report_log log = {0};
    struct walk_result result = walk_rows(image, &(struct bw_walk_options){0}, &log);
    struct parsed_row parsed;
    assert_int_equal(result.count, 1);
    parse_row(result.paths[0], &parsed);
    assert_true(parsed.known);
    assert_string_equal(parsed.columns[7], value);
    assert_int_equal(log.counts[BW_DAMAGE], damages);
    assert_int_equal(report_log_count(&log, "inode 301: its compression property is cut off"),
                     damages);
    walk_result_free(&result);
    report_log_free(&log);
}

static struct iw_image *property_image(void)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    make_numbered(image, FS, TOP, 301);
    return image;
}

/* Names with the same hash share an item. */
static void test_packed_properties(void **state)
{
    const struct bw_key key = {301, BW_XATTR_ITEM, bw_name_hash(PROPERTY, strlen(PROPERTY))};
    for (unsigned ours = 0; ours < 2; ours++) {
        struct iw_image *image = property_image();
        iw_property(image, FS, 301, "user.other", "other");
        size_t size;
        struct bw_key other = {301, BW_XATTR_ITEM,
                               bw_name_hash("user.other", strlen("user.other"))};
        const void *bytes = iw_item_bytes(image, FS, other, &size);
        iw_item(image, FS, key, bytes, size);
        if (ours)
            iw_property(image, FS, 301, PROPERTY, "zlib");
        iw_write_memory(image);
        expect_compression(image, ours ? "zlib" : "-", 0);
        iw_destroy(image);
    }
}

static void test_cut_off_property(void **state)
{
    const struct bw_key key = {301, BW_XATTR_ITEM, bw_name_hash(PROPERTY, strlen(PROPERTY))};
    uint8_t bytes[256];
    size_t size;
    struct iw_image *whole = property_image();
    iw_property(whole, FS, 301, PROPERTY, "zstd");
    const void *item = iw_item_bytes(whole, FS, key, &size);
    memcpy(bytes, item, size);
    for (size_t length = 1; length <= size; length++) {
        struct iw_image *image = property_image();
        iw_item(image, FS, key, bytes, length);
        iw_write_memory(image);
        expect_compression(image, length == size ? "zstd" : "-", length < size);
        iw_destroy(image);
    }
    iw_destroy(whole);
}

/* A consumer that has enough gets no more, and nothing leaks. */

struct counter {
    size_t calls;
};

static struct bw_error *stop_at_once(void *context, const char *rows, size_t length)
{
    struct counter *counter = context;
    assert_true(length > 0 && rows[length - 1] == '\n');
    counter->calls++;
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

static void test_consumer_stops(void **state)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .members = "path,mode,shared",
                                            .terminator = '\n'};
    struct iw_image *image = numbered_image(&(struct iw_options){.nodesize = 4096}, 11000);
    struct bw_rows *rows;
    expect_success(bw_rows_create("fileinfo", &options, &rows));
    for (unsigned threads = 1; threads < 4; threads++) {
        struct counter counter = {0};
        struct bw_fs *fs;
        expect_success(open_image(image, NULL, &fs));
        expect_error(
            bw_walk(fs,
                    &(struct bw_walk_options){.struct_size = sizeof(struct bw_walk_options),
                                              .rows = rows,
                                              .threads = threads,
                                              .consume = stop_at_once,
                                              .context = &counter},
                    NULL),
            BW_ERROR_STOPPED, "enough");
        assert_int_equal(counter.calls, 1);
        bw_fs_close(fs);
    }
    bw_rows_destroy(rows);
    iw_destroy(image);
}
