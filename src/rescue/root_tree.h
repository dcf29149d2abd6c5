/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The current roots of all trees, found without a root tree. The extent tree contains an item for
 * each tree block in use, with the tree that it belongs to: the root of a tree is its block of the
 * highest level. The extent tree also proves its own root: only the extent tree of the last commit
 * has items for its own root and for the root of the root tree. Without an extent tree, the newest
 * block of each tree is used. */
#ifndef BW_RESCUE_ROOT_TREE_H
#define BW_RESCUE_ROOT_TREE_H

#include "base/vector.h"
#include "history/block_index.h"

/** A tree and its root. */
struct bw_tree_root {
    uint64_t id;
    struct bw_root_pointer root;
    bool relocated; /**< a balance has moved the block, so it may be the root of a reloc tree */
};

BW_VECTOR(bw_tree_root_list, struct bw_tree_root);

/** The roots of all trees. All zeros is empty. */
struct bw_tree_roots {
    struct bw_tree_root_list trees; /**< in ascending order of ids, once the search is complete */
    struct bw_key_map numbers;      /**< from ids to indices, until they are sorted */
    bool proven;                    /**< by a complete extent tree: no other trees or roots exist */
    uint64_t generation;            /**< of the extent tree; 0: not found */
    size_t missing;                 /**< tree blocks in use that are not in the index, except for
                                     * the root tree; only if the extent tree was found */
    struct bw_key_map leaves; /**< addresses of the leaves of the root tree in use, if the extent
                               * tree  was found */
};

/** Frees the memory. */
void bw_tree_roots_free(struct bw_tree_roots *roots);

/** Finds the roots among the blocks of a sorted index that are not newer than `newest`.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_tree_roots_find(struct bw_fs *fs, const struct bw_found_index *index,
                                    uint64_t newest, struct bw_tree_roots *roots);

/** The root of a tree, or NULL. */
const struct bw_tree_root *bw_tree_root_of(const struct bw_tree_roots *roots, uint64_t id);

#endif
