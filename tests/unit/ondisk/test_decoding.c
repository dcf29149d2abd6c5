/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk: limits of decoded structures, names of numbers, leaves with wrong contents, and the
 * description of all structures. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "btrfs-walk/tree.h"
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"
#include "support/item_cases.h"

/* Places of data in stripe trees. */
static void test_stripe_extents(void **state)
{
    struct bw_disk_raid_stride strides[BW_STRIPE_PLACES + 2] = {
        {bw_put64(1), bw_put64(4096)}, {bw_put64(2), bw_put64(UINT64_MAX - 4095)}};
    struct bw_stripe_extent extent;
    struct bw_item item = {{65536, BW_RAID_STRIPE, 4096}, (void *)strides, sizeof *strides};
    expect_success(bw_stripe_extent_decode(&item, &extent));
    assert_true(extent.count == 1 && extent.places[0].devid == 1);
    item.size = 2 * sizeof *strides;
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid place");
    item.size = 0;
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid size 0");
    item.size = 17;
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid size 17");
    item.size = 8; /* the head of older kernels, without places */
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid size 8");
    item.size = (BW_STRIPE_PLACES + 1) * sizeof *strides;
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid size");
    item.size = sizeof *strides;
    item.key.offset = 0;
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid length 0");
    item.key = (struct bw_key){UINT64_MAX - 4095, BW_RAID_STRIPE, 4096};
    expect_error(bw_stripe_extent_decode(&item, &extent), BW_ERROR_CORRUPT, "invalid length 4096");
    item.size += 8; /* the head of older kernels, and a place */
    item.key.objectid = 65536;
    expect_success(bw_stripe_extent_decode(&item, &extent));
    assert_int_equal(extent.places[0].devid, 4096); /* behind the head */
}

static void test_moved_ranges(void **state)
{
    struct bw_disk_remap disk = {bw_put64(1 << 20)};
    struct bw_moved_range range;
    struct bw_item item = {{65536, BW_UNTYPED, 4096}, (void *)&disk, sizeof disk};
    expect_success(bw_moved_range_decode(&item, &range));
    item.size--;
    expect_error(bw_moved_range_decode(&item, &range), BW_ERROR_CORRUPT, "the item is cut off");
    item.size++;
    item.key.offset = 0;
    expect_error(bw_moved_range_decode(&item, &range), BW_ERROR_CORRUPT, "invalid range");
    item.key.offset = UINT64_MAX;
    expect_error(bw_moved_range_decode(&item, &range), BW_ERROR_CORRUPT, "invalid range");
    item.key = (struct bw_key){0, BW_UNTYPED, UINT64_MAX};
    expect_error(bw_moved_range_decode(&item, &range), BW_ERROR_CORRUPT, "invalid range");
}

/* A profile with parity must not have two stripes of a row on one device. */
static void test_device_twice(void **state)
{
    const struct bw_disk_chunk disk = {.length = bw_put64(1 << 20),
                                       .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                                       .type = bw_put64(BW_GROUP_DATA | BW_GROUP_RAID5),
                                       .stripe_count = bw_put16(2),
                                       .sub_stripes = bw_put16(1)};
    uint8_t bytes[sizeof(struct bw_disk_chunk) + 2 * sizeof(struct bw_disk_stripe)] = {0};
    struct bw_disk_stripe *stripes = (void *)(bytes + sizeof(struct bw_disk_chunk));
    struct bw_chunk chunk;
    memcpy(bytes, &disk, sizeof disk);
    stripes[0].devid = bw_put64(1);
    stripes[1].devid = bw_put64(2);
    expect_success(bw_chunk_decode(4096, bytes, sizeof bytes, &chunk));
    stripes[1].devid = bw_put64(1);
    expect_error(bw_chunk_decode(4096, bytes, sizeof bytes, &chunk), BW_ERROR_CORRUPT,
                 "one device twice");
}

