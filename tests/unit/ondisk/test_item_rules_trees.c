/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/ondisk/tree_item_rules.c, but for roots and space: for each rule an item that breaks it,
 * and one that just does not. */
#include "support/item_cases.h"

enum { GROUP = 1 << 23 };

static const struct good_item chunk = {
    {256, BW_CHUNK_ITEM, GROUP},
    sizeof(struct bw_disk_chunk) + 2 * sizeof(struct bw_disk_stripe),
    BW_CHUNK_TREE,
    {SET(chunk, length, GROUP), SET(chunk, owner, 2), SET(chunk, stripe_length, BW_STRIPE_LENGTH),
     SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID1), SET(chunk, sector_size, SECTOR),
     SET(chunk, stripe_count, 2), SET(chunk, sub_stripes, 1), SET_AT(48, stripe, devid, 1),
     SET_AT(80, stripe, devid, 2)}};

static void test_chunks(void **state)
{
    static const struct item_case cases[] = {
        {.good = &chunk},
        {.good = &chunk,
         .key = {257, BW_CHUNK_ITEM, GROUP},
         BAD(chunk_item, "chunk with the object id 257")},
        {.good = &chunk, .longer = -65, BAD(chunk_item, "size is 47, less than 48")},
        {.good = &chunk, .longer = -1, BAD(chunk_item, "size is 111, not 112, of 2 stripes")},
        {.good = &chunk, .longer = 32, BAD(chunk_item, "size is 144, not 112, of 2 stripes")},
        {.good = &chunk,
         .longer = -64,
         .changes = {SET(chunk, stripe_count, 0)},
         BAD(chunk_item, "invalid stripe count 0")},
        {.good = &chunk,
         .longer = -64,
         .changes = {SET(chunk, stripe_count, 0),
                     SET(chunk, type, BW_GROUP_DATA | BW_GROUP_REMAPPED)},
         .features = BW_INCOMPAT_REMAP_TREE},
        {.good = &chunk,
         .key = {256, BW_CHUNK_ITEM, 1},
         BAD(chunk_item, "address 1 is not aligned to 4096")},
        {.good = &chunk, .changes = {SET(chunk, length, 0)}, BAD(chunk_item, "invalid length 0")},
        {.good = &chunk,
         .changes = {SET(chunk, length, 1)},
         BAD(chunk_item, "length 1 is not aligned to 4096")},
        {.good = &chunk,
         .changes = {SET(chunk, length, UINT64_C(0xffffffff) << 16)},
         BAD(chunk_item, "length 281474976645120")},
        {.good = &chunk, .changes = {SET(chunk, length, (UINT64_C(0xffffffff) << 16) - SECTOR)}},
        {.good = &chunk,
         .key = {256, BW_CHUNK_ITEM, -(uint64_t)GROUP},
         BAD(chunk_item, "invalid length 8388608")},
        {.good = &chunk,
         .changes = {SET(chunk, sector_size, 512)},
         BAD(chunk_item, "sector size 512")},
        {.good = &chunk, .changes = {SET(chunk, owner, 3)}, BAD(chunk_item, "owner 3")},
        {.good = &chunk,
         .changes = {SET(chunk, stripe_length, 4096)},
         BAD(chunk_item, "invalid stripe length 4096")},
        {.good = &chunk,
         .changes = {SET(chunk, type, BW_GROUP_DATA)},
         BAD(chunk_item, "invalid stripe count 2")},
        {.good = &chunk,
         .changes = {SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID1C3)},
         BAD(chunk_item, "invalid stripe count 2")},
        {.good = &chunk,
         .changes = {SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID6)},
         BAD(chunk_item, "invalid stripe count 2")},
        {.good = &chunk, .changes = {SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID5)}},
        {.good = &chunk,
         .changes = {SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID10)},
         BAD(chunk_item, "invalid sub stripes 1")},
        {.good = &chunk,
         .changes = {SET(chunk, type, BW_GROUP_DATA | BW_GROUP_RAID10),
                     SET(chunk, sub_stripes, 2)}},
        {.good = &chunk, .changes = {SET(chunk, type, 7)}, BAD(chunk_item, "type 0x7")},
        {.good = &chunk,
         .changes = {SET(chunk, type, 0x31)},
         BAD(chunk_item, "more than one profile in the type 0x31")},
        {.good = &chunk,
         .changes = {SET(chunk, type, UINT64_C(1) << 48 | 0x11)},
         BAD(chunk_item, "unknown bits 0x1000000000000 in the type")},
        {.good = &chunk,
         .changes = {SET(chunk, type, 0x15)},
         BAD(chunk_item, "data and metadata without the feature mixed-groups")},
        {.good = &chunk, .changes = {SET(chunk, type, 0x15)}, .features = BW_INCOMPAT_MIXED_GROUPS},
        {.good = &chunk,
         .owner = BW_DEVICE_TREE,
         BAD(item_type, "items of type CHUNK_ITEM do not belong in tree 4")},
    };
    expect_verdicts(cases, COUNT(cases));
}

