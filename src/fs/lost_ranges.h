/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of keys that are lost, put in order so that a key can be looked up. For adoption and
 * recovery. */
#ifndef BW_FS_LOST_RANGES_H
#define BW_FS_LOST_RANGES_H

#include "btree/block.h"

/** In a lost range: not a whole block, but an item of one. */
#define BW_NO_BLOCK UINT64_MAX

/** Keys that were in a block, or an item, that cannot be read. */
struct bw_lost_range {
    uint64_t bytenr;         /**< address of the block, or BW_NO_BLOCK */
    struct bw_key low, high; /**< low inclusive, high exclusive */
    uint8_t level;           /**< of the block */
    uint64_t generation;     /**< of the block: what is below it is not newer */
    uint32_t wave; /**< of a walk, in which it was lost: directories walked in earlier ones had read
                      it. Elsewhere 0 */
};

/** The range of a block. */
struct bw_lost_range bw_lost_range_of(const struct bw_block_pointer *pointer, uint32_t wave);

/** Ranges, ascending and not overlapping. All zeros is an empty list. */
struct bw_lost_list {
    struct bw_lost_range *items;
    size_t count;
};

/** Makes a list of those ranges whose blocks are at least `level` high: sorted, cut into pieces
 * where they overlap, each with the earliest of their waves, and joined where they touch and have
 * the same. */
struct bw_error *bw_lost_list_make(const struct bw_lost_range *ranges, size_t count, uint8_t level,
                                   struct bw_lost_list *list);
/** Frees the memory and leaves an empty list. */
void bw_lost_list_free(struct bw_lost_list *list);

/** Whether two lists have the same pieces. */
bool bw_lost_lists_equal(const struct bw_lost_list *a, const struct bw_lost_list *b);
/** The range that holds a key; NULL if none does. */
const struct bw_lost_range *bw_lost_list_find(const struct bw_lost_list *list,
                                              const struct bw_key *key);
/** Whether any key from `first` to `last`, both included, was lost in that wave or earlier. */
bool bw_lost_list_overlaps(const struct bw_lost_list *list, const struct bw_key *first,
                           const struct bw_key *last, uint32_t wave);

#endif
