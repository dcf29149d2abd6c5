/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Space: how much of the chunks is used, what lies on the devices, and both in sums. It comes from
 * the chunk tree, of which struct bw_device_map is the inverse, and from the block groups, which
 * are in the block group tree or spread over the extent tree. All sizes and offsets are in bytes.
 */
#ifndef BTRFS_WALK_SPACE_H
#define BTRFS_WALK_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/fs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of data that a chunk is for, as btrfs-progs call them: "Data", "Metadata", "System",
 * "Data+Metadata"; "Remap" for the blocks of the remap tree; "unknown". `type` is that of struct
 * bw_chunk_info. */
const char *bw_chunk_type_name(uint64_t type);

/** How many bytes a stripe of a chunk takes of its device. */
uint64_t bw_chunk_stripe_length(const struct bw_chunk_info *chunk);

/** How many stripes of a chunk hold different bytes: the others are copies and parity. */
unsigned bw_chunk_different_stripes(const struct bw_chunk_info *chunk);

/** Block groups, which say how much of each chunk is used. One thread at a time may use it. */
struct bw_block_groups;

/** The block group of a chunk. Source: struct btrfs_block_group_item in the kernel's
 * uapi/linux/btrfs_tree.h. */
struct bw_block_group_info {
    uint64_t logical, length; /**< of its chunk */
    uint64_t used;            /**< bytes of data or tree blocks in it, each counted once */
    uint64_t flags;           /**< BTRFS_BLOCK_GROUP_* */
    uint64_t reserved[4];     /**< zeros: room for more members */
};

/** Makes block groups ready to be looked up; reads nothing. The caller owns `*groups`, which the
 * file system must outlive. */
struct bw_error *bw_block_groups_open(struct bw_fs *fs, struct bw_block_groups **groups);

/**
 * Finds the block group at a logical address. This reads a leaf, or nothing if it is in the same
 * leaf as the one before: look for them in ascending order. BW_ERROR_NOT_FOUND if there is none;
 * BW_ERROR_CORRUPT if it may be lost, which has been reported then.
 */
struct bw_error *bw_block_groups_find(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group);

/** Frees it; NULL is allowed. */
void bw_block_groups_close(struct bw_block_groups *groups);

/** What a range of a device is for. */
enum bw_device_use {
    BW_USE_CHUNK,       /**< a stripe of a chunk lies there */
    BW_USE_UNALLOCATED, /**< nothing */
    BW_USE_RESERVED,    /**< the first MiB, in which nothing is allocated */
    BW_USE_SUPERBLOCK,  /**< a copy of the superblock; only bw_device_map_find() tells it apart */
    BW_USE_OUTSIDE,     /**< it is after the end of the device; likewise */
};

