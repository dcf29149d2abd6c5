/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lookups in a tree: the leaf of a key, and iteration over the items in a range of keys. The last
 * leaf and the node above it are kept, so the next item usually needs no search. To read whole
 * trees, see scan.h. */
#ifndef BW_BTREE_FIND_LEAF_H
#define BW_BTREE_FIND_LEAF_H

#include "btree/block.h"

/** A position in a tree. Only one thread at a time may use it. */
struct bw_leaf_finder {
    struct bw_tree_reader reader;
    struct bw_tree tree;
    /** The keys that belong in the leaf: at least `first` and less than `end`. */
    struct bw_key first, end;
    struct bw_key unknown; /**< items from this key up to `end` may be lost */
    struct bw_node leaf;   /**< undefined if it is lost */
    bool lost; /**< the leaf or a node above it cannot be read: all keys in [first, end) are lost */
    struct bw_error *error; /**< the reason; owned by the finder, unless the caller takes it and
                             * sets NULL */
    uint64_t bytenr;        /**< address of the leaf, or of the lost block */
    bool found;             /**< the members above are valid */
    bool ordered;           /**< the keys of the leaf ascend, as in every valid leaf */

    /* Private: buffers for the leaf, the last node above it, and the root if that is above this. */
    uint8_t *block, *node, *root;
    bool has_root;
    struct bw_block_pointer above;
    bool has_above;
    const struct bw_adopted *adopted;  /* leaves below the last lost node; may be NULL */
    struct bw_block_pointer lost_node; /* the last lost node */
    struct bw_error *node_error;       /* the reason why it is lost */
    struct bw_key advised;             /* leaves that begin before this key have been announced */
    struct bw_key previous_end;        /* end of the leaf that was found before */
};

/** Initializes a finder for a tree. */
void bw_leaf_finder_init(struct bw_leaf_finder *finder, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree);

/** Continues with another tree or the same one. Keeps the memory, and for the same tree the
 * position. */
void bw_leaf_finder_set_tree(struct bw_leaf_finder *finder, const struct bw_tree *tree);

void bw_leaf_finder_free(struct bw_leaf_finder *finder);

/** Finds the leaf that `key` belongs in. If the leaf or a node above it cannot be read, sets `lost`
 * and `error`; fails only if memory runs out. */
struct bw_error *bw_find_leaf(struct bw_leaf_finder *finder, const struct bw_key *key);

/** Announces some leaves that keys belong in and that are below the node that is kept. Reads
 * nothing. Returns the number of the other keys, which then come first in `keys`. */
size_t bw_leaf_finder_announce(const struct bw_leaf_finder *finder, struct bw_key *keys,
                               size_t count);

/** The address of a lost block that may have contained `key`, which belongs in the leaf but has no
 * item there: the leaf, if it or its last items are lost, a node above it, or, because the end of
 * an adopted leaf may be unknown, the lost node above that; 0 if no block is lost. */
uint64_t bw_leaf_lost_block(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** The slot of the last item in the leaf whose key is at most `key`; -1 if none exists. */
int64_t bw_leaf_last_until(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** The slot of the first item in the leaf whose key is greater than `key`; -1 if none exists. */
int64_t bw_leaf_first_behind(const struct bw_leaf_finder *finder, const struct bw_key *key);

/** The next possible key, and the one before a key, which is not the smallest. */
struct bw_key bw_key_after(struct bw_key key);
struct bw_key bw_key_before(struct bw_key key);

/** Iteration over the items in a range of keys, in the order of the tree. */
struct bw_item_range {
    /** The current item, valid until the next step; undefined if `error` is set. */
    struct bw_item item;
    /** Something in the range may be lost: a block, or an item whose bytes are outside its leaf.
     * Owned by the range, unless the caller takes it and sets NULL. */
    struct bw_error *error;
    uint64_t lost; /**< if `error` is set: address of the lost block, or BW_LOST_ITEM */

    /* Private. */
    struct bw_leaf_finder finder;
    struct bw_key next, last; /* the keys still to be read */
    uint32_t slot;
    bool in_leaf; /* the key is in the finder's leaf, or in the lost range in its place */
    bool ended;
    bool reads;               /* started and not stopped */
    struct bw_error *failure; /* memory ran out; not private: the rest of the range is unknown */
    struct bw_frame frame;
    uint64_t start_time;
    struct bw_key first;
};

/** Replaces the address of a block if an item is lost. */
#define BW_LOST_ITEM UINT64_MAX

/** Starts with the range from `first` to `last`, inclusive. Must be ended by bw_item_range_end().
 * The structure must not be moved. */
void bw_item_range_begin(struct bw_item_range *range, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree, struct bw_key first, struct bw_key last);

/** Starts another range after bw_item_range_stop(). If it is close to the previous range, the leaf
 * is not read again. */
void bw_item_range_restart(struct bw_item_range *range, const struct bw_tree_reader *reader,
                           const struct bw_tree *tree, struct bw_key first, struct bw_key last);

/** Advances to the next item or loss; false at the end. */
bool bw_item_range_next(struct bw_item_range *range);

/** Stops at any position, but keeps the leaf for bw_item_range_restart(). Returns `error`, or
 * another one if memory ran out. */
struct bw_error *bw_item_range_stop(struct bw_item_range *range, struct bw_error *error);

/** Ends the iteration and frees its memory, also after bw_item_range_stop(). Returns the same as
 * bw_item_range_stop(). */
struct bw_error *bw_item_range_end(struct bw_item_range *range, struct bw_error *error);

#endif
