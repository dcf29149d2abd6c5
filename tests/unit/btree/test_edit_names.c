/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/btree/edit_names.c: names that are added to a tree in memory and removed from it. */
#include "btree/edit_names.h"
#include "fs/fs.h"
#include "support/walk_helpers.h"

enum { NODESIZE = 4096 };

/* The file tree of an image with the file "a", to be changed. */
struct bench {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_block_memory memory;
    struct bw_tree_editor editor;
    uint64_t file;
};

static struct bench make_image(void)
{
    struct bench bench = {.memory = {.nodesize = NODESIZE}};
    bench.image = iw_create(&(struct iw_options){.nodesize = NODESIZE});
    bench.file = iw_file(bench.image, FS, TOP, "a");
    return bench;
}

/* Opens the image, which has been written. */
static void open_bench(struct bench *bench)
{
    expect_success(open_image(bench->image, NULL, &bench->fs));
    const struct iw_block *root = iw_root_block(bench->image, FS);
    const struct bw_tree tree = {FS, {root->logical, root->generation, (uint8_t)root->level}, 0};
    expect_success(bw_editor_create(&bench->editor, &bench->fs->reader, &bench->memory, &tree, 77));
}

static void free_bench(struct bench *bench)
{
    bw_editor_destroy(&bench->editor);
    bw_memory_free(&bench->memory);
    bw_fs_close(bench->fs);
    iw_destroy(bench->image);
}

static struct bw_link link_of(const struct bench *bench, const char *name, uint64_t index)
{
    return (struct bw_link){TOP, bench->file, index, (const uint8_t *)name, (uint16_t)strlen(name)};
}

static uint64_t size_of_top(struct bench *bench)
{
    struct bw_disk_inode_item item;
    bool exists;
    expect_success(bw_edit_inode(&bench->editor, TOP, &item, &exists));
    assert_true(exists);
    return bw_get64(item.size);
}

/* Whether a directory has an entry for a link, which both of its items must say. */
static bool has_entry(struct bench *bench, const struct bw_link *link)
{
    struct bw_dir_entry named, indexed;
    expect_success(bw_edit_entry(&bench->editor, link, true, &named));
    expect_success(bw_edit_entry(&bench->editor, link, false, &indexed));
    assert_int_equal(named.name != NULL, indexed.name != NULL);
    return named.name;
}

static bool has_ref(struct bench *bench, const struct bw_key *key, const struct bw_link *link)
{
    struct bw_item item, bytes;
    struct bw_inode_ref ref;
    expect_success(bw_edit_find(&bench->editor, key, &item));
    return item.data &&
           bw_find_ref(&item, link->directory, link->name, link->length, &ref, &bytes) &&
           ref.index == link->index;
}

static void test_one_name(void **state)
{
    struct bench bench = make_image();
    iw_write_memory(bench.image);
    open_bench(&bench);
    const struct bw_link first = link_of(&bench, "a", 2), second = link_of(&bench, "second", 7);
    const struct bw_key key = {bench.file, BW_INODE_REF, TOP};
    const uint64_t size = size_of_top(&bench);
    assert_true(has_entry(&bench, &first));
    expect_success(bw_edit_link(&bench.editor, &second, true));
    assert_true(has_entry(&bench, &second));
    assert_true(has_ref(&bench, &key, &first) && has_ref(&bench, &key, &second));
    assert_int_equal(size_of_top(&bench), size + 12);
    expect_success(bw_edit_unlink(&bench.editor, &first));
    assert_false(has_entry(&bench, &first));
    assert_true(!has_ref(&bench, &key, &first) && has_ref(&bench, &key, &second));
    expect_success(bw_edit_unlink(&bench.editor, &second));
    assert_false(has_entry(&bench, &second) || has_ref(&bench, &key, &second));
    assert_int_equal(size_of_top(&bench), size - 2);
    expect_success(bw_edit_unlink(&bench.editor, &second)); /* for the second time */
    assert_int_equal(size_of_top(&bench), size - 2);
    free_bench(&bench);
}

/* More names than fit into one item continue in items with hashed keys. */
static void test_many_names(void **state)
{
    struct bench bench = make_image();
    iw_write_memory(bench.image);
    open_bench(&bench);
    enum { NAMES = 60, LENGTH = 100 };
    char names[NAMES][LENGTH + 1];
    struct bw_link links[NAMES];
    const struct bw_key key = {bench.file, BW_INODE_REF, TOP};
    size_t extended = 0;
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "%0*zu", LENGTH, i);
        links[i] = link_of(&bench, names[i], 10 + i);
        expect_success(bw_edit_link(&bench.editor, &links[i], true));
    }
    for (size_t i = 0; i < NAMES; i++) {
        const struct bw_key other = bw_extref_key(&links[i]);
        const bool is_extended = has_ref(&bench, &other, &links[i]);
        extended += is_extended;
        assert_true(has_entry(&bench, &links[i]));
        assert_int_equal(has_ref(&bench, &key, &links[i]), !is_extended);
        expect_success(bw_edit_unlink(&bench.editor, &links[i]));
        assert_false(has_entry(&bench, &links[i]) || has_ref(&bench, &other, &links[i]) ||
                     has_ref(&bench, &key, &links[i]));
    }
    assert_in_range(extended, 20, 30); /* a leaf has room for 36 of these names */
    free_bench(&bench);
}

