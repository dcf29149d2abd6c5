/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reference counts as multiset hashes. The hash of each reference in the extent tree is added, and
 * the hash of each existing reference is subtracted. If the sum is zero, both sides agree, in
 * any order of reading, and nothing had to be remembered or searched. References are
 * spread over buckets by extent: only those in a nonzero bucket are read again.
 */
#ifndef BW_CHECK_REFERENCE_COUNTS_H
#define BW_CHECK_REFERENCE_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "check/check.h"
#include "data/references.h"

enum { BW_REFERENCE_BUCKETS = 1 << 16 };

/** The sums of the buckets, all zero at first; freed with free(). */
struct bw_reference_counts {
    atomic_uint_fast64_t buckets[BW_REFERENCE_BUCKETS];
};

/** The hash of a reference: of four numbers. `kind` distinguishes facts of different kinds. */
uint64_t bw_reference_hash(uint64_t kind, uint64_t a, uint64_t b, uint64_t c);

/** The bucket of an extent. */
uint32_t bw_reference_bucket(uint64_t bytenr);

/** Adds the hash of a reference to an extent `count` times (negative: subtracts it). Safe from any
 * thread. */
void bw_reference_counts_add(struct bw_reference_counts *counts, uint64_t bytenr, uint64_t hash,
                             uint64_t count);

/** How many buckets disagree. */
size_t bw_reference_counts_disagreeing(const struct bw_reference_counts *counts);

/** Counts a reference that the extent tree promises, or one that exists, and returns the number
 * that is added to the sum, or subtracted. Safe from any thread. */
uint64_t bw_count_promised_reference(struct bw_check *check, const struct bw_reference *reference);
uint64_t bw_count_reference(struct bw_check *check, const struct bw_reference *reference);

/** As bw_block_references_open(), with the flags that the extent tree has of the block. */
struct bw_block_references bw_check_references_open(const struct bw_check *check,
                                                    const struct bw_node *node,
                                                    uint32_t first_slot);

#endif
