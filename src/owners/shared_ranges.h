/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of which each byte counts once, however many of them hold it. */
#ifndef BW_OWNERS_SHARED_RANGES_H
#define BW_OWNERS_SHARED_RANGES_H

#include "btrfs-walk/xlator.h"

/** The ranges; all zeros is none. */
struct bw_shared_ranges {
    struct bw_range *ranges;
    size_t count, capacity;
};

/** Adds a range. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_shared_ranges_add(struct bw_shared_ranges *ranges,
                                      const struct bw_range *range);

/** How many bytes are in at least one of them. */
uint64_t bw_shared_ranges_total(struct bw_shared_ranges *ranges);

/** Frees the memory, and leaves none. */
void bw_shared_ranges_free(struct bw_shared_ranges *ranges);

#endif
