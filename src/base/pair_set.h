/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of pairs of numbers: directories by subvolume and inode. There are few first numbers. */
#ifndef BW_BASE_PAIR_SET_H
#define BW_BASE_PAIR_SET_H

#include "base/number_set.h"
#include "base/vector.h"

BW_VECTOR(bw_number_sets, struct bw_number_set);

/** An empty set is all zeros. */
struct bw_pair_set {
    struct bw_key_map firsts;      /**< first numbers: where the second ones are */
    struct bw_number_sets seconds; /**< a set for each first number */
};

/** Adds a pair; `*is_new`: it was not there before. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_pair_set_insert(struct bw_pair_set *set, uint64_t first, uint64_t second,
                                    bool *is_new) __attribute__((warn_unused_result));

/** Removes all pairs with a first number. */
void bw_pair_set_forget(struct bw_pair_set *set, uint64_t first);

/** Frees the memory and leaves an empty set. */
void bw_pair_set_free(struct bw_pair_set *set);

#endif
