/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a tree block says by itself, and what it contributes to the reference counts. Called by
 * trees.c for every block, once, with a good copy. All functions are safe from any thread. */
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

/** What a thread knows of the inode that the last leaf ended in. All zeros: nothing. */
struct bw_last_inode {
    const struct bw_listed_tree *tree;
    uint64_t number;
    uint64_t flags;
    bool known; /**< its flags are */
};

/** Checks the flags of the header. */
void bw_check_header(const struct bw_reached_block *block);

/** Whether the subvolume that the header names as the owner contains the block. */
void bw_check_owner(const struct bw_reached_block *block);

/** Order and places of the items of a leaf, and what is in each. */
void bw_check_leaf(const struct bw_reached_block *leaf);

/** Counts the references that a block holds, to its children or to data.
 * Slots before `first_slot` are left out. */
void bw_check_references(const struct bw_reached_block *block, uint32_t first_slot);

/** Whether the file extents of a leaf have checksums, or rightly none. */
void bw_check_checksummed(const struct bw_reached_block *leaf, struct bw_last_inode *last);

#endif
