/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items that contradict each other: directories in circles or with two names, subvolumes that hang
 * in themselves, chunks that overlap, a device item that is cut off. Each is written as an item, so
 * all blocks are in order.
 */
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static struct walk_result walk_image(struct iw_image *image, struct report_log *log,
                                     unsigned threads)
{
    struct bw_fs *fs;
    expect_success(open_image(image, log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = threads});
    expect_success(result.error);
    bw_fs_close(fs);
    return result;
}

/* Walks an image and frees it; the answer is the number of paths. `damage`: at least so many
 * messages. */
static size_t count_paths(struct iw_image *image, size_t damage)
{
    struct report_log log = {0};
    iw_write_memory(image);
    struct walk_result one = walk_image(image, &log, 1), five = walk_image(image, NULL, 5);
    size_t count = one.count;
    assert_int_equal(one.bytes.length, five.bytes.length);
    if (one.bytes.length)
        assert_memory_equal(one.bytes.data, five.bytes.data, one.bytes.length);
    assert_true(log.counts[BW_DAMAGE] >= damage);
    walk_result_free(&one);
    walk_result_free(&five);
    report_log_free(&log);
    iw_destroy(image);
    return count;
}

static void link_directory(struct iw_image *image, uint64_t from, const char *name, uint64_t to)
{
    iw_entry(image, FS,
             &(struct iw_entry){.directory = from,
                                .name = name,
                                .type = BW_FILE_DIRECTORY,
                                .location = {to, BW_INODE_ITEM, 0}});
}

static void test_directory_loops(void **state)
{
    for (unsigned items = 0; items <= 3; items++) {
        struct iw_image *image =
            iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = items});
        uint64_t outer = iw_directory(image, FS, TOP, "outer"),
                 inner = iw_directory(image, FS, outer, "inner");
        iw_file(image, FS, inner, "file");
        link_directory(image, inner, "back to outer", outer);
        link_directory(image, inner, "to itself", inner);
        link_directory(image, outer, "to the top", TOP);
        link_directory(image, TOP, "top to top", TOP);
        assert_int_equal(count_paths(image, 4), 1);
    }
}

static void test_two_names_of_a_directory(void **state)
{
    for (unsigned items = 0; items <= 4; items++) {
        struct iw_image *image =
            iw_create(&(struct iw_options){.nodesize = 4096, .items_per_leaf = items});
        uint64_t one = iw_directory(image, FS, TOP, "one");
        for (char name[] = "a"; *name <= 'z'; ++*name)
            iw_file(image, FS, one, name);
        iw_next_inode(image, FS, 700);
        uint64_t two = iw_directory(image, FS, TOP, "two");
        link_directory(image, two, "again", one);
        link_directory(image, TOP, "and again", one);
        size_t count = count_paths(image, 1);
        /* Any of the names may be listed, but only one of them, once. */
        if (count != 26)
            fail_msg("%zu paths with %u items a leaf", count, items);
    }
}

/*
 * The second name is found in a later wave than that of its directory, in the task of the node with
 * the entries of both. Inodes 1000 and 1001 share this node; the path to 1001 leads through 3000,
 * which is in another node.
 */
