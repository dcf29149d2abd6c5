/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checksum tree after an interrupted change of the type of checksums: a tree of many leaves, in
 * which one of two sets is taken out. No block is freed or empty, and all data have checksums.
 */
#include "support/data_image.h"
#include "support/image_writer_internal.h"

#include "base/cleanup.h"
#include "btrfs-walk/repair.h"
#include "record/record_types.h"

enum {
    SECTORS = 64, /* of the file */
    FLAG = 39,    /* of superblocks: the checksums of data are being changed */
};

/* Adds checksums of sectors [first, end), in items of `step` of them. */
static void add_checksums(struct data_image *image, uint64_t objectid, enum bw_checksum_type type,
                          uint32_t first, uint32_t end, uint32_t step)
{
    uint8_t sums[SECTORS * BW_CSUM_SIZE];
    const size_t size = bw_checksum_size(type);
    for (uint32_t at = first; at < end; at += step) {
        uint32_t count = 0;
        for (; count < step && at + count < end; count++) {
            uint8_t sum[BW_CSUM_SIZE];
            bw_checksum_compute(type, image->data + (size_t)(at + count) * SECTOR, SECTOR, sum);
            memcpy(sums + count * size, sum, size);
        }
        iw_item(image->image, BW_CSUM_TREE,
                (struct bw_key){objectid, BW_EXTENT_CSUM, image->logical + (uint64_t)at * SECTOR},
                sums, count * size);
    }
}

static void set_flag(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->flags = bw_put64(bw_get64(superblock->flags) | UINT64_C(1) << FLAG);
}

/* An image with one extent of data, which all trees know, and without checksums. */
static struct data_image *begin(unsigned items_per_leaf, unsigned pointers_per_node)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    struct __attribute__((packed)) {
        bw_le64 references, generation, flags;
        uint8_t type;
        bw_le64 root, objectid, offset;
        bw_le32 count;
    } extent = {.references = bw_put64(1),
                .generation = bw_put64(7),
                .flags = bw_put64(1),
                .type = BW_EXTENT_DATA_REF,
                .root = bw_put64(FS),
                .objectid = bw_put64(image->inode),
                .count = bw_put32(1)};
    data_image_plain(image, 0, 0, SECTORS * SECTOR);
    data_image_inode(image, SECTORS * SECTOR, 0);
    iw_item(image->image, BW_EXTENT_TREE,
            (struct bw_key){image->logical, BW_EXTENT_ITEM, SECTORS * SECTOR}, &extent,
            sizeof extent);
    iw_item(image->image, BW_ROOT_TREE,
            (struct bw_key){BW_CSUM_CHANGE, BW_TEMPORARY_ITEM, BW_CHECKSUM_SHA256}, NULL, 0);
    iw_shape(image->image, BW_CSUM_TREE, items_per_leaf, pointers_per_node, 0);
    return image;
}

/* Repairs the image: the type of all checksums is `type` then, and nothing is wrong. */
static void repair(struct data_image *image, enum bw_checksum_type type)
{
    const char *paths[IW_MAX_DEVICES];
    struct bw_fs *fs, *repaired;
    struct bw_repair *plan;
    uint64_t left;
    size_t count;
    data_image_open(image, NULL);
    iw_superblock_edit(image->image, 0, IW_ALL_COPIES, set_flag, NULL, true);
    struct bw_fs_options how = {.struct_size = sizeof how,
                                .paths = paths,
                                .path_count = iw_paths_of(image->image, paths),
                                .log = BW_LOG_IGNORE,
                                .reporter = report_log_reporter(&image->log)};
    const struct bw_repair_options options = {.struct_size = sizeof options, .data = true};
    expect_success(bw_fs_open(&how, &fs));
    expect_success(bw_repair_open(fs, &how, &options, &plan));
    for (size_t i = 0; i < bw_repair_count(plan); i++) {
        struct bw_repairinfo row;
        bw_repair_change(plan, i, &row);
        assert_int_equal(row.chosen, 1);
    }
    expect_success(bw_repair_try(plan, &left));
    assert_int_equal(left, 0);

    how.patches = bw_repair_patches(plan, &count);
    how.patch_count = count;
    expect_success(bw_fs_open(&how, &repaired));
    assert_int_equal(repaired->superblock.checksum_type, type);
    assert_int_equal(repaired->superblock.flags >> FLAG, 0);
    uint32_t sectors = 0;
    struct bw_fs_items items;
    bw_fs_items_begin(&items, repaired, &repaired->checksum_trees.items[0],
                      (struct bw_key){0, 0, 0}, (struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        assert_true(item->key.objectid == BW_EXTENT_CSUM_OBJECT);
        sectors += (uint32_t)(item->size / bw_checksum_size(type));
    }
    assert_null(bw_fs_items_error(&items));
    bw_fs_items_free(&items);
    assert_int_equal(sectors, SECTORS);
    bw_fs_close(repaired);
    bw_repair_close(plan);
    bw_fs_close(fs);
    data_image_free(image);
}

/* The new set is incomplete. */
static void adding(void **state)
{
    struct data_image *image = begin(2, 3);
    add_checksums(image, BW_EXTENT_CSUM_OBJECT, BW_CHECKSUM_CRC32C, 0, SECTORS, 5);
    add_checksums(image, BW_CSUM_CHANGE, BW_CHECKSUM_SHA256, 0, SECTORS / 2, 1);
    repair(image, BW_CHECKSUM_CRC32C);
}

/* Both are complete. */
static void added(void **state)
{
    struct data_image *image = begin(2, 2);
    add_checksums(image, BW_EXTENT_CSUM_OBJECT, BW_CHECKSUM_CRC32C, 0, SECTORS, 1);
    add_checksums(image, BW_CSUM_CHANGE, BW_CHECKSUM_SHA256, 0, SECTORS, 7);
    repair(image, BW_CHECKSUM_SHA256);
}

/* The old set is incomplete. */
static void deleting(void **state)
{
    struct data_image *image = begin(1, 4);
    add_checksums(image, BW_EXTENT_CSUM_OBJECT, BW_CHECKSUM_CRC32C, 40, SECTORS, 3);
    add_checksums(image, BW_CSUM_CHANGE, BW_CHECKSUM_SHA256, 0, SECTORS, 10);
    repair(image, BW_CHECKSUM_SHA256);
}

/* Some of the new ones have the final object id: nothing is taken out. */
static void renaming(void **state)
{
    struct data_image *image = begin(3, 0);
    add_checksums(image, BW_EXTENT_CSUM_OBJECT, BW_CHECKSUM_SHA256, 32, SECTORS, 8);
    add_checksums(image, BW_CSUM_CHANGE, BW_CHECKSUM_SHA256, 0, 32, 4);
    repair(image, BW_CHECKSUM_SHA256);
}

/* A single leaf, which is the root. */
static void one_leaf(void **state)
{
    struct data_image *image = begin(0, 0);
    add_checksums(image, BW_EXTENT_CSUM_OBJECT, BW_CHECKSUM_CRC32C, 0, SECTORS, SECTORS);
    add_checksums(image, BW_CSUM_CHANGE, BW_CHECKSUM_SHA256, 0, 5, 5);
    repair(image, BW_CHECKSUM_CRC32C);
}
