/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of single tree blocks, and their contribution to the reference counts. Called by trees.c
 * once for every block, with a good mirror. All functions are safe from any thread. */
#ifndef BW_CHECK_BLOCK_CONTENTS_H
#define BW_CHECK_BLOCK_CONTENTS_H

#include "check/check.h"

/** A block that has been read. */
struct bw_reached_block {
    struct bw_check *check;
    struct bw_listed_tree *tree; /**< through which it was reached first */
    const struct bw_block_pointer *pointer;
    struct bw_node node;
    uint64_t owner, generation; /**< of its header */
    bool in_log;                /**< of a log tree: it has no references */
};

/** A thread's facts about the inode in which the last leaf ended. All zeros: none. */
struct bw_last_inode {
    const struct bw_listed_tree *tree;
    uint64_t number;
    uint64_t flags;
    bool known; /**< its flags are */

    /* About the present leaf, for baselines. */
    bool in_leaf;         /**< the inode is in this leaf */
    bool depends;         /**< the inode of its first extents is in an earlier one */
    bool is_first_summed; /**< that inode has checksums */
    bool has_unsummed;    /**< there are data that rightly have no checksums */
    bool is_unclear;      /**< an inode was not found */
};

/** Checks the flags of the header. */
void bw_check_header(const struct bw_reached_block *block);

/** Whether the subvolume that the header names as the owner contains the block. */
void bw_check_owner(const struct bw_reached_block *block);

/** Checks the order and places of the items of a leaf, their contents, and whether file extents
 * have checksums, or rightly none. Returns whether there is something that each check has to
 * note: inodes with fs-verity, or with a flag of Synology's kernels, and for a baseline, entries of
 * subvolumes. */
bool bw_check_leaf(const struct bw_reached_block *leaf, struct bw_last_inode *last);

/** Counts the references of a block to its children or to data, and returns what they add up to.
 * Slots before `first_slot` are skipped. */
uint64_t bw_check_references(const struct bw_reached_block *block, uint32_t first_slot);

/** Whether data of an inode need checksums, like data in an earlier check; false also if the inode
 * is not found. */
bool bw_check_is_summed(struct bw_check *check, const struct bw_listed_tree *tree, uint64_t inode,
                        bool summed, struct bw_last_inode *last);

#endif
