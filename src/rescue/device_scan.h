/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The physical scan: reads devices and finds tree blocks at any position. It is used only while the
 * chunks are unknown. A block found this way may be part of a file, such as an image of another or
 * the same file system. It is proven only if the chunks map its address to its position, which
 * chunk_set.c tests. */
#ifndef BW_RESCUE_DEVICE_SCAN_H
#define BW_RESCUE_DEVICE_SCAN_H

#include "base/vector.h"
#include "fs/image.h"
#include "history/block_index.h"

/** A tree block on a device. */
struct bw_block_match {
    uint64_t bytenr; /**< the logical address in its header */
    uint64_t generation;
    uint64_t offset; /**< its position on the device */
    uint32_t owner;  /**< index of its tree, as in struct bw_found_block */
    uint16_t image;  /**< index of the device's image */
    uint8_t level : 3;
    uint8_t has_groups : 1; /**< a leaf that contains block groups */
    uint8_t uuid : 4; /**< number of its chunk_tree_uuid in bw_device_scan.uuids; BW_SCAN_UUIDS:
                       * one that has no room there */
};

#define BW_MOST_UUID  15u
#define BW_SCAN_UUIDS BW_MOST_UUID

static_assert(sizeof(struct bw_block_match) == 32, "what a block costs");

/** A range of a device to read. */
struct bw_device_range {
    size_t image;
    uint64_t offset, length;
};

BW_VECTOR(bw_block_matches, struct bw_block_match);

/** Arguments and results of a scan, which may be run several times. bw_device_scan_begin() fills it
 * for an open file system. */
struct bw_device_scan {
    const struct bw_fs *fs; /**< `fs->searched` receives the progress */
    const struct bw_image *images;
    size_t image_count;
    struct bw_found_identity identity;
    uint32_t sectorsize;                        /**< number of data bytes per checksum */
    struct bw_block_matches matches;            /**< result, unsorted */
    uint8_t uuids[BW_SCAN_UUIDS][BW_UUID_SIZE]; /**< result: chunk_tree_uuids of the blocks */
    size_t uuid_count;
    bool is_whole;                /**< the devices were read completely */
    struct bw_found_index owners; /**< only for indices of trees; initialize with bw_found_init() */
};

/** Begins a scan for the blocks of an open file system. Free it even if this fails. */
struct bw_error *bw_device_scan_begin(struct bw_device_scan *scan, const struct bw_fs *fs);

/** Frees what it has found; identity.ids belongs to the caller. */
void bw_device_scan_free(struct bw_device_scan *scan);

/** The index of a device's image; image_count if none exists. */
size_t bw_image_of_devid(const struct bw_device_scan *scan, uint64_t devid);

/** Reads ranges of the devices, in any order; overlapping ranges are read only once. Skips
 * unreadable sectors. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_device_scan_run(struct bw_device_scan *scan, struct bw_device_range *ranges,
                                    size_t count);

/** The number of blocks that the superblock names as roots. */
size_t bw_device_scan_count_roots(const struct bw_device_scan *scan,
                                  const struct bw_superblock *super);

/** The chunk_tree_uuid of the blocks that the superblock names as roots; that of all blocks if they
 * have the same; NULL if it is unknown. */
const uint8_t *bw_device_scan_uuid(const struct bw_device_scan *scan,
                                   const struct bw_superblock *super);

/** Drops the blocks that have another chunk_tree_uuid. */
void bw_device_scan_keep(struct bw_device_scan *scan, const uint8_t *uuid);

/** The id of the tree in the header of a block. */
static inline uint64_t bw_block_match_owner(const struct bw_device_scan *scan,
                                            const struct bw_block_match *match)
{
    return scan->owners.owners.items[match->owner];
}

/** Reads a block again, into a buffer of identity.nodesize bytes; false if it has changed. */
bool bw_device_scan_read(const struct bw_device_scan *scan, const struct bw_block_match *match,
                         uint8_t *buffer, struct bw_node *block);

/** The next leaf of a tree that can be read, where `*at` is 0 before the first; NULL at the end. */
const struct bw_block_match *bw_device_scan_leaf(const struct bw_device_scan *scan, size_t *at,
                                                 uint64_t tree, uint8_t *buffer,
                                                 struct bw_node *leaf);

/** Reads bytes of a device. */
struct bw_error *bw_device_scan_bytes(const struct bw_device_scan *scan, size_t image,
                                      uint64_t offset, uint32_t length, uint8_t *buffer);

/** Whether the sector at an offset has a checksum of this type. False if all its bytes are equal,
 * because such sectors occur in many places. */
bool bw_device_scan_has(const struct bw_device_scan *scan, size_t image, uint64_t offset,
                        enum bw_checksum_type type, const uint8_t *checksum);

#endif