static void test_second_name_in_a_later_wave(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    iw_shape(image, FS, 20, 8, 2);
    iw_next_inode(image, FS, 1000);
    uint64_t first = iw_directory(image, FS, TOP, "first");
    iw_next_inode(image, FS, 3000);
    uint64_t far = iw_directory(image, FS, TOP, "far");
    iw_next_inode(image, FS, 1001);
    uint64_t second = iw_directory(image, FS, far, "second");
    iw_next_inode(image, FS, 500);
    for (unsigned i = 0; i < 1500; i++) {
        char name[32];
        snprintf(name, sizeof name, "file %u", i);
        if (i == 400)
            iw_next_inode(image, FS, 2000);
        iw_file(image, FS, i < 3 ? first : i < 6 ? second : i < 9 ? far : TOP, name);
    }
    link_directory(image, second, "again", first);
    iw_write_memory(image);
    struct report_log log = {0};
    struct walk_result result = walk_image(image, &log, 1);
    assert_int_equal(result.count, 1500);
    assert_int_equal(report_log_count(&log, "inode 1000: it has a second entry"), 1);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

static void test_circle_without_a_way_in(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    uint64_t outer = iw_directory(image, FS, TOP, "outer"),
             inner = iw_directory(image, FS, outer, "inner");
    iw_file(image, FS, inner, "unreachable");
    iw_file(image, FS, TOP, "reachable");
    iw_move(image, FS, outer, TOP, "outer", inner, "moved into itself");
    assert_int_equal(count_paths(image, 0), 1);
}

static void test_entries_of_strange_inodes(void **state)
{
    static const uint64_t inodes[] = {0, 1, 255, 256, UINT64_MAX, UINT64_MAX - 1, (uint64_t)-256};
    for (size_t i = 0; i < COUNT(inodes); i++) {
        struct iw_image *image = iw_create(&(struct iw_options){0});
        link_directory(image, TOP, "strange", inodes[i]);
        iw_entry(image, FS,
                 &(struct iw_entry){.directory = inodes[i],
                                    .name = "entry in it",
                                    .type = BW_FILE_REGULAR,
                                    .location = {300, BW_INODE_ITEM, 0}});
        iw_file(image, FS, TOP, "file");
        assert_true(count_paths(image, inodes[i] <= 256) >= 1);
    }
}

/* The same in a leaf that snapshots share. */
static void test_entries_of_strange_inodes_in_snapshots(void **state)
{
    static const uint64_t inodes[] = {0, 1, 255, UINT64_MAX};
    for (size_t i = 0; i < 2 * COUNT(inodes); i++) {
        const struct iw_options large = {.nodesize = 65536},
                                small = {.nodesize = 4096, .items_per_leaf = 20};
        struct iw_image *image = iw_create(i % 2 ? &large : &small);
        for (char name[] = "entry a with a long name"; name[6] <= 'z'; name[6]++)
            iw_entry(image, FS,
                     &(struct iw_entry){.directory = inodes[i / 2],
                                        .name = name,
                                        .type = BW_FILE_REGULAR,
                                        .location = {300, BW_INODE_ITEM, 0}});
        for (char name[] = "file a"; name[5] <= 'z'; name[5]++)
            iw_file(image, FS, TOP, name);
        iw_snapshot(image, 256, FS, FS, TOP, "snapshot", 0);
        iw_snapshot(image, 257, FS, FS, TOP, "another", 0);
        assert_int_equal(count_paths(image, 0), 3 * 26);
    }
}

/* Subvolumes inside each other, inside themselves, or inside missing directories. */
static void put_ref(struct iw_image *image, uint64_t child, uint64_t parent, uint64_t directory,
                    const char *name)
{
    struct {
        struct bw_disk_root_ref ref;
        char name[32];
    } record = {.ref = {bw_put64(directory), bw_put64(2), bw_put16((uint16_t)strlen(name))}};
    memcpy(record.name, name, strlen(name));
    size_t size = sizeof record.ref + strlen(name);
    iw_item(image, BW_ROOT_TREE, (struct bw_key){child, BW_ROOT_BACKREF, parent}, &record, size);
    iw_item(image, BW_ROOT_TREE, (struct bw_key){parent, BW_ROOT_REF, child}, &record, size);
}

static void enter_subvolume(struct iw_image *image, uint64_t subvolume, uint64_t id,
                            const char *name)
{
    iw_entry(image, subvolume,
             &(struct iw_entry){.directory = TOP,
                                .name = name,
                                .type = BW_FILE_DIRECTORY,
                                .location = {id, BW_ROOT_ITEM, UINT64_MAX}});
}

static void test_subvolume_circles(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    for (uint64_t id = 256; id < 260; id++) {
        iw_subvolume(image, id, 0, 0, NULL, 0);
        iw_file(image, id, TOP, "file");
    }
    put_ref(image, 256, 256, TOP, "self");
    enter_subvolume(image, 256, 256, "self");
    put_ref(image, 257, 258, TOP, "other");
    enter_subvolume(image, 258, 257, "other");
    put_ref(image, 258, 257, TOP, "other");
    enter_subvolume(image, 257, 258, "other");
    put_ref(image, 259, 999, TOP, "orphan");
    put_ref(image, FS, FS, TOP, "the top in the top");
    enter_subvolume(image, FS, FS, "the top in the top");
    iw_file(image, FS, TOP, "top");
    iw_write_memory(image);
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    /* By their numbers, they are listed all the same. */
    static const char *const circles[] = {"256", "257", "258", "259"};
    for (size_t i = 0; i < COUNT(circles); i++) {
        struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.subvolume = circles[i]});
        expect_success(result.error);
        assert_int_equal(result.count, 1);
        assert_string_equal(result.paths[0], "/file");
        walk_result_free(&result);
        /* Each is listed once, with the subvolumes nested in it. */
        const bool is_pair = i == 1 || i == 2;
        result = walk_fs(
            fs, &(struct bw_walk_options){.subvolume = circles[i], .nested = BW_NESTED_ENTER});
        expect_success(result.error);
        assert_int_equal(result.count, 1 + is_pair);
        walk_result_free(&result);
    }
    static const char *const names[] = {"/other/other", "self"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.subvolume = names[i]});
        assert_non_null(result.error);
        assert_int_equal(result.error->code, BW_ERROR_NOT_FOUND);
        walk_result_free(&result);
    }
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
    expect_success(result.error);
    assert_int_equal(result.count, 1);
    walk_result_free(&result);
    bw_fs_close(fs);
    iw_destroy(image);
}

