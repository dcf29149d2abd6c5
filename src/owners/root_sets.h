/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of subvolumes that share something. A subvolume is a number from 0 on; a set has a number as
 * well, and equal sets have the same one. 0 is the empty set. Sets that differ in few subvolumes
 * share nearly all of their memory, so thousands of sets of thousands of snapshots take little.
 */
#ifndef BW_OWNERS_ROOT_SETS_H
#define BW_OWNERS_ROOT_SETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "base/vector.h"

/** Halvings of the range of numbers until 64 remain: enough for all 32-bit numbers. */
enum { BW_ROOT_SET_HEIGHTS = 27, BW_ROOT_SET_WORD = 64 };

struct bw_root_union;

/** Subvolumes with consecutive numbers: from `first` up to and without `end`. */
struct bw_root_range {
    uint32_t first, end;
};

/** Private but for `count`. One thread at a time may use it. */
struct bw_root_sets {
    struct bw_numbers nodes;   /**< by number: 64 bits of a set, or the numbers of two halves */
    struct bw_key_map numbers; /**< of nodes, by their contents */
    unsigned height;           /**< of all sets: how often they are halved */
    uint32_t full[BW_ROOT_SET_HEIGHTS]; /**< sets with everything, by height */
    struct bw_root_union *unions;       /**< some that were made lately */
};

/** Begins with the empty set; subvolumes have numbers below `roots`. False if memory runs out. */
bool bw_root_sets_init(struct bw_root_sets *sets, uint32_t roots);
void bw_root_sets_free(struct bw_root_sets *sets);

/** The set of one subvolume; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_of(struct bw_root_sets *sets, uint32_t root);

/** The set of a range that is not empty; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_of_range(struct bw_root_sets *sets, struct bw_root_range range);

/** Whether a set is a single range, and which. */
bool bw_root_set_is_range(const struct bw_root_sets *sets, uint32_t set,
                          struct bw_root_range *range);

/** The union of two sets; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_union(struct bw_root_sets *sets, uint32_t a, uint32_t b);

/** The members of a set with numbers below `end`; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_below(struct bw_root_sets *sets, uint32_t set, uint32_t end);

/** The next range of a set from range->end on, which begins as 0; they are as long as possible.
 * False at the end. */
bool bw_root_set_next(const struct bw_root_sets *sets, uint32_t set, struct bw_root_range *range);

/**
 * A union of many sets, without a set for each step: adjacent ranges are joined first, and then
 * members within the same 64 numbers. All zeros is empty.
 */
struct bw_root_sum {
    uint32_t set;               /**< the joined part; UINT32_MAX: memory ran out */
    struct bw_root_range range; /**< the part still to be joined: the last ranges, */
    uint32_t place;             /**< and before them some of the 64 numbers from here on: */
    uint64_t bits;              /**< these; 0: none */
};

/** Adds a set; or a range, which is quicker. */
void bw_root_sum_add(struct bw_root_sets *sets, struct bw_root_sum *sum, uint32_t set);
void bw_root_sum_add_range(struct bw_root_sets *sets, struct bw_root_sum *sum,
                           struct bw_root_range range);

/** The union of all members that were added; UINT32_MAX if memory ran out. */
uint32_t bw_root_sum_end(struct bw_root_sets *sets, struct bw_root_sum *sum);

#endif
