/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data that have checksums, in the order of their addresses. */
#ifndef BW_CHECK_SUMMED_H
#define BW_CHECK_SUMMED_H

#include "check/check.h"

/** A range of data that lies in one chunk. */
struct bw_summed {
    const struct bw_checked_chunk *chunk;
    uint64_t logical, length; /**< multiples of the sector size */
    const uint8_t *checksums; /**< one for each sector, a view that ends with the call */
};

/** Receives a range. An error ends the reading. */
typedef struct bw_error *bw_summed_taker(void *context, const struct bw_summed *range);

/**
 * Hands out the ranges that an EXTENT_CSUM item is about, from `*done` on, which then moves to its
 * end; nothing for any other item. What lies outside of all chunks is left out.
 */
struct bw_error *bw_summed_item(const struct bw_check *check, const struct bw_item *item,
                                uint64_t *done, bw_summed_taker *take, void *context);

/** Hands out the ranges of all checksum trees, of each in ascending order and without overlap. What
 * is lost of the trees is left out. */
struct bw_error *bw_summed_scan(struct bw_check *check, bw_summed_taker *take, void *context);

#endif