static void test_bad_root_items(void **state)
{
    for (unsigned what = 0; what < 6; what++) {
        struct iw_image *image = iw_create(&(struct iw_options){0});
        iw_file(image, FS, TOP, "file");
        iw_subvolume(image, 256, FS, TOP, "nest", 0);
        iw_file(image, 256, TOP, "egg");
        struct bw_disk_root_item item = {.reference_count = bw_put32(1),
                                         .generation = bw_put64(10)};
        struct bw_key key = {256, BW_ROOT_ITEM, what == 5 ? 1 : 0},
                      ref = {256, BW_ROOT_BACKREF, FS};
        item.level = what == 1 ? 200 : 0;
        item.bytenr = bw_put64(what == 2 ? (uint64_t)-1 : 4096);
        if (what < 3 || what == 5)
            iw_item(image, BW_ROOT_TREE, key, &item, what == 0 ? 100 : sizeof item);
        else
            iw_item(image, BW_ROOT_TREE, ref, "too short to be one", what == 3 ? 5 : 18);
        iw_write_memory(image);
        struct report_log log = {0};
        struct walk_result result = walk_image(image, &log, 1);
        assert_true(result.count >= 1);
        assert_true(log.counts[BW_DAMAGE] > 0 || result.count == 2);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* Chunk items. */

static void put_chunk(struct iw_image *image, uint64_t logical, uint64_t length, uint64_t type,
                      uint16_t stripes, size_t size)
{
    static struct {
        struct bw_disk_chunk chunk;
        struct bw_disk_stripe stripes[100];
    } item;
    item.chunk = (struct bw_disk_chunk){.length = bw_put64(length),
                                        .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                                        .type = bw_put64(type),
                                        .stripe_count = bw_put16(stripes),
                                        .sub_stripes = bw_put16(2)};
    iw_item(image, BW_CHUNK_TREE, (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, logical}, &item,
            size);
}

static void test_bad_chunk_items(void **state)
{
    static const struct {
        uint64_t logical, length, type;
        uint16_t stripes;
        size_t size;
    } cases[] = {
        {1 << 20, 0, BW_GROUP_DATA, 1, 80},
        {1 << 20, 1 << 20, BW_GROUP_DATA, 0, 48},
        {1 << 20, 1 << 20, BW_GROUP_DATA, 3, 80},
        {1 << 20, 1 << 20, BW_GROUP_DATA, 1, 47},
        {1 << 20, 1 << 20, BW_GROUP_DATA, 1, 0},
        {1 << 20, UINT64_C(1) << 50, BW_GROUP_DATA, 1, 80},           /* over all others */
        {UINT64_C(1) << 50, UINT64_MAX - 4095, BW_GROUP_DATA, 1, 80}, /* beyond all addresses */
        {22020096 + 65536, 65536, BW_GROUP_DATA, 1, 80},              /* inside another */
        {1 << 20, 1 << 20, BW_GROUP_DATA | BW_GROUP_RAID5 | BW_GROUP_RAID6, 10, 80 + 9 * 32},
        {1 << 20, 1 << 20, BW_GROUP_DATA | BW_GROUP_RAID10, 5, 80 + 4 * 32},
        {UINT64_MAX, 4096, BW_GROUP_DATA, 1, 80},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct iw_image *image = iw_create(&(struct iw_options){0});
        fill_sample(image);
        put_chunk(image, cases[i].logical, cases[i].length, cases[i].type, cases[i].stripes,
                  cases[i].size);
        iw_write_memory(image);
        struct report_log log = {0};
        struct walk_result result = walk_image(image, &log, 1);
        expect_paths(image, &result);
        assert_int_equal(log.counts[BW_DAMAGE], 1);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
    }
}

static void test_bad_device_items(void **state)
{
    for (size_t size = 0; size < 98; size += 97) {
        struct iw_image *image = iw_create(&(struct iw_options){0});
        struct bw_disk_device_item item = {.devid = bw_put64(1)};
        fill_sample(image);
        iw_item(image, BW_CHUNK_TREE, (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, 9}, &item,
                size);
        iw_write_memory(image);
        struct walk_result result = walk_image(image, NULL, 1);
        expect_paths(image, &result);
        walk_result_free(&result);
        iw_destroy(image);
    }
}