static const struct good_item device = {{1, BW_DEVICE_ITEM, 3},
                                        sizeof(struct bw_disk_device_item),
                                        BW_CHUNK_TREE,
                                        {SET(device_item, devid, 3),
                                         SET(device_item, total_bytes, 7),
                                         SET(device_item, bytes_used, 7)}};
static const struct good_item piece = {
    {1, BW_DEVICE_EXTENT, GROUP},
    sizeof(struct bw_disk_device_extent),
    BW_DEVICE_TREE,
    {SET(device_extent, chunk_tree, 3), SET(device_extent, chunk_objectid, 256),
     SET(device_extent, chunk_offset, GROUP), SET(device_extent, length, GROUP)}};
static const struct good_item errors = {{0, BW_PERSISTENT_ITEM, 1}, 40, BW_DEVICE_TREE, {{0}}};
static const struct good_item replace = {
    {0, BW_DEVICE_REPLACE, 0},
    sizeof(struct bw_disk_device_replace),
    BW_DEVICE_TREE,
    {SET(device_replace, state, 4), SET(device_replace, reading_mode, 1)}};

static void test_devices(void **state)
{
    static const struct item_case cases[] = {
        {.good = &device},
        {.good = &device, .longer = -1, BAD(device_item, "size is 97, not 98")},
        {.good = &device,
         .key = {2, BW_DEVICE_ITEM, 3},
         BAD(device_item, "device with the object id 2")},
        {.good = &device, .key = {1, BW_DEVICE_ITEM, 4}, BAD(device_item, "devid 3")},
        {.good = &device,
         .changes = {SET(device_item, bytes_used, 8)},
         BAD(device_item, "bytes_used 8 of 7")},
        {.good = &piece},
        {.good = &piece, .longer = 1, BAD(device_extent_item, "size is 49, not 48")},
        {.good = &piece,
         .changes = {SET(device_extent, chunk_tree, 2)},
         BAD(device_extent_item, "chunk tree 2")},
        {.good = &piece,
         .changes = {SET(device_extent, chunk_objectid, 2)},
         BAD(device_extent_item, "chunk objectid 2")},
        {.good = &piece,
         .key = {1, BW_DEVICE_EXTENT, 1},
         BAD(device_extent_item, "offset on the device 1 is not aligned to 4096")},
        {.good = &piece,
         .changes = {SET(device_extent, chunk_offset, 1)},
         BAD(device_extent_item, "chunk offset 1 is not aligned to 4096")},
        {.good = &piece,
         .changes = {SET(device_extent, length, 1)},
         BAD(device_extent_item, "length 1 is not aligned to 4096")},
        {.good = &piece,
         .changes = {SET(device_extent, length, 0)},
         BAD(device_extent_item, "length 0")},
        {.good = &piece, .previous = &piece, .previous_key = {1, BW_DEVICE_EXTENT, 0}},
        {.good = &piece,
         .previous = &piece,
         .previous_key = {1, BW_DEVICE_EXTENT, SECTOR},
         BAD(items_overlap, "the previous device extent has 8388608 bytes at 4096")},
        {.good = &piece, .previous = &piece, .previous_key = {2, BW_DEVICE_EXTENT, SECTOR}},
        {.good = &piece, .previous = &errors, .previous_key = {1, BW_DEVICE_EXTENT, SECTOR}},
        {.good = &piece, .previous = &piece, .previous_key = {1, BW_PERSISTENT_ITEM, SECTOR}},
        {.good = &errors},
        {.good = &errors, .longer = 8},
        {.good = &errors, .longer = -40, BAD(status_item, "size is 0")},
        {.good = &errors, .longer = 1, BAD(status_item, "size is 41")},
        {.good = &replace},
        {.good = &replace, .longer = -1, BAD(status_item, "size is 71, not 72")},
        {.good = &replace,
         .key = {1, BW_DEVICE_REPLACE, 0},
         BAD(status_item, "no replacement has this key")},
        {.good = &replace,
         .key = {0, BW_DEVICE_REPLACE, 1},
         BAD(status_item, "no replacement has this key")},
        {.good = &replace, .changes = {SET(device_replace, state, 5)}, BAD(status_item, "state 5")},
        {.good = &replace,
         .changes = {SET(device_replace, reading_mode, 2)},
         BAD(status_item, "reading mode 2")},
    };
    expect_verdicts(cases, COUNT(cases));
}

