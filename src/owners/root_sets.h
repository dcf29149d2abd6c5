/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of subvolumes that share something. A subvolume is a number from 0 on; a set has a number as
 * well, and equal sets have the same one. 0 is the empty set. Sets that differ in few subvolumes
 * share nearly all of their memory, so thousands of sets of thousands of snapshots take little.
 */
#ifndef BW_OWNERS_ROOT_SETS_H
#define BW_OWNERS_ROOT_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/** Halvings of the range of numbers until 64 are left: enough for all numbers of 32 bits. */
enum { BW_ROOT_SET_HEIGHTS = 27, BW_ROOT_SET_WORD = 64 };

struct bw_root_union;

/** A set that was made of a word. */
struct bw_root_word {
    uint32_t place; /**< of the word */
    uint64_t bits;  /**< 0: none was made */
    uint32_t set;
};

/** Private but for `count`. One thread at a time may use it. */
struct bw_root_sets {
    uint64_t *nodes; /**< by number: 64 bits of a set, or the numbers of two halves */
    size_t count;    /**< of nodes */
    size_t capacity;
    struct bw_map numbers;              /**< of nodes, by what they hold */
    unsigned height;                    /**< of all sets: how often they are halved */
    uint32_t full[BW_ROOT_SET_HEIGHTS]; /**< sets with everything, by height */
    struct bw_root_union *unions;       /**< some that were made lately */
    struct bw_root_word last;           /**< made by bw_root_set_of_word() */
};

/** Begins with the empty set; subvolumes have numbers below `roots`. False if memory runs out. */
bool bw_root_sets_init(struct bw_root_sets *sets, uint32_t roots);
void bw_root_sets_free(struct bw_root_sets *sets);

/** The set of one subvolume; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_of(struct bw_root_sets *sets, uint32_t root);

/** The set of up to 64 subvolumes: bit i stands for the one with the number of `first` rounded down
 * to a multiple of 64, plus i. At least one bit is set. UINT32_MAX if memory runs out. */
uint32_t bw_root_set_of_word(struct bw_root_sets *sets, uint32_t first, uint64_t bits);

/** Whether a set that is not empty is what bw_root_set_of_word() makes, and of what. */
bool bw_root_set_is_word(const struct bw_root_sets *sets, uint32_t set, uint32_t *first,
                         uint64_t *bits);

/** The union of two sets; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_union(struct bw_root_sets *sets, uint32_t a, uint32_t b);

/** Those of a set with numbers below `end`; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_below(struct bw_root_sets *sets, uint32_t set, uint32_t end);

/** Subvolumes with consecutive numbers: from `first` up to and without `end`. */
struct bw_root_run {
    uint32_t first, end;
};

/** The next run of a set from run->end on, which begins as 0; they are as long as possible. False
 * at the end. */
bool bw_root_set_next(const struct bw_root_sets *sets, uint32_t set, struct bw_root_run *run);

#endif
