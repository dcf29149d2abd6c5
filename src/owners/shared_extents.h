/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tree blocks and data with more than one reference, and the set of subvolumes that reach each.
 * The extent tree lists them in advance: then they are stored in the order of their addresses, in
 * 20 bytes each. Without it, every address is added when it is found.
 */
#ifndef BW_OWNERS_SHARED_EXTENTS_H
#define BW_OWNERS_SHARED_EXTENTS_H

#include "base/hash_table.h"
#include "base/vector.h"
#include "owners/tree_list.h"

/** Bits of bw_shared_extent.place that are no part of the address. */
enum {
    BW_SHARED_LEVEL = 0xf,  /**< of a tree block, and 1; 0: no reference was met so far */
    BW_SHARED_DATA = 0x10,  /**< it holds data */
    BW_SHARED_FLAGS = 0xfff /**< all of them: addresses are multiples of 4 KiB */
};

/** Data, or a tree block. */
struct bw_shared_extent {
    uint64_t place; /**< address, and flags */
    uint32_t set;   /**< of those that reach it */
    uint32_t value; /**< of data: length in units of 4 KiB; of a tree block: how many generations
                         older than the file system it is */
};

BW_VECTOR(bw_shared_extent_list, struct bw_shared_extent);

struct bw_shared_extents {
    struct bw_shared_extent_list extents;
    bool complete;     /**< an extent that is not there has at most one reference */
    uint32_t *buckets; /**< if complete: where to begin to look for an address */
    uint64_t first;    /**< lowest address */
    unsigned shift;    /**< from a distance to the lowest address to a bucket */
    size_t bucket_count;
    struct bw_key_map added; /**< if not complete: by address */
};

/** The units of bw_shared_extent.value for bytes of data; UINT32_MAX if there are more. */
uint32_t bw_shared_units(uint64_t bytes);

/** The same for a tree block: how much older than `newest` a generation is. */
static inline uint32_t bw_shared_age(uint64_t newest, uint64_t generation)
{
    return newest - generation < UINT32_MAX ? (uint32_t)(newest - generation) : UINT32_MAX;
}

/** Fills it from the extent trees of the list, with up to `threads` threads (0: one for each
 * processor); `progress` is as in struct bw_level_reader. If a part of the trees is lost,
 * which is reported, it remains empty and not `complete`. */
struct bw_error *bw_shared_load(struct bw_shared_extents *shared, struct bw_fs *fs,
                                const struct bw_tree_list *trees, unsigned threads,
                                bool (*progress)(void *context), void *context);

/** The index of an extent; SIZE_MAX if it is not there. If `complete`, safe from any thread. */
size_t bw_shared_find(const struct bw_shared_extents *shared, uint64_t bytenr);

/** Adds an extent that is not there, and returns its index; SIZE_MAX if memory runs out. Not if
 * `complete`. */
size_t bw_shared_add(struct bw_shared_extents *shared, uint64_t bytenr);

void bw_shared_free(struct bw_shared_extents *shared);

#endif