static const struct good_item uuid = {
    {1, BW_UUID_SUBVOLUME, 2}, 16, BW_UUID_TREE, {{0, 8, 256, NULL}, {8, 8, 5, NULL}}};
static const struct good_item info = {
    {GROUP, BW_FREE_SPACE_INFO, GROUP},
    sizeof(struct bw_disk_free_space_info),
    BW_FREE_SPACE_TREE,
    {SET(free_space_info, extent_count, 2048), SET(free_space_info, flags, 1)}};
static const struct good_item space = {
    {GROUP, BW_FREE_SPACE_EXTENT, SECTOR}, 0, BW_FREE_SPACE_TREE, {{0}}};
static const struct good_item bitmap = {
    {GROUP, BW_FREE_SPACE_BITMAP, 9 * SECTOR}, 2, BW_FREE_SPACE_TREE, {{0}}};
static const struct good_item cache = {
    {BW_FREE_SPACE_OBJECT, BW_UNTYPED, GROUP},
    sizeof(struct bw_disk_free_space_header),
    BW_ROOT_TREE,
    {{0, 8, 256, NULL}, BYTE(8, BW_INODE_ITEM), SET(free_space_header, generation, 101)}};

static void test_space(void **state)
{
    static const struct item_case cases[] = {
        {.good = &uuid},
        {.good = &uuid, .key = {1, BW_UUID_RECEIVED, 2}},
        {.good = &uuid, .longer = -16, BAD(uuid_item, "size is 0, less than 8")},
        {.good = &uuid, .longer = 1, BAD(uuid_item, "size is 17, not a multiple of 8")},
        {.good = &uuid,
         .changes = {{8, 8, 255, NULL}},
         BAD(uuid_item, "no subvolume has the id 255")},
        {.good = &info},
        {.good = &info, .longer = 1, BAD(free_space_item, "size is 9, not 8")},
        {.good = &info,
         .changes = {SET(free_space_info, extent_count, 2049)},
         BAD(free_space_item, "2049 extents in 2048 sectors")},
        {.good = &info,
         .changes = {SET(free_space_info, flags, 2)},
         BAD(free_space_item, "unknown flags 0x2")},
        {.good = &info,
         .key = {1, BW_FREE_SPACE_INFO, GROUP},
         BAD(free_space_item, "address 1 is not aligned to 4096")},
        {.good = &info,
         .key = {GROUP, BW_FREE_SPACE_INFO, 1},
         BAD(free_space_item, "length 1 is not aligned to 4096")},
        {.good = &space},
        {.good = &space, .longer = 1, BAD(free_space_item, "size is 1, not 0")},
        {.good = &space, .key = {GROUP, BW_FREE_SPACE_EXTENT, 0}, BAD(free_space_item, "length 0")},
        {.good = &space,
         .key = {-(uint64_t)SECTOR, BW_FREE_SPACE_EXTENT, SECTOR},
         BAD(free_space_item, "length 4096")},
        {.good = &bitmap},
        {.good = &bitmap, .key = {GROUP, BW_FREE_SPACE_BITMAP, 16 * SECTOR}},
        {.good = &bitmap,
         .key = {GROUP, BW_FREE_SPACE_BITMAP, 17 * SECTOR},
         BAD(free_space_item, "size is 2, not that of 17 bits")},
        {.good = &bitmap,
         .key = {GROUP, BW_FREE_SPACE_BITMAP, 8 * SECTOR},
         BAD(free_space_item, "size is 2, not that of 8 bits")},
        {.good = &cache},
        {.good = &cache, .longer = -1, BAD(free_space_item, "size is 40, not 41")},
        {.good = &cache, .changes = {{0, 8, 5, NULL}}, BAD(free_space_item, "points to (5 1 0)")},
        {.good = &cache, .changes = {BYTE(8, 2)}, BAD(free_space_item, "points to (256 2 0)")},
        {.good = &cache, .changes = {{9, 8, 1, NULL}}, BAD(free_space_item, "points to (256 1 1)")},
        {.good = &cache,
         .changes = {SET(free_space_header, generation, 102)},
         BAD(free_space_item, "generation 102 is later than the superblock's, 100")},
    };
    expect_verdicts(cases, COUNT(cases));
}

