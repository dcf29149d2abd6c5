/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public headers: items and blocks of trees, superblocks, devices, chunks and mappings. */
#include "btrfs-walk/tree.h"
#include "ondisk/items.h"
#include "support/walk_helpers.h"

static struct fixture make(const struct iw_options *options)
{
    struct fixture fixture = {.image = sample_image(options)};
    open_written(&fixture);
    return fixture;
}

/* Counts the items of a tree in a range of keys; each must be found where its location says. */
static size_t count_items(struct bw_fs *fs, uint64_t tree, const struct bw_key *first,
                          const struct bw_key *last, size_t *errors)
{
    struct bw_items *items;
    const struct bw_item *item;
    struct bw_item_location location;
    struct bw_key before = {0};
    size_t count = 0;
    expect_success(bw_items_open(fs, tree, first, last, &items));
    for (;;) {
        struct bw_error *error = bw_items_next(items, &item, &location);
        *errors += error != NULL;
        if (error) {
            bw_error_free(error);
            continue;
        }
        if (!item)
            break;
        assert_true(!count || bw_key_compare(&before, &item->key) < 0);
        before = item->key;
        count++;
        struct bw_tree_block *block;
        struct bw_item same;
        expect_success(bw_tree_block_read(fs, location.bytenr, &block));
        assert_true(bw_tree_block_item(block, location.slot, &same));
        assert_int_equal(bw_key_compare(&same.key, &item->key), 0);
        assert_int_equal(same.size, item->size);
        assert_memory_equal(same.data, item->data, same.size);
        bw_tree_block_free(block);
    }
    bw_items_close(items);
    return count;
}

/* Items of all leaves of a tree, as the image writer has made them. */
static size_t items_written(const struct iw_image *image, uint64_t tree)
{
    size_t count = 0;
    for (size_t i = 0; i < iw_block_count(image); i++) {
        const struct iw_block *block = iw_block(image, i);
        uint8_t bytes[BW_MAX_NODESIZE];
        if (block->tree != tree || block->level)
            continue;
        iw_block_bytes(image, block->logical, bytes);
        count += bw_get32(((const struct bw_disk_header *)bytes)->item_count);
    }
    return count;
}

static void test_items(void **state)
{
    struct fixture fixture = make(&(struct iw_options){.nodesize = 4096});
    static const uint64_t trees[] = {BW_TREE_ROOT, BW_TREE_CHUNK, FS};
    size_t errors = 0;
    struct bw_items *items;
    for (size_t i = 0; i < COUNT(trees); i++)
        assert_int_equal(count_items(fixture.fs, trees[i], NULL, NULL, &errors),
                         items_written(fixture.image, trees[i]));
    const struct bw_key first = {TOP, BW_INODE_ITEM, 0}, last = {TOP, BW_INODE_ITEM, UINT64_MAX};
    assert_int_equal(count_items(fixture.fs, FS, &first, &last, &errors), 1);
    assert_int_equal(count_items(fixture.fs, FS, &last, &first, &errors), 0);
    assert_int_equal(errors, 0);
    expect_error(bw_items_open(fixture.fs, 4711, NULL, NULL, &items), BW_ERROR_NOT_FOUND,
                 "no tree 4711");
    close_fixture(&fixture);
}

/* A lost leaf is one error, and all other items come. */
static void test_lost_items(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct fixture fixture = {.image = image};
    uint8_t bytes[BW_MAX_NODESIZE];
    size_t errors = 0;
    for (unsigned i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        iw_file(image, FS, TOP, name);
    }
    iw_write_memory(image);
    const struct iw_block *lost =
        iw_block_of_key(image, FS, (struct bw_key){400, BW_INODE_ITEM, 0});
    iw_block_bytes(image, lost->logical, bytes);
    iw_corrupt(image, lost->logical, IW_ALL_COPIES, 300, 4, IW_FLIP);
    expect_success(open_image(image, &fixture.log, &fixture.fs));
    size_t in_lost = bw_get32(((const struct bw_disk_header *)bytes)->item_count);
    assert_int_equal(count_items(fixture.fs, FS, NULL, NULL, &errors),
                     items_written(image, FS) - in_lost);
    assert_int_equal(errors, 1);
    struct bw_tree_block *block;
    expect_error(bw_tree_block_read(fixture.fs, lost->logical, &block), BW_ERROR_CORRUPT, NULL);
    close_fixture(&fixture);
}

