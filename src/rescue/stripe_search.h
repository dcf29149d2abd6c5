/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out which extent of which device is which stripe of a chunk, if the chunk item is lost and
 * the profile is striped. The contents decide: the address in a tree block determines its position
 * in the chunk, and so does a checksum of data that matches in exactly one place. */
#ifndef BW_RESCUE_STRIPE_SEARCH_H
#define BW_RESCUE_STRIPE_SEARCH_H

#include "rescue/chunk_set.h"

enum { BW_MOST_STRIPES = 64 }; /**< maximum number of stripes of a chunk to prove */

/** A chunk without an item. */
struct bw_derived_chunk {
    const struct bw_device_scan *scan;
    uint64_t logical, length, type;
    const struct bw_raid_profile *profile;
    const struct bw_found_extent *extents; /**< one per stripe */
    unsigned count;                        /**< number of extents */
    unsigned columns;                      /**< data stripes per row */
    size_t *work;                          /**< remaining budget for all chunks' proofs */
};

/** Sets `order`, which the caller has filled with -1, to the index of the extent for each stripe.
 * False if the order is not proven; then the chunk must not be read. `set` contains the known
 * chunks. */
bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES]);

/* Device extents without a device tree. If the positions of many blocks differ from their computed
 * offsets in a stripe by the same number, the stripe begins there. */

/** Finds extents of a chunk with known logical, length, profile, scan and work. Sets chunk->extents
 * to `found`, chunk->columns, chunk->count to the number of stripes, and `order` to the index of
 * the extent for each stripe, or -1 if it was not found. False if none was found, or if the blocks
 * contradict each other. */
bool bw_found_extents(struct bw_derived_chunk *chunk, const struct bw_chunk_facts *facts,
                      const struct bw_chunk_set *set, struct bw_found_extent found[BW_MOST_STRIPES],
                      int order[BW_MOST_STRIPES]);

/**
 * Reads the devices, including images that are unclaimed, and searches for the data of chunks that
 * have a block group but are not in `set`, by checksums. Sets facts->seen. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set);

#endif
