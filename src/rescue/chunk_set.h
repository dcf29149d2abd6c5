/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks that were found, the best first: what they make of addresses, and whether the blocks that
 * were seen on the devices agree with that.
 */
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

/** Adds the item of a chunk, unless it makes no sense, or overlaps one that is there; `*added` says
 * so. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add(struct bw_chunk_set *set, const struct bw_item *item,
                                  bool *added);

/** Adds the system chunks that a superblock has. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add_array(struct bw_chunk_set *set,
                                        const struct bw_superblock *super);

/** Bytes of each stripe of a chunk. */
uint64_t bw_stripe_length(const struct bw_chunk *chunk);

/** What chunks make of the place where a block was seen. */
enum bw_agreement {
    BW_AGREES,    /**< the block belongs there */
    BW_DISAGREES, /**< it belongs elsewhere: it is a copy that lies in a file, or a leftover */
    BW_NO_CHUNK,  /**< no chunk has its address */
};

enum bw_agreement bw_chunk_set_test(const struct bw_chunk_set *set,
                                    const struct bw_device_scan *scan,
                                    const struct bw_block_match *match);

#endif
