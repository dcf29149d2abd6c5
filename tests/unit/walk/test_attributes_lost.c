/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of damaged images: losses on the way to an inode cost its attributes, with a message, but do
 * not hide or move its name.
 */
#include "support/row_helpers.h"

static void test_missing_inodes(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct report_log log = {0};
    for (uint64_t number = 300; number < 400; number++)
        make_numbered(image, FS, TOP, number);
    for (uint64_t number = 310; number < 330; number++)
        iw_remove_item(image, FS, (struct bw_key){number, BW_INODE_ITEM, 0});
    iw_write_memory(image);
    assert_int_equal(check_row_walks(image, &(struct bw_walk_options){0}, check_attributes), 20);
    struct walk_result result = walk_rows(image, &(struct bw_walk_options){.threads = 1}, &log);
    assert_int_equal(report_log_count(&log, "it has no inode item"), 8);
    assert_int_equal(report_log_count(&log, "subvolume 5: inode 310: it has no inode item"), 1);
    assert_int_equal(
        report_log_count(&log, "subvolume 5: 12 more inodes without readable attributes"), 1);
    assert_int_equal(log.counts[BW_DAMAGE], 9);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

/* The last entry is dangling; its key is lower or higher than all others. */
static void test_dangling(void **state)
{
    static const uint64_t numbers[] = {0, 1, 255, 299, 5000, UINT64_MAX - 1, UINT64_MAX};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char name[32];
        snprintf(name, sizeof name, "f%llu", (unsigned long long)numbers[i]);
        struct iw_image *image = iw_create(
            &(struct iw_options){.nodesize = 4096, .items_per_leaf = 5, .pointers_per_node = 3});
        make_numbered(image, FS, TOP, 300);
        iw_entry(image, FS,
                 &(struct iw_entry){.directory = TOP,
                                    .name = name,
                                    .type = BW_FILE_REGULAR,
                                    .location = {numbers[i], BW_INODE_ITEM, 0}});
        iw_write_memory(image);
        assert_int_equal(check_row_walks(image, &(struct bw_walk_options){0}, check_attributes), 1);
        iw_destroy(image);
    }
}

/* A size that no file can have: to read as much would never end. */
static void test_invalid_size(void **state)
{
    struct bw_disk_inode_item bytes = {.size = bw_put64(UINT64_C(1) << 63),
                                       .mode = bw_put32(0100644)};
    for (unsigned i = 0; i < 2; i++) {
        struct report_log log = {0};
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
        make_numbered(image, FS, TOP, 300);
        iw_item(image, FS, (struct bw_key){300, BW_INODE_ITEM, 0}, &bytes, sizeof bytes);
        iw_write_memory(image);
        struct walk_result result = walk_rows(image, &(struct bw_walk_options){0}, &log);
        assert_int_equal(
            report_log_count(&log, "subvolume 5: inode 300: its inode has an invalid size"),
            i == 0);
        assert_int_equal(log.counts[BW_DAMAGE], i == 0);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
        bytes.size = bw_put64(INT64_MAX);
    }
}