/* Names with the same hash share an item. */
static void test_shared_items(void **state)
{
    struct bench bench = make_image();
    iw_write_memory(bench.image);
    open_bench(&bench);
    const struct bw_link link = link_of(&bench, "a", 2);
    const struct bw_key key = {TOP, BW_DIR_ITEM, bw_name_hash("a", 1)};
    struct {
        struct bw_disk_dir_item item;
        char name[1];
    } other = {{.name_length = bw_put16(1)}, "b"};
    struct bw_item item, bytes;
    struct bw_dir_entry entry;
    expect_success(bw_edit_append(&bench.editor, &key, &other, sizeof other.item + 1));
    expect_success(bw_edit_unlink(&bench.editor, &link));
    expect_success(bw_edit_find(&bench.editor, &key, &item));
    assert_int_equal(item.size, sizeof other.item + 1);
    assert_true(bw_find_entry(&item, (const uint8_t *)"b", 1, &entry, &bytes));
    assert_true(bytes.data == item.data && bytes.size == item.size);
    assert_false(bw_find_entry(&item, (const uint8_t *)"a", 1, &entry, &bytes));
    expect_success(bw_edit_append(&bench.editor, &key, &other, 5)); /* an entry that is cut off */
    expect_success(bw_edit_unlink(&bench.editor, &link));
    free_bench(&bench);
}

/* A name of more than 255 bytes, which an item can contain, fits no entry. */
static void test_long_names(void **state)
{
    struct bench bench = make_image();
    iw_write_memory(bench.image);
    open_bench(&bench);
    static char name[2000];
    memset(name, 'x', sizeof name - 1);
    struct bw_link link = link_of(&bench, name, 7);
    expect_error(bw_edit_link(&bench.editor, &link, true), BW_ERROR_CORRUPT, "a name is too long");
    expect_error(bw_edit_link(&bench.editor, &link, false), BW_ERROR_CORRUPT, "a name is too long");
    expect_error(bw_edit_unlink(&bench.editor, &link), BW_ERROR_CORRUPT, "a name is too long");
    link.length = 256;
    expect_error(bw_edit_link(&bench.editor, &link, true), BW_ERROR_CORRUPT, "a name is too long");
    link.length = 255;
    expect_success(bw_edit_link(&bench.editor, &link, true));
    assert_true(has_entry(&bench, &link));
    free_bench(&bench);
}

/* Inodes that are missing or too short do not exist; a size never wraps. */
static void test_damaged_inodes(void **state)
{
    struct bench bench = make_image();
    iw_write_memory(bench.image);
    open_bench(&bench);
    const struct bw_link link = link_of(&bench, "b", 7), a = link_of(&bench, "a", 2);
    struct bw_disk_inode_item item;
    bool exists;

    struct bw_link unknown = link;
    unknown.inode = 9999;
    expect_success(bw_edit_link(&bench.editor, &unknown, true));
    assert_false(has_entry(&bench, &unknown));

    expect_success(bw_edit_inode(&bench.editor, TOP, &item, &exists));
    item.size = bw_put64(1);
    expect_success(bw_edit_set_inode(&bench.editor, TOP, &item));
    expect_success(bw_edit_unlink(&bench.editor, &a));
    assert_int_equal(size_of_top(&bench), 0);

    const struct bw_key key = {TOP, BW_INODE_ITEM, 0};
    expect_success(bw_edit_put(&bench.editor, &key, &item, sizeof item - 1));
    expect_success(bw_edit_inode(&bench.editor, TOP, &item, &exists));
    assert_false(exists);
    expect_success(bw_edit_link(&bench.editor, &link, true)); /* there is no size to change */
    assert_true(has_entry(&bench, &link));
    expect_success(bw_edit_remove(&bench.editor, &key));
    expect_success(bw_edit_inode(&bench.editor, TOP, &item, &exists));
    assert_false(exists);
    free_bench(&bench);
}

/* The items of a link are in several leaves. Each function fails if one of them is lost. */
static void test_lost_leaves(void **state)
{
    for (size_t nth = 0;; nth++) {
        struct bench bench = make_image();
        iw_shape(bench.image, FS, 1, 0, 1);
        iw_write_memory(bench.image);
        const struct iw_block *leaf = iw_block_find(bench.image, FS, 0, nth);
        const bool is_last = !leaf;
        const struct bw_key key = leaf ? leaf->first_key : (struct bw_key){0};
        if (leaf)
            iw_corrupt(bench.image, leaf->logical, IW_ALL_COPIES, 200, 1, IW_FLIP);
        open_bench(&bench);
        const struct bw_link link = link_of(&bench, "a", 2);
        const bool hits_unlink = leaf &&
                                 !(key.objectid == bench.file && key.type == BW_INODE_ITEM) &&
                                 !(key.objectid == TOP && key.type == BW_INODE_REF);
        struct bw_error *error = bw_edit_unlink(&bench.editor, &link);
        if (hits_unlink)
            expect_error(error, BW_ERROR_CORRUPT, "checksum");
        else
            expect_success(error);
        free_bench(&bench);
        if (is_last)
            break;
    }
}