/** A range of a device. */
struct bw_device_range {
    uint64_t devid, offset;
    uint64_t length; /**< offset + length does not overflow */
    enum bw_device_use use;
    /* Of the chunk, with BW_USE_CHUNK. */
    unsigned stripe; /**< which of its stripes it is, counted from 0 */
    unsigned stripe_count;
    uint64_t logical, chunk_length;
    uint64_t type; /**< BTRFS_BLOCK_GROUP_* */
    const char *profile;
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** What lies on all devices, as the chunk tree says. It does not change: any number of threads may
 * use it. */
struct bw_device_map;

/** Reads the chunk tree and sorts it by devices. The caller owns `*map`, which the file system must
 * outlive. What of the chunk tree cannot be read, and stripes that overlap, are reported. */
struct bw_error *bw_device_map_open(struct bw_fs *fs, struct bw_device_map **map);

/** Frees it; NULL is allowed. */
void bw_device_map_close(struct bw_device_map *map);

/** How many ranges there are. */
size_t bw_device_map_count(const struct bw_device_map *map);

/** A range by its number, ascending by devid and offset. They cover each device without gaps from
 * its beginning to its end. */
const struct bw_device_range *bw_device_map_range(const struct bw_device_map *map, size_t number);

/** What lies at an offset of a device. */
struct bw_device_place {
    enum bw_device_use use;
    const struct bw_device_range *range; /**< that holds the offset; NULL: outside of the device */
    uint64_t length;  /**< bytes from the offset on for which all of this holds */
    uint64_t logical; /**< logical address that lies there; of parity, the lowest one of the bytes
                         that it protects */
    unsigned copy;    /**< number of the copy, as for bw_fs_map(); 0: it is none, so `logical` means
                         nothing unless it is parity */
    unsigned parity;  /**< 1: P, 2: Q; 0: it is no parity */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/**
 * Finds what lies at an offset of a device; `length` (at least 1) bounds place->length. Nothing is
 * read but, where that says where data lie, the raid stripe tree. Of stripes that overlap, the one
 * that begins last counts. BW_ERROR_NOT_FOUND if there is no such device.
 */
struct bw_error *bw_device_map_find(const struct bw_device_map *map, uint64_t devid,
                                    uint64_t offset, uint64_t length,
                                    struct bw_device_place *place);

/** All chunks of one type and profile. Raw sizes count each copy and parity. */
struct bw_usage_group {
    uint64_t type; /**< BTRFS_BLOCK_GROUP_*: what they are for, and the profile */
    const char *profile;
    uint64_t size, used, raw_size, raw_used;
    uint64_t chunks;
    bool complete; /**< the block groups of all of them could be read; otherwise `used` is
                      a lower bound */
    uint64_t incomplete_chunks; /**< those in use of which the missing devices leave only a part */
    uint64_t reserved[3];       /**< zeros: room for more members */
};

/** A device and what is allocated on it. */
struct bw_usage_device {
    struct bw_device_info info; /**< its path lives as long as the file system */
    uint64_t allocated;         /**< the sum of `by_group` */
    int64_t unallocated;        /**< negative only if the file system is damaged */
    uint64_t slack;             /**< bytes of its image that the file system does not use */
    const uint64_t *by_group;   /**< for each group, what it has on this device */
    uint64_t incomplete_chunks; /**< of a missing device: chunks in use that are incomplete and have
                                     a stripe on it */
    uint64_t reserved[3];       /**< zeros: room for more members */
};

/**
 * The sums of `btrfs filesystem usage`. The kernel keeps a global reserve in memory, which is not
 * known here: in file systems with mixed block groups, what is free is overestimated by it. The
 * space that cannot be used before a zone is reset is not known either.
 */
struct bw_usage {
    uint64_t device_size;    /**< of all devices but seeds */
    uint64_t allocated;      /**< raw size of all groups */
    int64_t unallocated;     /**< negative with seeds, the groups of which count */
    uint64_t missing, slack; /**< size of the missing devices; slack of all */
    uint64_t used;           /**< raw */
    uint64_t free_estimated; /**< room for data: unused in its chunks, and unallocated space by the
                                present ratio */
    uint64_t free_minimum;   /**< the same, unallocated space by the worst ratio of all groups */
    double data_ratio;       /**< raw size to size; 0 if there are no such chunks */
    double metadata_ratio;   /**< likewise */
    bool several_profiles;   /**< one kind of data has chunks of more than one profile */
    bool complete;           /**< that of all groups */
    const struct bw_usage_group *groups; /**< data, metadata, system; then by profile */
    size_t group_count;
    const struct bw_usage_device *devices; /**< by ascending id */
    size_t device_count;
    uint64_t chunks, incomplete_chunks; /**< of all groups */
    uint64_t reserved[2];               /**< zeros: room for more members */
};

/** Adds up the usage of a file system. What cannot be read is reported. The caller owns `*usage`
 * and frees it with bw_usage_free(). */
struct bw_error *bw_fs_usage(struct bw_fs *fs, struct bw_usage **usage);

/** Frees it; NULL is allowed. */
void bw_usage_free(struct bw_usage *usage);

#ifdef __cplusplus
}
#endif
#endif
