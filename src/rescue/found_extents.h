/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extents of devices that no device tree tells of. What is stored tells: if the places of many
 * blocks differ from what their addresses make of a stripe by the same number, that is where the
 * stripe begins.
 */
#ifndef BW_RESCUE_FOUND_EXTENTS_H
#define BW_RESCUE_FOUND_EXTENTS_H

#include "rescue/stripe_order.h"

/**
 * Finds extents of a chunk of which logical, length, profile, scan and work are set. Sets its
 * `extents`, to those in `found`, `columns`, and `count`, the number of stripes; and which extent
 * is which stripe: -1 if that was not found. False if none was, or if what was seen contradicts.
 */
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
