/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The present roots of all trees, without a root tree. The extent tree has an item for each tree
 * block in use, which names the tree that it belongs to: the root of a tree is the block of the
 * highest level. The extent tree also proves its own root: only the extent tree of the last commit
 * has items for its own root and for the root of the root tree. Without an extent tree, the newest
 * block of each tree is used. */
#ifndef BW_RESCUE_ROOT_TREE_H
#define BW_RESCUE_ROOT_TREE_H

#include "history/block_index.h"

/** A tree. */
struct bw_tree_root {
    uint64_t id;
    struct bw_root_pointer root;
};

/** The trees. All zeros is none. */
struct bw_tree_roots {
    struct bw_tree_root *trees; /**< ascending by id, once they were found */
    size_t count, capacity;
    struct bw_map numbers; /**< from an id to its place, until they are sorted */
    bool proven;           /**< by a complete extent tree: other trees and other roots no longer
                                exist */
    uint64_t generation;   /**< of the extent tree; 0: none was found */
    struct bw_map leaves;  /**< addresses of the leaves of the root tree that are in use, if the
                              extent tree was found */
};

/** Frees the memory. */
void bw_tree_roots_free(struct bw_tree_roots *roots);

/** Finds the roots among the blocks of an index, which is sorted. None of them is newer than
 * `newest`. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_tree_roots_find(struct bw_fs *fs, const struct bw_found_index *index,
                                    uint64_t newest, struct bw_tree_roots *roots);

/** The root of a tree; NULL if there is none. */
const struct bw_tree_root *bw_tree_root_of(const struct bw_tree_roots *roots, uint64_t id);

#endif
