/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which extent of which device is which stripe of a chunk, where the chunk item is lost and the
 * profile stripes. What is stored tells: the address in a tree block says where in the chunk the
 * block lies, and so does the checksum of data that is right at one place and wrong at the others.
 */
#ifndef BW_RESCUE_STRIPE_ORDER_H
#define BW_RESCUE_STRIPE_ORDER_H

#include "rescue/chunk_tree.h"

enum { BW_MOST_STRIPES = 64 }; /**< of chunks whose order is to be proven */

/** A chunk that has no item. */
struct bw_derived_chunk {
    const struct bw_device_scan *scan;
    uint64_t logical, length, type;
    const struct bw_raid_profile *profile;
    const struct bw_found_extent *extents; /**< one for each stripe */
    unsigned count;                        /**< of them */
    unsigned columns;                      /**< pieces of data in a row */
    size_t *work;                          /**< that is left for the proofs of all chunks */
};

/** Sets which extent is which stripe, all of which are -1 before. False if that is not proven: then
 * nothing may be read from the chunk. `set` has the chunks that are known. */
bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES]);

#endif
