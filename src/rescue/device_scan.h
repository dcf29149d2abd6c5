/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The physical scan: reads devices, for tree blocks wherever they lie. It is used only before
 * chunks are known: a block found this way may be part of a file, such as an image of another file
 * system, or of this one. A block is proven if the chunks map its address to the place where it was
 * found; chunk_set.c tests that. */
#ifndef BW_RESCUE_DEVICE_SCAN_H
#define BW_RESCUE_DEVICE_SCAN_H

#include "fs/image.h"
#include "history/block_index.h"

/** A tree block on a device. */
struct bw_block_match {
    uint64_t bytenr; /**< the logical address in its header */
    uint64_t generation;
    uint64_t offset; /**< where it lies on the device */
    uint32_t owner;  /**< number of its tree, as in struct bw_found_block */
    uint16_t image;  /**< index of the device's image */
    uint8_t level;
    bool has_groups; /**< it is a leaf with block groups */
};

static_assert(sizeof(struct bw_block_match) == 32, "what a block costs");

/** A range of a device that is to be read. */
struct bw_device_range {
    size_t image;
    uint64_t offset, length;
};

/** Arguments and results of a scan. All members but the first begin as zeros; it may be run several
 * times. */
struct bw_device_scan {
    const struct bw_fs *fs; /**< its `searched` receives the progress */
    const struct bw_image *images;
    size_t image_count;
    const struct bw_found_identity *identity;
    uint32_t sectorsize;            /**< bytes of a checksum of data */
    struct bw_block_match *matches; /**< result, in no order; freed with free() */
    size_t count, capacity;
    bool is_whole;                /**< the devices were read from beginning to end */
    struct bw_found_index owners; /**< to be started with bw_found_init(): numbers of trees only */
};

/** The image of a device; image_count if it has none. */
size_t bw_image_of_devid(const struct bw_device_scan *scan, uint64_t devid);

/** Reads ranges of the devices, which may be anywhere and overlap: they are sorted, and no place is
 * read twice. Skips unreadable places. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_device_scan_run(struct bw_device_scan *scan, struct bw_device_range *ranges,
                                    size_t count);

/** The owner tree in the header of a block. */
static inline uint64_t bw_block_match_owner(const struct bw_device_scan *scan,
                                            const struct bw_block_match *match)
{
    return scan->owners.owners[match->owner];
}

/** Reads a block again; false if it no longer exists. */
bool bw_device_scan_read(const struct bw_device_scan *scan, const struct bw_block_match *match,
                         uint8_t *buffer);

/** Reads bytes of a device. */
struct bw_error *bw_device_scan_bytes(const struct bw_device_scan *scan, size_t image,
                                      uint64_t offset, uint32_t length, uint8_t *buffer);

/** Whether the sector at a place has a checksum. One whose bytes are all equal never does: it lies
 * in many places. */
bool bw_device_scan_has(const struct bw_device_scan *scan, size_t image, uint64_t offset,
                        const uint8_t *checksum);

#endif
