/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sets of subvolumes that share something. There are few of them, however much is shared: each is
 * kept once and has a number; 0 is the empty set.
 */
#ifndef BW_OWNERS_ROOT_SETS_H
#define BW_OWNERS_ROOT_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct bw_root_set {
    uint32_t *roots; /**< numbers of subvolumes, ascending */
    uint32_t count;
    uint64_t bytes; /**< that exactly these subvolumes share; for the caller */
};

struct bw_root_sets {
    struct bw_root_set *sets;
    size_t count, capacity;
    size_t memory;         /**< that the lists take, in bytes */
    struct bw_map by_hash; /**< of the roots */
    struct bw_map unions;  /**< of two numbers: of the set of both */
};

/** Begins with the empty set; false if memory runs out. */
bool bw_root_sets_init(struct bw_root_sets *sets);
void bw_root_sets_free(struct bw_root_sets *sets);

/** The number of a set with one subvolume; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_of(struct bw_root_sets *sets, uint32_t root);

/** The number of the union of two sets; UINT32_MAX if memory runs out. */
uint32_t bw_root_set_union(struct bw_root_sets *sets, uint32_t a, uint32_t b);

#endif
