/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two trees in parallel: their differing items, in key order. Shared blocks are not read, even if
 * other items around them have shifted, so the cost follows the difference.
 */
#ifndef BW_DIFF_PAIRS_H
#define BW_DIFF_PAIRS_H

#include "btree/block.h"

/** A key under which the trees differ. */
struct bw_item_pair {
    struct bw_key key;
    const struct bw_item *items[2]; /**< before and after; NULL: that tree has none */
    bool unknown;                   /**< the NULL item may exist, in a lost block */
};

/** The trees to compare, and the functions that receive the differences. */
struct bw_pairs {
    struct bw_tree_reader readers[2];
    struct bw_tree trees[2];
    /** Equal pointers lead to equal blocks and data: both trees are in one file system. Otherwise,
     * items that refer to data are visited even if they are equal. */
    bool shared;
    /** The second tree is a later state of the first, which this transaction committed: where the
     * first has lost a block, blocks of the second that are no newer are skipped. 0: unknown. */
    uint64_t since;
    /** Receives a pair, a view that ends with the call. An error ends the comparison. */
    struct bw_error *(*visit)(void *context, const struct bw_item_pair *pair);
    /** Receives an unreadable part of a tree (0 or 1), with the key at which it begins, and takes
     * `error`. An error that it returns ends the comparison. */
    struct bw_error *(*lost)(void *context, unsigned side, const struct bw_block_pointer *pointer,
                             struct bw_error *error);
    void *context;
    uint64_t blocks;    /**< result: how many were read, or were lost */
    uint64_t announced; /**< result: how many blocks were announced */
};

/** Compares. Returns the error of `visit` or `lost`, or one of memory. */
struct bw_error *bw_pairs_compare(struct bw_pairs *pairs);

#endif