static void test_cut_off_inode(void **state)
{
    for (size_t length = 0; length < sizeof(struct bw_disk_inode_item); length += 53) {
        const struct bw_disk_inode_item bytes = {0};
        struct report_log log = {0};
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
        make_numbered(image, FS, TOP, 300);
        make_numbered(image, FS, TOP, 301);
        iw_item(image, FS, (struct bw_key){300, BW_INODE_ITEM, 0}, &bytes, length);
        iw_write_memory(image);
        assert_int_equal(check_row_walks(image, &(struct bw_walk_options){0}, check_attributes), 1);
        struct walk_result result = walk_rows(image, &(struct bw_walk_options){0}, &log);
        assert_int_equal(
            report_log_count(&log, "subvolume 5: inode 300: its inode item is cut off"), 1);
        assert_int_equal(log.counts[BW_DAMAGE], 1);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* A leaf without names: the listing does not even notice, the attributes of its inodes are unknown.
 */
static void test_lost_inode_leaf(void **state)
{
    struct iw_image *image = numbered_image(&(struct iw_options){.nodesize = 4096}, 900);
    const struct iw_block *block =
        iw_block_of_key(image, FS, (struct bw_key){1300, BW_INODE_ITEM, 0});
    assert_true(block->first_key.objectid > 1000 && block->last_key.objectid < 3000);
    iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
    check_walk(image, NULL);
    size_t unknown = check_row_walks(image, &(struct bw_walk_options){0}, check_attributes);
    assert_in_range(unknown, 5, 100);
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct report_log log = {0};
        struct walk_result result =
            walk_rows(image, &(struct bw_walk_options){.threads = threads}, &log);
        assert_int_equal(log.counts[BW_DAMAGE], 1);
        assert_int_equal(report_log_count(&log, "no inode item"), 0);
        assert_int_equal(result.summary.lost_blocks, 0);
        walk_result_free(&result);
        report_log_free(&log);
    }
    iw_destroy(image);
}

static bool is_in(const struct iw_block *block, struct bw_key key)
{
    return bw_key_compare(&key, &block->first_key) >= 0 &&
           bw_key_compare(&key, &block->last_key) <= 0;
}

static void check_what_is_left(const char *row, const struct iw_block *lost)
{
    const uint32_t hash = bw_name_hash(PROPERTY, strlen(PROPERTY));
    struct parsed_row parsed;
    parse_row(row, &parsed);
    assert_true(parsed.known == !is_in(lost, (struct bw_key){parsed.inode, BW_INODE_ITEM, 0}));
    if (!is_in(lost, (struct bw_key){parsed.inode, BW_XATTR_ITEM, hash}) || !parsed.known)
        check_attributes(&parsed);
    else
        assert_string_equal(parsed.columns[7], "-");
}

/* Loses each block in turn: files and order are those of the listing. Files whose names were
 * recovered have attributes, unless their own leaf is lost. */
static void check_lost_block(struct iw_image *image, const struct iw_block *block, bool adopted)
{
    struct walk_result paths = walk_paths(image, &(struct bw_walk_options){.threads = 1});
    struct report_log log = {0};
    struct walk_result rows = walk_rows(image, &(struct bw_walk_options){.threads = 1}, &log);
    struct walk_result again = walk_rows(image, &(struct bw_walk_options){.threads = 4}, NULL);
    size_t unknown = compare_rows(&rows, &paths, check_inode);
    for (size_t i = 0; i < rows.count && block->level == 0; i++)
        check_what_is_left(rows.paths[i], block);
    if (adopted && block->level == 1)
        assert_true(unknown < rows.count);
    assert_int_equal(report_log_count(&log, "no inode item"), 0); /* lost is not missing */
    report_log_free(&log);
    assert_int_equal(again.bytes.length, rows.bytes.length);
    if (rows.bytes.length)
        assert_memory_equal(again.bytes.data, rows.bytes.data, rows.bytes.length);
    walk_result_free(&paths);
    walk_result_free(&rows);
    walk_result_free(&again);
}

static void check_every_block(const struct iw_options *options, unsigned files)
{
    struct iw_image *image = numbered_image(options, files);
    for (size_t i = 0; i < iw_block_count(image); i += variant_step()) {
        const struct iw_block *block = iw_block(image, i);
        if (block->tree != FS)
            continue;
        iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
        check_lost_block(image, block, files > 100);
        iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
    }
    iw_destroy(image);
}

static void test_every_block_lost(void **state)
{
    check_every_block(&(struct iw_options){.nodesize = 4096}, 300);
    check_every_block(
        &(struct iw_options){.nodesize = 4096, .items_per_leaf = 10, .pointers_per_node = 8}, 80);
    check_every_block(
        &(struct iw_options){.nodesize = 4096, .items_per_leaf = 1, .pointers_per_node = 5}, 15);
    check_every_block(
        &(struct iw_options){.nodesize = 16384, .items_per_leaf = 3, .pointers_per_node = 4}, 40);
}

/* Leaves below a lost node are found all the same, but not those that are lost themselves. */
static void test_node_and_leaf_lost(void **state)
{
    struct iw_image *image =
        numbered_image(&(struct iw_options){.nodesize = 4096, .pointers_per_node = 20}, 900);
    const struct iw_block *node, *leaf;
    for (size_t i = 0; (node = iw_block_find(image, FS, 1, i)); i++) {
        iw_corrupt(image, node->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
        for (size_t j = 20 * i; j < 20 * i + 20 && (leaf = iw_block_find(image, FS, 0, j));
             j += 3) {
            iw_corrupt(image, leaf->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
            check_lost_block(image, node, i > 0);
            iw_corrupt(image, leaf->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
        }
        iw_corrupt(image, node->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
    }
    iw_destroy(image);
}

/* Two directories, each in the other one, and a file there. */
static void add_circle(struct iw_image *image)
{
    const uint64_t left = iw_directory(image, FS, TOP, "left"),
                   right = iw_directory(image, FS, left, "right");
    iw_file(image, FS, right, "in a circle");
    iw_remove_entry(image, FS, TOP, "left");
    iw_remove_item(image, FS, (struct bw_key){left, BW_INODE_REF, TOP});
    iw_item(image, FS, (struct bw_key){left, BW_INODE_REF, right}, "\2\0\0\0\0\0\0\0\4\0left", 14);
}

/* Files in directories with higher inode numbers: their names are found before those of the
 * directories, whose entries are lost. */
static void test_younger_directories(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.items_per_leaf = 2});
    const char *const names[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < COUNT(names); i++)
        iw_file(image, FS, TOP, names[i]);
    const uint64_t outer = iw_directory(image, FS, TOP, "outer"),
                   inner = iw_directory(image, FS, outer, "inner");
    for (size_t i = 0; i < COUNT(names); i++)
        iw_move(image, FS, TOP + 1 + i, TOP, names[i], inner, names[i]);
    add_circle(image);
    iw_write_memory(image);
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        if (block->tree == FS && !block->level && block->last_key.type == BW_DIR_INDEX)
            iw_corrupt(image, block->logical, IW_ALL_COPIES, 64, 64, IW_FLIP);
    }
    struct walk_result result = walk_paths(image, &(struct bw_walk_options){.threads = 1});
    expect_paths(image, &result);
    walk_result_free(&result);
    iw_destroy(image);
}
