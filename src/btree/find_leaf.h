/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaf that a key belongs in, and the items around the key: for whoever reads a tree here and
 * there, or onward from a place. The last leaf, and the node above it, are kept, so that going on
 * costs no search.
 */
#ifndef BW_BTREE_FIND_LEAF_H
#define BW_BTREE_FIND_LEAF_H

#include "btree/adopted.h"

/** A place in a tree. One thread at a time may use it. */
struct bw_leaf_finder {
    struct bw_tree_reader reader;
    struct bw_tree tree;
    /** Keys that belong in the leaf: from `first` on and less than `end`. */
    struct bw_key first, end;
    struct bw_key unknown; /**< from this on up to `end` there may have been items that are lost */
    struct bw_node leaf;   /**< its items, unless it is lost */
    bool lost; /**< it cannot be read, or a node on the way to it: [first, end) is lost */
    struct bw_error *error; /**< why; the finder's, unless somebody takes it and leaves NULL */
    uint64_t bytenr;        /**< of the leaf, or of what is lost */
    bool found;             /**< whether the members above mean anything */
    bool ordered;           /**< keys of the leaf ascend, as they should */

    /* Private: the buffers, and the node above the leaf. */
    uint8_t *block, *node;
    struct bw_block_pointer above;
    bool has_above;
    const struct bw_adopted *adopted;  /* of the lost node that was met last, if any */
    struct bw_block_pointer lost_node; /* which one that was */
    struct bw_key advised;             /* leaves that begin before this have been asked for */
};

/** Starts with a tree. */
void bw_leaf_finder_init(struct bw_leaf_finder *finder, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree);

/** Goes on with another tree, or the same one; keeps memory, and what it has read if it is the
 * same. */
void bw_leaf_finder_set_tree(struct bw_leaf_finder *finder, const struct bw_tree *tree);

/** Frees what it holds. */
void bw_leaf_finder_free(struct bw_leaf_finder *finder);

/**
 * Finds the leaf that `key` belongs in. Fails only for want of memory: a leaf, or a node on the way
 * to it, that cannot be read leaves `lost` and `error`.
 */
struct bw_error *bw_find_leaf(struct bw_leaf_finder *finder, const struct bw_key *key);

/** Address of the lost block that could have told of `key`, which belongs in the leaf and of which
 * there is no item: that of the leaf or a node, or, since below a lost node it may not be known
 * where a leaf ends, of that one; 0 if none is lost. */
uint64_t bw_leaf_lost_block(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** Slot of the last item of the leaf that is not behind `key`; -1 if there is none. */
int64_t bw_leaf_last_until(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** Slot of the first item of the leaf that is behind `key`; -1 if there is none. */
int64_t bw_leaf_first_behind(const struct bw_leaf_finder *finder, const struct bw_key *key);

#endif
