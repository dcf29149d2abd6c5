/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunk items: which ranges of which devices a range of logical addresses lies on. The same
 * structure is in the chunk tree and, for the system chunks, in the superblock.
 */
#ifndef BW_ONDISK_CHUNK_H
#define BW_ONDISK_CHUNK_H

#include "btrfs-walk/error.h"
#include "ondisk/disk.h"
#include "ondisk/node.h"

/** A RAID profile: how the stripes of a chunk share data. Source: struct btrfs_raid_attr in
 * fs/btrfs/volumes.h. */
struct bw_raid_profile {
    const char *name;
    uint64_t flag; /**< BW_GROUP_* bit; 0 for single */
    uint16_t minimum_stripes, maximum_stripes;
    uint8_t copies;         /**< stripes that hold the same bytes; 0: all of them */
    uint8_t parity_stripes; /**< 1 for RAID5, 2 for RAID6 */
    bool striped;           /**< stripe-length pieces rotate over the stripes */
};

/** A validated chunk in host byte order, without its stripes. */
struct bw_chunk {
    uint64_t logical; /**< first logical address; logical + length does not overflow */
    uint64_t length;  /**< bytes; not 0 */
    uint64_t type;    /**< BW_GROUP_* bits */
    const struct bw_raid_profile *profile;
    uint16_t stripe_count;                /**< at least the profile's minimum */
    const struct bw_disk_stripe *stripes; /**< view on the item: stripe_count of them */
};

/** The least number of devices for a chunk of a profile. */
static inline unsigned bw_profile_devices(const struct bw_raid_profile *profile)
{
    return profile->flag & BW_GROUP_DUP ? 1 : profile->minimum_stripes;
}

/** Looks up the profile of block group flags; NULL if more than one profile bit is set. */
const struct bw_raid_profile *bw_raid_profile_of(uint64_t flags);

/**
 * Decodes and validates the chunk item of `size` bytes at `data`. The stripes stay a view on
 * `data`. BW_ERROR_CORRUPT if a number is invalid; then nothing may be read through the chunk.
 */
struct bw_error *bw_chunk_decode(uint64_t logical, const uint8_t *data, size_t size,
                                 struct bw_chunk *chunk);

/** Whether the whole chunk of the item at `data` has been moved elsewhere, so it has no stripes. */
bool bw_chunk_is_remapped_away(const uint8_t *data, size_t size);

/** Bytes that the chunk item at `data` takes, by its stripe count; 0 if `size` is less than that.
 */
size_t bw_chunk_item_size(const uint8_t *data, size_t size);

/** The next chunk of a superblock's list: key, chunk item, key, chunk item, ... `*at` is 0 before
 * the first one. False at the end, and if the rest is cut off. */
bool bw_system_chunk_item(const uint8_t *list, size_t size, size_t *at, struct bw_item *item);

/** Appends a chunk to such a list of BW_SYSTEM_CHUNK_ARRAY_SIZE bytes. False: no room. */
bool bw_system_chunk_append(uint8_t *list, uint32_t *size, const struct bw_item *item);

/** Whether the stripe tree, if the file system has one, records the place of a chunk's data.
 * Source: btrfs_need_stripe_tree_update() in the kernel's fs/btrfs/raid-stripe-tree.h. */
bool bw_chunk_in_stripe_tree(uint64_t type);

/** Decodes and checks a RAID_STRIPE item. BW_ERROR_CORRUPT if a number is invalid; then `extent` is
 * unchanged. */
struct bw_error *bw_stripe_extent_decode(const struct bw_item *item,
                                         struct bw_stripe_extent *extent);

/** Decodes and checks a REMAP item. BW_ERROR_CORRUPT if it is cut off or a range ends beyond 2^64;
 * then `range` is unchanged. */
struct bw_error *bw_moved_range_decode(const struct bw_item *item, struct bw_moved_range *range);

/** Compares types of block groups for sorting: data before metadata, system and the rest. */
int bw_group_type_compare(uint64_t left, uint64_t right);

#endif