#define MOVES   BW_INCOMPAT_REMAP_TREE
#define STRIPES BW_INCOMPAT_RAID_STRIPE_TREE

static const struct good_item status = {
    {0, BW_QGROUP_STATUS, 0},
    sizeof(struct bw_disk_qgroup_status),
    BW_QUOTA_TREE,
    {SET(qgroup_status, version, 1), SET(qgroup_status, flags, 15)}};
static const struct good_item count = {
    {0, BW_QGROUP_INFO, 257}, sizeof(struct bw_disk_qgroup_info), BW_QUOTA_TREE, {{0}}};
static const struct good_item limit = {{0, BW_QGROUP_LIMIT, 257},
                                       sizeof(struct bw_disk_qgroup_limit),
                                       BW_QUOTA_TREE,
                                       {SET(qgroup_limit, flags, 63)}};
static const struct good_item relation = {
    {257, BW_QGROUP_RELATION, UINT64_C(1) << 48}, 0, BW_QUOTA_TREE, {{0}}};
static const struct good_item stripes = {
    {GROUP, BW_RAID_STRIPE, SECTOR}, 32, BW_RAID_STRIPE_TREE, {{0, 8, 1, NULL}, {16, 8, 2, NULL}}};
static const struct good_item moved = {
    {GROUP, BW_REMAP, SECTOR}, 8, BW_REMAP_TREE, {{0, 8, GROUP, NULL}}};
static const struct good_item balance = {
    {BW_BALANCE, BW_TEMPORARY_ITEM, 0}, sizeof(struct bw_disk_balance), BW_ROOT_TREE, {{0}}};

