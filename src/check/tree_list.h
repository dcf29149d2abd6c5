/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees of the file system, and walking some of them. */
#ifndef BW_CHECK_TREE_LIST_H
#define BW_CHECK_TREE_LIST_H

#include "check/check.h"

/** Fills check->trees: those that the superblock points to, then one for each ROOT_ITEM. */
struct bw_error *bw_tree_list_load(struct bw_check *check);

/** Reports trees that every file system has, or that its features need, and that the root tree does
 * not name. Call it when the root tree has been walked: nothing follows if part of it is lost. */
void bw_tree_list_check(struct bw_check *check);

/** Decodes a ROOT_ITEM for the list; false if it is cut off. */
bool bw_tree_list_decode(const struct bw_item *item, struct bw_checked_tree *tree);

/** The first slot of a node that is left, if its tree is a subvolume that is being deleted: those
 * before are gone. */
uint32_t bw_tree_first_slot(const struct bw_checked_tree *tree, const struct bw_node *node);

/** Whether a block is gone since it stands before such a slot. */
bool bw_tree_has_dropped(const struct bw_checked_tree *tree,
                         const struct bw_block_pointer *pointer);

/** Checks all blocks of trees, as the pass `trees` does, and sets what they add up to (trees.c). */
struct bw_error *bw_walk_trees(struct bw_check *check, struct bw_checked_tree *trees, size_t count,
                               bool in_log);

#endif