static void test_order_of_groups(void **state)
{
    static const uint64_t ordered[] = {BW_GROUP_DATA,     BW_GROUP_DATA | BW_GROUP_RAID1,
                                       BW_GROUP_METADATA, BW_GROUP_METADATA | BW_GROUP_DUP,
                                       BW_GROUP_SYSTEM,   0,
                                       BW_GROUP_RAID1};
    for (size_t i = 0; i < COUNT(ordered); i++)
        for (size_t j = 0; j < COUNT(ordered); j++)
            assert_int_equal(bw_group_type_compare(ordered[i], ordered[j]), (i > j) - (i < j));
}

/* Superblocks that were erased, or are not finished. */
static void test_erased_superblocks(void **state)
{
    static struct bw_disk_superblock disk;
    struct bw_superblock super;
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_NOT_BTRFS, NULL);
    disk.bytenr = bw_put64(65536);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_NOT_BTRFS, NULL);
    disk.sectorsize = bw_put32(4096);
    disk.nodesize = bw_put32(4095);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_NOT_BTRFS, NULL);
    disk.nodesize = bw_put32(16384);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT, "has been erased");
    disk.magic = bw_put64(1);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT, "is damaged");
    disk.magic = bw_put64(BW_TEMPORARY_MAGIC);
    expect_error(bw_superblock_decode(&disk, 65536, &super), BW_ERROR_CORRUPT,
                 "mkfs.btrfs or a conversion was interrupted");
    expect_error(bw_superblock_decode(&disk, 4096, &super), BW_ERROR_NOT_BTRFS, NULL);
}

/* While the UUID changes, blocks may have the new one or the old one. */
static void test_block_ids(void **state)
{
    struct bw_superblock super = {.metadata_uuid = {1}, .device.fsid = {2}};
    const uint8_t first[BW_UUID_SIZE] = {1}, second[BW_UUID_SIZE] = {2}, third[BW_UUID_SIZE] = {3};
    assert_true(bw_superblock_has_block_id(&super, first));
    assert_false(bw_superblock_has_block_id(&super, second));
    super.flags = BW_SUPER_FLAG_CHANGING_FSID;
    assert_true(bw_superblock_has_block_id(&super, first));
    assert_true(bw_superblock_has_block_id(&super, second));
    assert_false(bw_superblock_has_block_id(&super, third));

    struct bw_disk_superblock disk;
    bw_superblock_encode(&super, &disk);
    assert_int_equal(disk.metadata_uuid[0], 0);
    super.incompat_flags = BW_INCOMPAT_METADATA_UUID;
    bw_superblock_encode(&super, &disk);
    assert_memory_equal(disk.metadata_uuid, first, BW_UUID_SIZE);
}

/* What is encoded is decoded as the same. */
static void test_encoded_superblock(void **state)
{
    static struct bw_disk_superblock disk, again;
    struct bw_superblock super = {.metadata_uuid = {1},
                                  .fsid = {2},
                                  .flags = 1,
                                  .generation = 9,
                                  .root = {65536, 9, 1},
                                  .chunk_root = {131072, 8, 2},
                                  .total_bytes = 1 << 30,
                                  .bytes_used = 1 << 20,
                                  .device_count = 2,
                                  .uuid_tree_generation = 7,
                                  .cache_generation = 6,
                                  .sectorsize = 4096,
                                  .nodesize = 16384,
                                  .compat_ro_flags = 3,
                                  .incompat_flags = BW_INCOMPAT_METADATA_UUID,
                                  .checksum_type = BW_CHECKSUM_CRC32C,
                                  .label = "label",
                                  .device = {.devid = 2,
                                             .total_bytes = 1 << 29,
                                             .bytes_used = 4096,
                                             .uuid = {3},
                                             .fsid = {2}},
                                  .system_chunk_array_size = 2,
                                  .system_chunk_array = {4, 5}};
    bw_superblock_encode(&super, &disk);
    bw_checksum_compute(BW_CHECKSUM_CRC32C, (uint8_t *)&disk + BW_CSUM_SIZE,
                        sizeof disk - BW_CSUM_SIZE, disk.csum);
    expect_success(bw_superblock_decode(&disk, bw_superblock_offset(0), &super));
    assert_int_equal(super.nodesize, 16384);
    bw_superblock_encode(&super, &again);
    memcpy(again.csum, disk.csum, sizeof again.csum);
    assert_memory_equal(&again, &disk, sizeof disk);
}

