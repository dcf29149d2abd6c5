/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of 64-bit numbers that lie close together, as inodes and extents do. It keeps a bit for
 * each number of a group of 64, so a million consecutive numbers take half a megabyte.
 */
#ifndef BW_BASE_NUMBER_SET_H
#define BW_BASE_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_number_group;

/** An empty set is all zeros. */
struct bw_number_set {
    struct bw_number_group *groups; /**< capacity of them; a power of two, or NULL */
    size_t capacity, count;         /**< groups: room for them, and those with a number in them */
    uint64_t multiplier;            /**< of the hash; random */
};

/** Adds a number; `*is_new`: it was not there before. False if memory runs out. */
bool bw_number_set_add(struct bw_number_set *set, uint64_t number, bool *is_new);

/** Whether a number is in the set. */
bool bw_number_set_has(const struct bw_number_set *set, uint64_t number);

/** Frees the memory and leaves an empty set. */
void bw_number_set_free(struct bw_number_set *set);

#endif
