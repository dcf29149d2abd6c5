/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leaves that are known although a node above them is lost. They are found in another way than down
 * the tree (fs/adopt.h does that), and stand in for what the lost node led to.
 */
#ifndef BW_BTREE_ADOPTED_H
#define BW_BTREE_ADOPTED_H

#include "btree/block.h"

/** One of them. Its pointer's range is that of the leaf: up to the next one, or to where the loss
 * ends. */
struct bw_adopted_leaf {
    struct bw_block_pointer pointer;
    struct bw_key last_key; /**< of its items */
    uint32_t wave;          /**< that of the lost range it is in */
};

/** Those of a tree. All zeros is none. */
struct bw_adopted {
    struct bw_adopted_leaf *leaves; /**< ascending, not overlapping */
    size_t count, capacity;
    bool complete; /**< there are no more: a key that is in none of them is not in the tree */
};

/** Who knows the leaves of trees. */
struct bw_adopter {
    /** Gives the leaves below the lost nodes of a tree, as long as the reader lives; NULL if the
     * node at `bytenr` is not one of those. Safe from any thread. Fails only for want of memory. */
    struct bw_error *(*find)(void *context, const struct bw_tree *tree, uint64_t bytenr,
                             const struct bw_adopted **adopted);
    void *context;
};

/** Frees the list, and leaves an empty one. */
void bw_adopted_free(struct bw_adopted *adopted);

/** How many of the leaves begin at or before a key. */
size_t bw_adopted_until(const struct bw_adopted *adopted, const struct bw_key *key);

/** The leaf that a key is in, if it is there at all; NULL if none is known to tell. */
const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted *adopted,
                                                 const struct bw_key *key);

/** Whether all is known of the keys from `first` to `last`, both included. */
bool bw_adopted_tells(const struct bw_adopted *adopted, const struct bw_key *first,
                      const struct bw_key *last);

/** What the reader's adopter knows; NULL if it has none. */
struct bw_error *bw_adopted_find(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                 uint64_t bytenr, const struct bw_adopted **adopted);

/** Reads the leaves that may hold keys from `first` to `last`, and shows them to `visit`; its error
 * ends that. What cannot be read is passed over. */
struct bw_error *
bw_adopted_visit(const struct bw_tree_reader *reader, const struct bw_adopted *adopted,
                 const struct bw_key *first, const struct bw_key *last,
                 struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                 void *context);

#endif
