/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exports from an image: each file once, whatever paths are given; unusual attributes and times;
 * and archives of files that are mostly holes. */
#include "support/walk_helpers.h"

#include <sys/stat.h>

#include "export/archive.h"
#include "export/entry_queue.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "fs/lookup.h"

static void ignore(void *context, const char *start, struct bw_error *error)
{
    ++*(unsigned *)context;
    bw_error_free(error);
}

/* Paths as a feed brings them, a line each. */
static void expect_feed(struct bw_fs *fs, const struct bw_walk_options *walk,
                        const char *const *paths, size_t count, const char *text)
{
    static const unsigned passes[] = {BW_WALK_ALL, 0};
    struct bw_buffer lines = {0};
    struct bw_starting_points starts;
    struct bw_entry_queue *feed;
    struct bw_export_entry *item;
    unsigned missed = 0;
    expect_success(bw_starting_points_find(fs, NULL, walk, paths, count, &starts));
    const struct bw_entry_queue_options options = {
        .walk = *walk, .starts = &starts, .passes = passes, .missed = ignore, .context = &missed};
    expect_success(bw_entry_queue_create(fs, &options, &feed));
    for (;;) {
        expect_success(bw_entry_queue_next(feed, &item));
        if (!item)
            break;
        bw_buffer_format(&lines, "%s\n", item->path.data);
        bw_entry_queue_release(feed, item);
    }
    bw_entry_queue_destroy(feed);
    bw_starting_points_free(&starts);
    if (missed)
        bw_buffer_format(&lines, "missed: %u\n", missed);
    assert_string_equal(bw_buffer_text(&lines), text);
    bw_buffer_free(&lines);
}

#define PATHS(...) (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__}))

static struct iw_image *make_tree(void)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t a = iw_directory(image, FS, TOP, "a"), b = iw_directory(image, FS, a, "b");
    iw_file(image, FS, b, "f");
    iw_subvolume(image, 256, FS, b, "sub", 0);
    iw_file(image, 256, TOP, "g");
    iw_file(image, FS, TOP, "ab");
    iw_symlink(image, FS, TOP, "link", "a/b");
    iw_write_memory(image);
    return image;
}