/* Times that do not fit are the last possible ones. */
static void test_times(void **state)
{
    static const struct {
        int64_t seconds;
        uint32_t rest;
        int64_t nanoseconds;
    } cases[] = {
        {0, 1, 1},
        {-1, 999999999, -1},
        {1, 1500000000, 2500000000},
        {INT64_MAX, 4000000000, INT64_MAX},
        {INT64_MIN, 0, INT64_MIN},
        {9223372036, 854775807, INT64_MAX},
        {9223372036, 854775808, INT64_MAX},
        {-9223372037, 145224192, INT64_MIN},
        {-9223372037, 145224191, INT64_MIN},
        {-9223372037, 145224193, INT64_MIN + 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bw_disk_inode_item disk = {
            .mtime = {bw_put64((uint64_t)cases[i].seconds), bw_put32(cases[i].rest)}};
        struct bw_item item = {{256, BW_INODE_ITEM, 0}, (const void *)&disk, sizeof disk};
        struct bw_inode inode;
        assert_true(bw_inode_decode(&item, &inode));
        assert_int_equal(bw_time_nanoseconds(&inode.mtime), cases[i].nanoseconds);
        item.size--;
        assert_false(bw_inode_decode(&item, &inode));
    }
}

static void test_names_of_types(void **state)
{
    assert_string_equal(bw_file_type_name(BW_FILE_SYMLINK), "symlink");
    assert_string_equal(bw_file_type_name(255), "unknown");
    assert_string_equal(bw_key_type_name(BW_INODE_ITEM), "INODE_ITEM");
    assert_string_equal(bw_key_type_name(255), "UNKNOWN");
    struct bw_dir_entry entry = {.location = {256, BW_ROOT_ITEM, 0}, .type = BW_FILE_DIRECTORY};
    assert_string_equal(bw_entry_type_name(&entry), "subvolume");
    entry.location.type = BW_INODE_ITEM;
    assert_string_equal(bw_entry_type_name(&entry), "directory");
}

/* Leaves that pass the check of blocks, but have gaps, overlaps or items with faults. */

enum { LEAF = 4096, HEAD = sizeof(struct bw_disk_header), DATA = LEAF - HEAD };

static struct bw_disk_item *items_of(uint8_t *leaf)
{
    return (void *)(leaf + HEAD);
}

/* A leaf with two inodes. */
static void make_leaf(uint8_t *leaf)
{
    struct bw_disk_inode_item inode = {.link_count = bw_put32(1), .mode = bw_put32(S_IFREG | 0644)};
    struct bw_disk_header *header = (void *)leaf;
    memset(leaf, 0, LEAF);
    header->item_count = bw_put32(2);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t offset = DATA - (i + 1) * (uint32_t)sizeof inode;
        items_of(leaf)[i] = (struct bw_disk_item){{bw_put64(257 + i), BW_INODE_ITEM, bw_put64(0)},
                                                  bw_put32(offset),
                                                  bw_put32(sizeof inode)};
        memcpy(leaf + HEAD + offset, &inode, sizeof inode);
    }
}

static bool is_sound(const uint8_t *leaf)
{
    const struct bw_item_rules rules = {.sectorsize = 4096,
                                        .nodesize = LEAF,
                                        .generation = 100,
                                        .leaf_generation = UINT64_MAX,
                                        .owner = FS};
    const struct bw_node node = bw_node_view(leaf, LEAF);
    return bw_leaf_is_sound(&node, &rules);
}

