/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adopting leaves: when an internal node is lost, the leaves below it are still there, and the extent tree
 * knows which blocks are in use by which tree. Used by recovery, before it looks for single names.
 */
#ifndef BW_WALK_ADOPT_H
#define BW_WALK_ADOPT_H

#include "walk/subvolume_walk.h"

/**
 * Fills walk->adopted with the leaves of the subvolume's tree that lie below its lost nodes. Without a
 * readable extent tree it finds none, or fewer.
 */
struct bw_error *bw_adopt_leaves(struct bw_subvolume_walk *walk);

/** The adopted leaf, out of `count` in order, that a key is in, if it is there at all; NULL if there is none.
 */
const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted_leaf *leaves, size_t count,
                                                 const struct bw_key *key);

/** Whether a key is in a leaf that was adopted: then the walk has been there. */
bool bw_is_adopted(const struct bw_subvolume_walk *walk, const struct bw_key *key);

/** Reads the adopted leaves that may hold keys from `first` to `last`, and shows them to `visit`; its error
 * ends that. */
struct bw_error *bw_visit_adopted(const struct bw_subvolume_walk *walk, const struct bw_key *first,
                                  const struct bw_key *last,
                                  struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                                  void *context);

#endif