static void test_each_comes_once(void **state)
{
    struct iw_image *image = make_tree();
    struct bw_fs *fs;
    const struct bw_walk_options all = {0}, one_deep = {.has_maxdepth = true, .maxdepth = 1};
    const char *whole = "/a\n/a/b\n/a/b/f\n/a/b/sub\n/a/b/sub/g\n";
    expect_success(open_image(image, NULL, &fs));
    expect_feed(fs, &all, PATHS("/a"), whole);
    expect_feed(fs, &all, PATHS("/a", "/a"), whole);
    expect_feed(fs, &all, PATHS("/a", "a//b/./f", "/a/b/sub/g", "/a/../a/"), whole);
    expect_feed(fs, &all, PATHS("/a/b/sub", "/a/b", "/a"), whole);
    expect_feed(fs, &all, PATHS("/link/sub", "/a/b/f", "/link/"),
                "/a/b\n/a/b/f\n/a/b/sub\n/a/b/sub/g\n");
    /* A link itself is not what it leads to; names that begin alike are no folder and its content.
     */
    expect_feed(fs, &all, PATHS("/link", "/ab", "/a/b/f", "ab"), "/link\n/ab\n/a/b/f\n");
    expect_feed(fs, &all, PATHS("/a/b/f", "/none", "/a/b/f", ""), "/a/b/f\nmissed: 2\n");
    expect_feed(fs, &all, PATHS("/ab", "/"),
                "/\n/a\n/ab\n/link\n/a/b\n/a/b/f\n/a/b/sub\n/a/b/sub/g\n");
    /* Entries too deep for the first starting point are exported with the second. */
    expect_feed(fs, &one_deep, PATHS("/a", "/a/b"), "/a\n/a/b\n/a/b/f\n/a/b/sub\n");
    expect_feed(fs, &one_deep, PATHS("/a/b", "/a/b/sub", "/a", "/a"),
                "/a/b/f\n/a/b/sub\n/a/b/sub/g\n/a\n/a/b\n");
    expect_feed(fs, &(struct bw_walk_options){.has_maxdepth = true}, PATHS("/a", "/a/b"),
                "/a\n/a/b\n");
    /* Within a subvolume paths are others. */
    expect_feed(fs, &(struct bw_walk_options){.subvolume = "256"}, PATHS("g", "/g"), "/g\n");
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_attribute_without_a_name(void **state)
{
    static const char name[] = "user.a\0b";
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t file = iw_file(image, FS, TOP, "f");
    struct {
        struct bw_disk_dir_item item;
        char name[sizeof name];
    } odd = {
        .item = {.data_length = bw_put16(1), .name_length = bw_put16(sizeof name - 1), .type = 8}};
    memcpy(odd.name, name, sizeof name);
    iw_property(image, FS, file, "user.good", "value");
    iw_item(image, FS, (struct bw_key){file, BW_XATTR_ITEM, 77}, &odd, sizeof odd);
    iw_write_memory(image);
    struct report_log log = {0};
    struct bw_fs *fs;
    struct bw_xattr_reader *reader;
    const struct bw_xattr *xattrs;
    size_t found;
    expect_success(open_image(image, &log, &fs));
    const struct bw_place place = {bw_subvolume_by_id(fs, FS), file, BW_FILE_REGULAR, 0};
    expect_success(bw_xattr_reader_create(fs, &reader));
    expect_success(bw_xattr_reader_read(reader, &place, &xattrs, &found));
    assert_int_equal(found, 1);
    assert_string_equal((const char *)xattrs[0].name, "user.good");
    assert_int_equal(log.counts[BW_DAMAGE], 1);
    assert_int_equal(report_log_count(&log, "NUL"), 1);
    bw_xattr_reader_destroy(reader);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

/* Attributes that fill several leaves: none is lost where a leaf begins. */
static void test_many_attributes(void **state)
{
    enum { MANY = 200 };
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    uint64_t file = iw_file(image, FS, TOP, "f");
    for (unsigned i = 0; i < MANY; i++) {
        char name[sizeof "user.100"];
        snprintf(name, sizeof name, "user.%u", i % MANY);
        iw_property(image, FS, file, name, "value");
    }
    iw_write_memory(image);
    struct bw_fs *fs;
    struct bw_xattr_reader *reader;
    const struct bw_xattr *xattrs;
    size_t found;
    expect_success(open_image(image, NULL, &fs));
    const struct bw_place place = {bw_subvolume_by_id(fs, FS), file, BW_FILE_REGULAR, 0};
    expect_success(bw_xattr_reader_create(fs, &reader));
    expect_success(bw_xattr_reader_read(reader, &place, &xattrs, &found));
    assert_int_equal(found, MANY);
    bw_xattr_reader_destroy(reader);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void set_time(struct iw_image *image, uint64_t inode, int64_t seconds, uint32_t nanoseconds)
{
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, FS, (struct bw_key){inode, BW_INODE_ITEM, 0}, NULL);
    item->mtime.seconds = bw_put64((uint64_t)seconds);
    item->mtime.nanoseconds = bw_put32(nanoseconds);
}

static void expect_time(struct bw_fs *fs, uint64_t number, int64_t seconds, long nanoseconds)
{
    const struct bw_tree *tree = &bw_subvolume_by_id(fs, FS)->tree;
    struct bw_inode inode;
    expect_success(bw_inode_read(fs, tree, number, &inode));
    assert_int_equal(inode.mtime.tv_sec, seconds);
    assert_int_equal(inode.mtime.tv_nsec, nanoseconds);
}

static void test_times(void **state)
{
    static const struct {
        int64_t seconds;
        uint32_t nanoseconds;
    } times[] = {{0, 0},         {-1, 999999999}, {16725323045, 123456789}, {-14831672155, 5},
                 {INT64_MAX, 7}, {INT64_MIN, 7}};
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t files[COUNT(times)];
    for (size_t i = 0; i < COUNT(times); i++) {
        files[i] = iw_file(image, FS, TOP, (char[]){(char)('a' + (int)i), '\0'});
        set_time(image, files[i], times[i].seconds, times[i].nanoseconds);
    }
    uint64_t odd = iw_file(image, FS, TOP, "odd");
    set_time(image, odd, 16725323045, 2000000001); /* more nanoseconds than there are */
    iw_write_memory(image);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    for (size_t i = 0; i < COUNT(times); i++)
        expect_time(fs, files[i], times[i].seconds, (long)times[i].nanoseconds);
    expect_time(fs, odd, 16725323047, 1);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* The ranges of one file of an image. */
struct ranges_bench {
    struct bw_fs *fs;
    struct bw_ranges ranges;
};

static struct ranges_bench read_ranges(struct iw_image *image, uint64_t file)
{
    struct ranges_bench bench;
    struct bw_inode inode;
    iw_write_memory(image);
    expect_success(open_image(image, NULL, &bench.fs));
    const struct bw_place place = {bw_subvolume_by_id(bench.fs, FS), file, BW_FILE_REGULAR, 0};
    expect_success(bw_inode_get(bench.fs, &place, &inode));
    const struct bw_data_file data = bw_data_file_of(&place, &inode);
    expect_success(bw_ranges_init(&bench.ranges, bench.fs));
    expect_success(bw_ranges_read(&bench.ranges, &data));
    return bench;
}

static void free_ranges(struct ranges_bench *bench)
{
    bw_ranges_free(&bench->ranges);
    bw_fs_close(bench->fs);
}

static void set_size(struct iw_image *image, uint64_t file, uint64_t size)
{
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, FS, (struct bw_key){file, BW_INODE_ITEM, 0}, NULL);
    item->size = bw_put64(size);
}

/* Data that end in the middle of a unit, in front of a hole: GNU tar would read the rest of it as
 * data. */
static void test_inline_before_a_hole(void **state)
{
    static const char bytes[2872];
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t file = iw_file(image, FS, TOP, "f");
    iw_inline_data(image, FS, file, bytes, sizeof bytes);
    set_size(image, file, 1000001);
    struct ranges_bench bench = read_ranges(image, file);
    assert_true(bench.ranges.is_sparse);
    assert_int_equal(bench.ranges.ranges.count, 1);
    assert_int_equal(bench.ranges.ranges.items[0].offset, 0);
    assert_int_equal(bench.ranges.ranges.items[0].length, 3072);
    free_ranges(&bench);
    iw_destroy(image);
}

/* The data of a file of 4 EiB are not searched for: the rest is a hole, not zeros in an archive. */
static void test_lost_extents(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t file = iw_file(image, FS, TOP, "f");
    set_size(image, file, UINT64_C(1) << 62);
    iw_item(image, FS, (struct bw_key){file, BW_EXTENT_DATA, 0}, "cut off", 7);
    struct ranges_bench bench = read_ranges(image, file);
    assert_true(bench.ranges.is_sparse && bench.ranges.lost);
    assert_int_equal(bench.ranges.ranges.count, 0);
    free_ranges(&bench);
    iw_destroy(image);
}

static struct bw_error *gather(void *context, const char *bytes, size_t length)
{
    struct bw_buffer *text = context;
    bw_buffer_append(text, bytes, length);
    return NULL;
}

static bool has_text(const struct bw_buffer *text, const char *wanted)
{
    return memmem(text->data, text->length, wanted, strlen(wanted)) != NULL;
}

/* A time of change that the header can hold has no record, which sqfstar 4.5 rejects without a
 * fraction; any other has one with a fraction. */
static void test_time_records(void **state)
{
    static const struct {
        struct timespec mtime;
        const char *record; /* NULL: none */
    } cases[] = {
        {{0, 0}, NULL},
        {{981173106, 0}, NULL},
        {{(INT64_C(1) << 33) - 1, 0}, NULL},
        {{INT64_C(1) << 33, 0}, "30 mtime=8589934592.000000000\n"},
        {{981173106, 1}, "29 mtime=981173106.000000001\n"},
        {{-5, 0}, "22 mtime=-5.000000000\n"},
        {{-5, 500000000}, "22 mtime=-4.500000000\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_inode inode = {
            .mode = S_IFREG | 0644, .link_count = 1, .mtime = cases[i].mtime};
        const struct bw_archive_entry entry = {
            .path = "file", .inode = &inode, .has_atime = i % 2, .has_ctime = i % 3};
        struct bw_buffer text = {0};
        struct bw_archive *archive;
        uint64_t wanted;
        expect_success(bw_archive_create(BW_ARCHIVE_PAX, gather, &text, &archive));
        expect_success(bw_archive_begin(archive, &entry, &wanted));
        expect_success(bw_archive_end(archive));
        bw_archive_destroy(archive);
        if (!cases[i].record)
            assert_false(has_text(&text, " mtime="));
        else if (!has_text(&text, cases[i].record))
            fail_msg("no record %s", cases[i].record);
        assert_int_equal(has_text(&text, " atime=0\n"), entry.has_atime);
        assert_int_equal(has_text(&text, " ctime=0\n"), entry.has_ctime);
        bw_buffer_free(&text);
    }
}

/* One range that ends within a unit: sqfstar 4.5 counts its padding only behind another one. */
static void test_padded_range(void **state)
{
    const struct bw_inode inode = {.mode = S_IFREG | 0644, .size = 1048580, .link_count = 1};
    const struct bw_archive_range range = {1048576, 4};
    const struct bw_archive_entry entry = {
        .path = "file", .inode = &inode, .ranges = &range, .range_count = 1, .is_sparse = true};
    struct bw_buffer text = {0};
    struct bw_archive *archive;
    uint64_t wanted;
    expect_success(bw_archive_create(BW_ARCHIVE_PAX, gather, &text, &archive));
    expect_success(bw_archive_begin(archive, &entry, &wanted));
    expect_success(bw_archive_add_zeros(archive, 1048576));
    expect_success(bw_archive_add(archive, "end\n", 4));
    expect_success(bw_archive_end(archive));
    bw_archive_destroy(archive);
    assert_true(has_text(&text, "3\n0\n0\n1048576\n4\n1048580\n0\n"));
    bw_buffer_free(&text);
}

/* Ends of a file of 4 EiB: the archive has its map and the data, and counting the hole takes no
 * time. */
static void test_large_hole(void **state)
{
    const uint64_t size = UINT64_C(1) << 62;
    const struct bw_inode inode = {.mode = S_IFREG | 0644, .size = size, .link_count = 1};
    const struct bw_archive_range ranges[] = {{0, 4096}, {size / 2, 8192}, {size - 4096, 4096}};
    const struct bw_archive_entry entry = {.path = "large",
                                           .inode = &inode,
                                           .ranges = ranges,
                                           .range_count = COUNT(ranges),
                                           .is_sparse = true};
    const struct bw_inode small_inode = {.mode = S_IFREG | 0644, .size = 5, .link_count = 1};
    const struct bw_archive_entry small = {.path = "small", .inode = &small_inode};
    static char block[4096];
    struct bw_buffer text = {0};
    struct bw_archive *archive;
    uint64_t wanted;
    memset(block, 'b', sizeof block);
    expect_success(bw_archive_create(BW_ARCHIVE_PAX, gather, &text, &archive));
    expect_success(bw_archive_begin(archive, &entry, &wanted));
    assert_int_equal(wanted, size);
    expect_success(bw_archive_add(archive, block, sizeof block));
    expect_success(bw_archive_add_zeros(archive, size / 2 - sizeof block));
    expect_success(bw_archive_add(archive, block, sizeof block));
    expect_success(bw_archive_add_zeros(archive, size / 2 - 2 * sizeof block));
    expect_success(bw_archive_add(archive, block, sizeof block));
    expect_success(bw_archive_begin(archive, &small, &wanted));
    expect_success(bw_archive_add(archive, "small", 5));
    expect_success(bw_archive_end(archive));
    bw_archive_destroy(archive);
    assert_int_equal(text.length, 2 * 10240); /* 16 KiB of data, headers, the map, the end */
    assert_true(has_text(&text, "4\n0\n4096\n2305843009213693952\n8192\n4611686018427383808\n4096\n"
                                "4611686018427387904\n0\n"));
    assert_true(has_text(&text, "GNU.sparse.realsize=4611686018427387904\n"));
    size_t written = 0;
    for (size_t i = 0; i < text.length; i++)
        written += text.data[i] == 'b' && (i % 512 ? text.data[i - 1] == 'b' : true);
    assert_true(written >= 3 * sizeof block && written < 3 * sizeof block + 512);
    bw_buffer_free(&text);
}

static struct bw_error *append_bytes(void *text, const char *bytes, size_t length)
{
    bw_buffer_append(text, bytes, length);
    return NULL;
}

/* The headers of an entry. */
static void append_headers(struct bw_buffer *text, const struct bw_archive_entry *entry)
{
    struct bw_archive *archive;
    uint64_t wanted = 0;
    expect_success(bw_archive_create(BW_ARCHIVE_PAX, append_bytes, text, &archive));
    expect_success(bw_archive_begin(archive, entry, &wanted));
    assert_int_equal(wanted, entry->inode->size);
    bw_archive_destroy(archive);
}

/* Paths that are no UTF-8 are raw bytes, in the header or in front of it; others are records. */
static void test_long_sparse_names(void **state)
{
    char path[300] = "";
    const struct bw_inode inode = {.mode = S_IFREG | 0644, .size = 1 << 20, .link_count = 1};
    const struct bw_archive_entry entry = {.path = path, .inode = &inode, .is_sparse = true};
    const struct {
        size_t length;
        char last;
        bool is_record;
    } cases[] = {
        {100, '\xff', false}, {101, '\xff', false}, {290, '\xff', false}, {290, 'x', true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_buffer text = {0};
        memset(path, 'x', sizeof path);
        path[cases[i].length - 1] = cases[i].last;
        path[cases[i].length] = '\0';
        append_headers(&text, &entry);
        assert_true(has_text(&text, path));
        assert_true(has_text(&text, "GNU.sparse.realsize=1048576\n"));
        assert_int_equal(has_text(&text, "GNU.sparse.name="), cases[i].is_record);
        assert_int_equal(text.length % 512, 0);
        bw_buffer_free(&text);
    }
}

/* The length of a record counts its own digits. */
static void test_records(void **state)
{
    const struct bw_inode inode = {
        .mode = S_IFREG | 0644, .uid = 1 << 21, .link_count = 1, .mtime = {-2, 750000000}};
    for (uint16_t length = 0; length < 1100; length++) {
        uint8_t value[1100];
        const struct bw_xattr xattr = {.name = (const uint8_t *)"a=%3D%",
                                       .name_length = 6,
                                       .value = value,
                                       .value_length = length};
        const struct bw_archive_entry entry = {
            .path = "f", .inode = &inode, .xattrs = &xattr, .xattr_count = 1, .has_ctime = true};
        struct bw_buffer text = {0};
        memset(value, 'v', sizeof value);
        append_headers(&text, &entry);
        assert_true(has_text(&text, "15 uid=2097152\n22 mtime=-1.250000000\n"));
        char *record = memmem(text.data, text.length, "ctime=0\n", 8);
        unsigned long counted = strtoul(record + 8, &record, 10);
        size_t digits = counted < 100 ? 2 : counted < 1000 ? 3 : 4;
        assert_memory_equal(record, " SCHILY.xattr.a%3D%253D%=", 25);
        assert_int_equal(counted, digits + 25 + length + 1);
        assert_int_equal(record[25 + length], '\n');
        bw_buffer_free(&text);
    }
}

/* An incomplete archive does not look complete, and its memory is freed. */
static void test_given_up(void **state)
{
    const struct bw_inode inode = {
        .mode = S_IFREG | 0644, .size = UINT64_C(1) << 40, .link_count = 1};
    const struct bw_archive_entry entry = {.path = "broken", .inode = &inode};
    for (enum bw_archive_format format = BW_ARCHIVE_PAX; format <= BW_ARCHIVE_MTREE; format++) {
        struct bw_buffer text = {0};
        struct bw_archive *archive;
        uint64_t wanted;
        expect_success(bw_archive_create(format, gather, &text, &archive));
        bw_error_free(bw_archive_begin(archive, &entry, &wanted));
        size_t length = text.length;
        bw_archive_destroy(archive);
        assert_int_equal(text.length, length);
        bw_buffer_free(&text);
    }
}