static void test_quotas_and_moves(void **state)
{
    static const struct item_case cases[] = {
        {.good = &status},
        {.good = &status, .longer = -8},
        {.good = &status, .longer = -9, BAD(quota_item, "size is 31, not 32 to 40")},
        {.good = &status,
         .changes = {SET(qgroup_status, version, 2)},
         BAD(quota_item, "version 2")},
        {.good = &status,
         .changes = {SET(qgroup_status, flags, 16)},
         BAD(quota_item, "unknown flags 0x10")},
        {.good = &status,
         .changes = {SET(qgroup_status, generation, 102)},
         BAD(quota_item, "generation 102 is later than the superblock's, 100")},
        {.good = &status,
         .key = {0, BW_QGROUP_STATUS, 1},
         BAD(quota_item, "no state of quotas has this key")},
        {.good = &status,
         .key = {1, BW_QGROUP_STATUS, 0},
         BAD(quota_item, "no quota group has this key")},
        {.good = &count},
        {.good = &limit},
        {.good = &limit,
         .changes = {SET(qgroup_limit, flags, 64)},
         BAD(quota_limit_unset,
             "flags 0x40: mkfs.btrfs left them uninitialized; no limit is in force")},
        {.good = &limit,
         .changes = {SET(qgroup_limit, flags, 65)},
         BAD(quota_limit_flags, "flags 0x41: those of known limits, 0x1, are in force, but may be "
                                "uninitialized, too")},
        {.good = &limit,
         .key = {257, BW_QGROUP_LIMIT, 257},
         BAD(quota_item, "no quota group has this key")},
        {.good = &relation},
        {.good = &relation, .longer = 1, BAD(quota_item, "size is 1, not 0")},
        {.good = &relation,
         .key = {257, BW_QGROUP_RELATION, 258},
         BAD(quota_item, "relation between quota groups of one level")},
        {.good = &stripes, .features = STRIPES},
        {.good = &stripes, .features = STRIPES, .longer = 8},
        {.good = &stripes, BAD(stripe_item, "RAID_STRIPE without the feature raid-stripe-tree")},
        {.good = &stripes,
         .features = STRIPES,
         .longer = -17,
         BAD(stripe_item, "size is 15, less than 16")},
        {.good = &stripes, .features = STRIPES, .longer = 1, BAD(stripe_item, "invalid size 33")},
        {.good = &stripes,
         .features = STRIPES,
         .key = {1, BW_RAID_STRIPE, SECTOR},
         BAD(stripe_item, "address 1 is not aligned to 4096")},
        {.good = &stripes,
         .features = STRIPES,
         .key = {GROUP, BW_RAID_STRIPE, 1},
         BAD(stripe_item, "length 1 is not aligned to 4096")},
        {.good = &stripes,
         .features = STRIPES,
         .key = {GROUP, BW_RAID_STRIPE, 0},
         BAD(stripe_item, "invalid length 0")},
        {.good = &moved, .features = MOVES},
        {.good = &moved, .features = MOVES, .key = {GROUP, BW_REMAP_BACKREF, SECTOR}},
        {.good = &moved,
         .features = MOVES,
         .key = {GROUP, BW_IDENTITY_REMAP, SECTOR},
         .longer = -8},
        {.good = &moved,
         .features = MOVES,
         .key = {GROUP, BW_IDENTITY_REMAP, SECTOR},
         BAD(remap_item, "size is 8, not 0")},
        {.good = &moved, BAD(remap_item, "REMAP without the feature remap-tree")},
        {.good = &moved,
         .features = MOVES,
         .key = {GROUP, BW_REMAP, 0},
         BAD(remap_item, "length 0")},
        {.good = &moved,
         .features = MOVES,
         .key = {1, BW_REMAP, SECTOR},
         BAD(remap_item, "address 1 is not aligned to 4096")},
        {.good = &moved,
         .features = MOVES,
         .key = {GROUP, BW_REMAP, 1},
         BAD(remap_item, "length 1 is not aligned to 4096")},
        {.good = &moved,
         .features = MOVES,
         .key = {-(uint64_t)SECTOR, BW_REMAP, SECTOR},
         BAD(remap_item, "length 4096")},
        {.good = &moved,
         .features = MOVES,
         .changes = {{0, 8, 1, NULL}},
         BAD(remap_item, "other address 1 is not aligned to 4096")},
        {.good = &balance},
        {.good = &balance, .longer = -1, BAD(status_item, "size is 447, not 448")},
        {.good = &balance,
         .longer = -1,
         .key = {BW_CSUM_CHANGE, BW_TEMPORARY_ITEM, 0},
         .owner = BW_CSUM_TREE},
    };
    expect_verdicts(cases, COUNT(cases));
}
