/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Query ranges of addresses, with a search for those that overlap another range; and sets of tree
 * blocks. */
#ifndef BW_OWNERS_RANGES_H
#define BW_OWNERS_RANGES_H

#include "base/hash_table.h"
#include "base/vector.h"
#include "ondisk/superblock.h"

/** A range that is searched for. */
struct bw_query_range {
    uint64_t start, length; /**< they do not wrap */
    size_t number;          /**< the caller's */
};

BW_VECTOR(bw_query_range_list, struct bw_query_range);

struct bw_query_ranges {
    struct bw_query_range_list ranges; /**< by start, once they are sorted; may overlap */
    uint64_t longest;
};

static inline void bw_query_ranges_free(struct bw_query_ranges *list)
{
    bw_query_range_list_free(&list->ranges);
}

/** Adds a range; false if memory runs out. */
bool bw_query_ranges_add(struct bw_query_ranges *list, uint64_t start, uint64_t length,
                         size_t number);

/** Sorts the list, before bw_query_ranges_next(). */
void bw_query_ranges_sort(struct bw_query_ranges *list);

/** The next range from number `*next` on that overlaps another one; NULL if none exists. Begin
 * with 0; `*next` moves past it. */
const struct bw_query_range *bw_query_ranges_next(const struct bw_query_ranges *list, size_t *next,
                                                  uint64_t start, uint64_t length);

/** Tree blocks. A word of the map has the bits of 16 places of the smallest block size. */
struct bw_block_set {
    struct bw_key_map words;
};

static inline void bw_block_set_free(struct bw_block_set *set)
{
    bw_key_map_free(&set->words);
}

/** Where a block has its bit. */
struct bw_block_bit {
    uint64_t word;
    uint32_t bit;
};

static inline struct bw_block_bit bw_block_bit_of(uint64_t bytenr)
{
    const uint64_t place = bytenr / BW_MIN_SECTORSIZE;
    return (struct bw_block_bit){place / 16, UINT32_C(1) << place % 16};
}

/** Whether a block is in the set. */
static inline bool bw_block_set_has(const struct bw_block_set *set, uint64_t bytenr)
{
    const struct bw_block_bit at = bw_block_bit_of(bytenr);
    return bw_key_map_get(&set->words, at.word, 0) & at.bit;
}

/** Adds a block; `*added` is set to whether it is new. */
static inline struct bw_error *bw_block_set_insert(struct bw_block_set *set, uint64_t bytenr,
                                                   bool *added)
{
    const struct bw_block_bit at = bw_block_bit_of(bytenr);
    struct bw_key_map_entry *word;
    BW_TRY(bw_key_map_enter(&set->words, at.word, &word, added));
    *added = !(word->value & at.bit);
    word->value |= at.bit;
    return NULL;
}

/** Where an iteration over a set is; begins as all zeros. */
struct bw_block_set_position {
    size_t next;
    uint64_t word;
    uint32_t bits; /**< of the word that have not come yet */
};

/** The next block of a set, in no order; false at the end. */
static inline bool bw_block_set_next(const struct bw_block_set *set,
                                     struct bw_block_set_position *position, uint64_t *bytenr)
{
    while (!position->bits)
        if (!bw_key_map_next(&set->words, &position->next, &position->word, &position->bits))
            return false;
    const unsigned bit = (unsigned)__builtin_ctz(position->bits);
    *bytenr = (position->word * 16 + bit) * BW_MIN_SECTORSIZE;
    position->bits &= position->bits - 1;
    return true;
}

#endif
