/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the items of a subvolume say about its inodes, as a sum: links, names, sizes and extents
 * enter it so that a consistent subvolume adds up to zero, in whatever order its leaves are read.
 * The sum of a node is that of its children, so a block that snapshots share is read once. A tree
 * with a rest is looked at again by inodes.c.
 */
#ifndef BW_CHECK_INODE_SUMS_H
#define BW_CHECK_INODE_SUMS_H

#include "check/check.h"

/** The sum of a range of leaves that follow each other. All zeros: of none. */
struct bw_inode_sums {
    uint64_t total;                    /**< modulo 2^64 */
    uint64_t last_inode;               /**< whose file extent ends last */
    uint64_t last_end;                 /**< where in the file it ends */
    uint64_t first_inode, first_start; /**< the first file extent */
    bool incomplete;                   /**< something in the range is lost */
    bool overlaps; /**< file extents overlap: the tree is to be looked at again */
};

/** Adds the sum of the leaves that follow. */
void bw_inode_sums_append(struct bw_inode_sums *sums, const struct bw_inode_sums *next);

/** The sum of the items of a leaf. Safe from any thread. */
struct bw_inode_sums bw_inode_sums_of_leaf(const struct bw_check *check,
                                           const struct bw_node *leaf);

#endif
