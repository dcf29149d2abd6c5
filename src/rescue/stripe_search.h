/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which extent of which device is which stripe of a chunk, where the chunk item is lost and the
 * profile stripes. The contents decide. The address in a tree block gives the position of the block
 * in the chunk. So does a checksum of data that matches at one place and nowhere else. */
#ifndef BW_RESCUE_STRIPE_SEARCH_H
#define BW_RESCUE_STRIPE_SEARCH_H

#include "rescue/chunk_set.h"

enum { BW_MOST_STRIPES = 64 }; /**< of chunks whose order is to be proven */

/** A chunk that has no item. */
struct bw_derived_chunk {
    const struct bw_device_scan *scan;
    uint64_t logical, length, type;
    const struct bw_raid_profile *profile;
    const struct bw_found_extent *extents; /**< one for each stripe */
    unsigned count;                        /**< of them */
    unsigned columns;                      /**< pieces of data in a row */
    size_t *work;                          /**< remaining budget for the proofs of all chunks */
};

/** Sets which extent is which stripe, all of which are -1 before. False if that is not proven: then
 * nothing may be read from the chunk. `set` has the chunks that are known. */
bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES]);

/* Extents of devices that no device tree lists. If the places of many blocks differ from their
 * computed offsets in a stripe by the same number, the stripe begins there. */

/** Finds extents of a chunk of which logical, length, profile, scan and work are set. Sets its
 * `extents`, to those in `found`, `columns`, and `count`, the number of stripes; and which extent
 * is which stripe: -1 if that was not found. False if none was found, or if the blocks found
 * contradict each other. */
bool bw_found_extents(struct bw_derived_chunk *chunk, const struct bw_chunk_facts *facts,
                      const struct bw_chunk_set *set, struct bw_found_extent found[BW_MOST_STRIPES],
                      int order[BW_MOST_STRIPES]);

/**
 * Reads the devices, also images that are still unclaimed, for the data of chunks that have a block
 * group but are not in `set`: sectors with their checksums. Sets facts->seen. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set);

#endif
