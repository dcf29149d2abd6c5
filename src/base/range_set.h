/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of numbers as ranges: sorted, disjoint, and not adjacent. Ranges added in ascending order
 * are sorted and joined at once; otherwise bw_range_set_join() does that before the first search.
 */
#ifndef BW_BASE_RANGE_SET_H
#define BW_BASE_RANGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"

struct bw_span {
    uint64_t start, end; /**< the end is exclusive */
};

BW_VECTOR(bw_spans, struct bw_span);

/** An empty set is all zeros. */
struct bw_range_set {
    struct bw_spans ranges;
    size_t joined; /**< how many of them are sorted and joined, from the first on */
};

/** Frees the memory and leaves an empty set. */
void bw_range_set_free(struct bw_range_set *set);

/** Adds the numbers from `start` to before `end`. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_range_set_insert(struct bw_range_set *set, uint64_t start, uint64_t end)
    __attribute__((warn_unused_result));

/** Sorts and joins the added ranges. */
void bw_range_set_join(struct bw_range_set *set);

/** Whether a number is in the set; `*end` is cut to where that changes. */
bool bw_range_set_has(const struct bw_range_set *set, uint64_t number, uint64_t *end);

/** How many numbers from `start` to before `end` are in the set. */
uint64_t bw_range_set_overlap(const struct bw_range_set *set, uint64_t start, uint64_t end);

/** How many numbers are in the set, which it joins. */
uint64_t bw_range_set_total(struct bw_range_set *set);

#endif
