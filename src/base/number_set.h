/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of 64-bit numbers that lie close together, as inodes and extents do. It keeps a bit for
 * each number of a group of 64, so a million consecutive numbers take half a megabyte.
 */
#ifndef BW_BASE_NUMBER_SET_H
#define BW_BASE_NUMBER_SET_H

#include "base/hash_table.h"

/** From numbers divided by 64 to a bit for each number of the group. */
BW_MAP(bw_number_groups, uint64_t, uint64_t, bw_key);

/** An empty set is all zeros. */
struct bw_number_set {
    struct bw_number_groups groups;
};

/** Adds a number; `*is_new`: it was not there before. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_number_set_insert(struct bw_number_set *set, uint64_t number, bool *is_new)
    __attribute__((warn_unused_result));

/** Whether a number is in the set. */
bool bw_number_set_has(const struct bw_number_set *set, uint64_t number);

/** Frees the memory and leaves an empty set. */
void bw_number_set_free(struct bw_number_set *set);

#endif