static void test_sound_leaves(void **state)
{
    uint8_t leaf[LEAF];
    make_leaf(leaf);
    assert_true(is_sound(leaf));
    items_of(leaf)[1].offset = bw_put32(0); /* a gap */
    assert_false(is_sound(leaf));
    make_leaf(leaf);
    items_of(leaf)[1].offset = items_of(leaf)[0].offset; /* one over the other */
    assert_false(is_sound(leaf));
    make_leaf(leaf);
    items_of(leaf)[0].offset = bw_put32(LEAF); /* outside */
    assert_false(is_sound(leaf));
    make_leaf(leaf);
    items_of(leaf)[1].key = items_of(leaf)[0].key; /* the same key twice */
    assert_false(is_sound(leaf));
    make_leaf(leaf);
    items_of(leaf)[0].key.offset = bw_put64(1); /* a fault of an item */
    assert_false(is_sound(leaf));
    make_leaf(leaf);
    items_of(leaf)[1].key.offset = bw_put64(1);
    assert_false(is_sound(leaf));
    ((struct bw_disk_header *)leaf)->item_count = bw_put32(0);
    assert_true(is_sound(leaf));
}

/* A mount accepts every root if the generation is 0. Old items have no second copy of it. */
static void test_roots_without_generation(void **state)
{
    const struct bw_disk_root_item disk = {.generation_v2 = bw_put64(9)};
    struct bw_item item = {{5, BW_ROOT_ITEM, 0}, (const void *)&disk, sizeof disk};
    struct bw_root_item root;
    expect_success(bw_root_item_decode(&item, &root));
    assert_int_equal(root.root.generation, 9);
    item.size = offsetof(struct bw_disk_root_item, generation_v2);
    expect_success(bw_root_item_decode(&item, &root));
    assert_int_equal(root.root.generation, 0);
}

/* The list in a superblock takes chunks until the next does not fit. */
static void test_full_list_of_chunks(void **state)
{
    uint8_t list[BW_SYSTEM_CHUNK_ARRAY_SIZE + 1] = {[BW_SYSTEM_CHUNK_ARRAY_SIZE] = 0xff};
    const uint8_t chunk[80] = {0};
    const struct bw_item item = {{256, BW_CHUNK_ITEM, 1 << 20}, chunk, sizeof chunk};
    const uint32_t each = sizeof(struct bw_disk_key) + sizeof chunk;
    uint32_t size = 0;
    for (uint32_t i = 0; i < BW_SYSTEM_CHUNK_ARRAY_SIZE / each; i++)
        assert_true(bw_system_chunk_append(list, &size, &item));
    assert_int_equal(size, BW_SYSTEM_CHUNK_ARRAY_SIZE / each * each);
    assert_false(bw_system_chunk_append(list, &size, &item));
    assert_int_equal(size, BW_SYSTEM_CHUNK_ARRAY_SIZE / each * each);
    assert_int_equal(list[BW_SYSTEM_CHUNK_ARRAY_SIZE], 0xff);
}

/* The description for other programs is JSON that ends where it began, and has each type. */
static void test_description(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, false);
    bw_json_begin_object(&json, NULL);
    bw_item_types_describe(&json, "items");
    bw_json_end(&json);
    assert_false(text.failed);
    assert_int_equal(json.depth, 0);
    struct bw_json_scan scan = {.next = text.data, .end = text.data + text.length};
    size_t types = 0, inode_items = 0;
    while (bw_json_scan_next(&scan))
        if (scan.kind == BW_JSON_STRING && strcmp(scan.key.data, "type") == 0) {
            types++;
            inode_items += strcmp(scan.text.data, "INODE_ITEM") == 0;
        }
    assert_int_equal(scan.depth, 0);
    assert_int_equal(inode_items, 1);
    assert_true(types > 200); /* with those of members */
    bw_json_scan_free(&scan);
}
