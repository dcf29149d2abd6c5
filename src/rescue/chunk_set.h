/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunks that were found: items of lost trees, extents on devices and block groups (facts), and the
 * set of chunks known so far, against which the places of tree blocks are checked. */
#ifndef BW_RESCUE_CHUNK_SET_H
#define BW_RESCUE_CHUNK_SET_H

#include "rescue/device_scan.h"
#include "rescue/newest_items.h"
#include "xlators/cluster/layout.h"

/** Chunks. All zeros is none. */
struct bw_chunk_set {
    struct bw_layout layout;
    struct bw_newest items; /**< the items of chunks and devices: each `at` and `size` counts */
};

/** Frees the memory. */
void bw_chunk_set_free(struct bw_chunk_set *set);

/** Adds the item of a chunk, unless it is invalid or overlaps a chunk of the set; `*added` is true
 * if it was added. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add(struct bw_chunk_set *set, const struct bw_item *item,
                                  bool *added);

/** Adds the system chunks that a superblock has. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add_array(struct bw_chunk_set *set,
                                        const struct bw_superblock *super);

/** Bytes of each stripe of a chunk. */
uint64_t bw_stripe_length(const struct bw_chunk *chunk);

/** Whether the place where a block was found agrees with the chunks. */
enum bw_agreement {
    BW_AGREES,    /**< the block belongs there */
    BW_DISAGREES, /**< it belongs elsewhere: it is a copy that lies in a file, or a leftover */
    BW_NO_CHUNK,  /**< no known chunk contains its address */
};

enum bw_agreement bw_chunk_set_test(const struct bw_chunk_set *set,
                                    const struct bw_device_scan *scan,
                                    const struct bw_block_match *match);

/* Chunks without a chunk tree. Surviving leaves of the chunk tree have the items of most chunks.
 * The other chunks are derived from the device tree, which maps device extents to chunks, and from
 * block groups, which have length and profile. All of these leaves count only where the chunks
 * known so far put them. */

/** A range of a device that belongs to a chunk. */
struct bw_found_extent {
    uint64_t chunk; /**< its logical address */
    uint64_t devid, offset, length;
};

/** Facts about chunks from the leaves of several trees. All zeros is empty. */
struct bw_chunk_facts {
    struct bw_newest chunks;         /**< items of the chunk tree */
    struct bw_newest devices;        /**< of the device tree: extents of devices */
    struct bw_newest groups;         /**< block groups */
    struct bw_found_extent *extents; /**< of the device tree: ascending by chunk */
    size_t extent_count;
    struct bw_data_place {
        uint64_t address; /**< by its checksum */
        uint64_t offset;
        size_t image;
    } * seen; /**< data that were seen on the devices */
    size_t seen_count, seen_capacity;
};

void bw_chunk_facts_free(struct bw_chunk_facts *facts);

/** Finds the extents in facts->devices. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_facts_extents(struct bw_chunk_facts *facts);

#endif
