/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of pairs of numbers: directories by subvolume and inode. There are few first numbers. */
#ifndef BW_BASE_PAIR_SET_H
#define BW_BASE_PAIR_SET_H

#include "base/map.h"
#include "base/number_set.h"

/** An empty set is all zeros. */
struct bw_pair_set {
    struct bw_map firsts;          /**< first numbers: where the second ones are */
    struct bw_number_set *seconds; /**< a set for each first number */
    size_t count, capacity;
};

/** Adds a pair; `*is_new`: it was not there before. False if memory runs out. */
bool bw_pair_set_add(struct bw_pair_set *set, uint64_t first, uint64_t second, bool *is_new);

/** Removes all pairs with a first number. */
void bw_pair_set_forget(struct bw_pair_set *set, uint64_t first);

/** Frees the memory and leaves an empty set. */
void bw_pair_set_free(struct bw_pair_set *set);

#endif
