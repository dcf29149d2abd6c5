/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Look-ups in a tree: the leaf that a key belongs in, and the items in a range of keys, one after
 * the other. The last leaf and the node above it are kept, so the next item needs no search. To
 * read whole trees see scan.h. */
#ifndef BW_BTREE_FIND_LEAF_H
#define BW_BTREE_FIND_LEAF_H

#include "btree/block.h"

/** A place in a tree. One thread at a time may use it. */
struct bw_leaf_finder {
    struct bw_tree_reader reader;
    struct bw_tree tree;
    /** Keys that belong in the leaf: from `first` on and less than `end`. */
    struct bw_key first, end;
    struct bw_key unknown; /**< items from this key up to `end` may be lost */
    struct bw_node leaf;   /**< its items, unless it is lost */
    bool lost; /**< the leaf, or a node above it, cannot be read: [first, end) is lost */
    struct bw_error *error; /**< why; the finder's, unless the caller takes it and leaves NULL */
    uint64_t bytenr;        /**< of the leaf, or of the lost block */
    bool found;             /**< whether the members above mean anything */
    bool ordered;           /**< keys of the leaf ascend, as they should */

    /* Private: the buffers, and the node above the leaf. */
    uint8_t *block, *node;
    struct bw_block_pointer above;
    bool has_above;
    const struct bw_adopted *adopted;  /* of the last lost node, if any */
    struct bw_block_pointer lost_node; /* that node */
    struct bw_error *node_error;       /* why it is lost */
    struct bw_key advised;             /* leaves that begin before this have been announced */
};

/** Starts with a tree. */
void bw_leaf_finder_init(struct bw_leaf_finder *finder, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree);

/** Continues with another tree or the same one. Keeps the memory and, for the same tree, the
 * position. */
void bw_leaf_finder_set_tree(struct bw_leaf_finder *finder, const struct bw_tree *tree);

/** Frees what it holds. */
void bw_leaf_finder_free(struct bw_leaf_finder *finder);

/** Finds the leaf that `key` belongs in. Fails only if memory runs out: if the leaf, or a node
 * above it, cannot be read, `lost` and `error` are set. */
struct bw_error *bw_find_leaf(struct bw_leaf_finder *finder, const struct bw_key *key);

/** Address of the lost block that may have held `key`, which belongs in the leaf but has no item
 * there: the leaf or a node, or, since the end of a leaf below a lost node may be unknown, that
 * node; 0 if none is lost. */
uint64_t bw_leaf_lost_block(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** Slot of the last item of the leaf whose key is at most `key`; -1 if there is none. */
int64_t bw_leaf_last_until(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** Slot of the first item of the leaf whose key is greater than `key`; -1 if there is none. */
int64_t bw_leaf_first_behind(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** The items in a range of keys, in the order of the tree. */
struct bw_item_range {
    /** The present item, a view that ends with the next step; unless `error` is set. */
    struct bw_item item;
    /** Something in the range may be lost: a block, or an item whose bytes lie outside its leaf.
     * Belongs to the range unless the caller takes it and leaves NULL. */
    struct bw_error *error;
    uint64_t lost; /**< with an error: address of the lost block, or BW_LOST_ITEM */

    /* Private. */
    struct bw_leaf_finder finder;
    struct bw_key next, last; /* the keys still to be read */
    uint32_t slot;
    bool in_leaf; /* at the leaf of the finder, or at the lost range in its place */
    bool ended;
    bool reads;               /* it was begun, and not stopped */
    struct bw_error *failure; /* memory ran out */
    struct bw_frame frame;
    uint64_t start_time;
    struct bw_key first;
};

/** Stands for the address of a block where an item is lost. */
#define BW_LOST_ITEM UINT64_MAX

/** Begins with the range from `first` to `last`, both included. To be ended by bw_item_range_end(),
 * and not to be moved. */
void bw_item_range_begin(struct bw_item_range *range, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree, struct bw_key first, struct bw_key last);

/** Begins with another range after bw_item_range_stop(). If it is near the previous range, the leaf
 * is not read again. */
void bw_item_range_restart(struct bw_item_range *range, const struct bw_tree_reader *reader,
                           const struct bw_tree *tree, struct bw_key first, struct bw_key last);

/** Moves on to the next item, or to the next thing that is lost; false at the end. */
bool bw_item_range_next(struct bw_item_range *range);

/** Ends reading, wherever it is, and keeps the leaf for bw_item_range_restart(). Returns `error`,
 * or one of memory in its place. */
struct bw_error *bw_item_range_stop(struct bw_item_range *range, struct bw_error *error);

/** Ends reading finally, also after bw_item_range_stop(). Returns the same as
 * bw_item_range_stop(). */
struct bw_error *bw_item_range_end(struct bw_item_range *range, struct bw_error *error);

#endif