/* Each copy may be lost for a different reason. */
static void test_two_bad_copies(void **state)
{
    struct fixture fixture = {.image = iw_create(&(struct iw_options){.profile = BW_GROUP_DUP})};
    struct bw_tree_block *block;
    iw_write_memory(fixture.image);
    const struct iw_block *lost =
        iw_block_of_key(fixture.image, FS, (struct bw_key){TOP, BW_INODE_ITEM, 0});
    const uint64_t logical = lost->logical;
    iw_corrupt(fixture.image, logical, IW_ALL_COPIES, 300, 4, IW_FLIP);
    expect_success(open_image(fixture.image, &fixture.log, &fixture.fs));
    struct bw_error *error = bw_tree_block_read(fixture.fs, logical, &block);
    assert_non_null(error);
    assert_non_null(error->causes);
    bw_error_free(error);
    iw_corrupt(fixture.image, logical, 1, 0, sizeof(struct bw_disk_header), IW_ZERO);
    error = bw_tree_block_read(fixture.fs, logical, &block);
    assert_non_null(error);
    assert_non_null(strstr(error->message, "there is no tree block at"));
    assert_non_null(error->causes);
    assert_non_null(strstr(error->causes->message, "both mirrors are bad"));
    bw_error_free(error);
    close_fixture(&fixture);
}

static void test_blocks(void **state)
{
    struct fixture fixture = make(&(struct iw_options){.nodesize = 4096});
    struct bw_tree_block *block;
    struct bw_item item;
    struct bw_block_key_pointer pointer;
    for (size_t i = 0; i < iw_block_count(fixture.image); i++) {
        const struct iw_block *written = iw_block(fixture.image, i);
        expect_success(bw_tree_block_read(fixture.fs, written->logical, &block));
        const struct bw_tree_block_header header = bw_tree_block_header(block);
        assert_int_equal(header.bytenr, written->logical);
        assert_int_equal(header.level, written->level);
        assert_false(bw_tree_block_item(block, header.item_count, &item));
        assert_false(bw_tree_block_pointer(block, header.item_count, &pointer));
        assert_int_equal(bw_tree_block_pointer(block, 0, &pointer), header.level > 0);
        assert_int_equal(bw_tree_block_item(block, 0, &item), !header.level && header.item_count);
        bw_tree_block_free(block);
    }
    expect_error(bw_tree_block_read(fixture.fs, 1, &block), BW_ERROR_NOT_FOUND, NULL);
    expect_error(bw_tree_block_read(fixture.fs, UINT64_MAX - 4095, &block), BW_ERROR_NOT_FOUND,
                 NULL);
    close_fixture(&fixture);
}

static void test_devices(void **state)
{
    const struct iw_options options = {
        .nodesize = 4096, .device_count = 3, .profile = BW_GROUP_RAID1};
    struct iw_image *image = sample_image(&options);
    struct fixture fixture = {.image = image};
    unsigned counts[3] = {0};
    struct bw_device_list devices;
    struct bw_chunk_list chunks;
    struct bw_superblock_info superblock;
    struct bw_mapping mapping;
    iw_remove_device(image, 2);
    expect_success(open_image(image, &fixture.log, &fixture.fs));
    expect_success(bw_fs_devices(fixture.fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        assert_true((device->path != NULL) == (device->state != BW_DEVICE_MISSING));
        counts[device->state]++;
    }
    assert_int_equal(counts[BW_DEVICE_PRESENT], 2);
    assert_int_equal(counts[BW_DEVICE_MISSING], 1);
    expect_success(bw_fs_chunks(fixture.fs, &chunks));
    assert_int_equal(chunks.count, iw_chunk_count(image));
    for (size_t i = 0; i < chunks.count; i++) {
        assert_true(chunks.items[i].stripe_count > 0);
        assert_string_equal(chunks.items[i].profile, "RAID1");
    }
    bw_device_list_free(&devices);
    bw_chunk_list_free(&chunks);

    assert_int_equal(bw_fs_image_count(fixture.fs), 2);
    bw_fs_superblock(fixture.fs, &superblock);
    assert_int_equal(superblock.nodesize, 4096);
    assert_int_equal(superblock.device_count, 3);
    expect_success(bw_fs_read_superblock(fixture.fs, 1, 0, &superblock));
    assert_int_equal(superblock.devid, iw_devid(image, 1));
    expect_error(bw_fs_read_superblock(fixture.fs, 2, 0, &superblock), BW_ERROR_NOT_FOUND, NULL);
    expect_error(bw_fs_read_superblock(fixture.fs, 0, 2, &superblock), BW_ERROR_NOT_FOUND,
                 "too small");

    const struct iw_block *root = iw_root_block(image, FS);
    expect_success(bw_fs_map(fixture.fs, root->logical, 4096, 1, &mapping));
    assert_int_equal(mapping.copies, 2);
    assert_int_equal(mapping.length, 4096);
    assert_int_not_equal(mapping.devid, 0);
    expect_error(bw_fs_map(fixture.fs, root->logical, 4096, 3, &mapping), BW_ERROR_NOT_FOUND, NULL);
    expect_error(bw_fs_map(fixture.fs, 1, 4096, 1, &mapping), BW_ERROR_NOT_FOUND, NULL);
    assert_int_equal(mapping.copies, 0);
    close_fixture(&fixture);
}
