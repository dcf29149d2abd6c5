/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the items of a subvolume say about its inodes, as a sum: links, names, sizes and extents
 * enter it so that a consistent subvolume adds up to zero, in whatever order its leaves are read.
 * The sum of a node is that of its children, so a block that snapshots share is read once. A tree
 * with a rest is looked at again by inodes.c.
 *
 * What depends on the order of items goes beside the sum: whether the items of an inode begin with
 * its INODE_ITEM, and its file extents follow each other. Of a range, that is open for the inode
 * that it begins with, and for the one it ends with.
 */
#ifndef BW_CHECK_INODE_SUMS_H
#define BW_CHECK_INODE_SUMS_H

#include "check/check.h"

/** The sum of a range of leaves that follow each other. All zeros: of none. 80 bytes, kept for
 * each block that snapshots share. */
struct bw_inode_sums {
    uint64_t total;        /**< modulo 2^64 */
    uint64_t parents;      /**< the same of which directory lies in which */
    uint64_t first_inode;  /**< the range begins with items of it, but not its INODE_ITEM; 0: no */
    uint64_t first_start;  /**< where its first file extent begins; UINT64_MAX: it has none */
    uint64_t first_gap;    /**< where the first gap in its extents is; UINT64_MAX: there is none */
    uint64_t last_inode;   /**< of the last item */
    uint64_t last_end;     /**< where its extents end */
    uint64_t last_size;    /**< how much they have to cover, if the range has its INODE_ITEM */
    uint16_t first_stored; /**< bytes of `first_inode` that are stored in an item */
    uint16_t last_most;    /**< how many that may be, if the range has its INODE_ITEM */
    uint16_t first_nul;    /**< where the first NUL is in what `first_inode` has stored in an item;
                              UINT16_MAX: nowhere */
    uint8_t last_type;     /**< of `last_inode`, if the range has its INODE_ITEM */
    bool moved;            /**< a directory has a lower number than the one that it lies in */
    bool incomplete;       /**< something in the range is lost */
    bool broken;           /**< the order is wrong: the tree is to be looked at again */
};

/** Adds the sum of the leaves that follow. */
void bw_inode_sums_append(struct bw_inode_sums *sums, const struct bw_inode_sums *next);

/** What a whole tree adds up to; 0: its inodes are consistent. */
uint64_t bw_inode_sums_total(const struct bw_inode_sums *sums);

/** The sum of the items of a leaf. Safe from any thread. */
struct bw_inode_sums bw_inode_sums_of_leaf(const struct bw_check *check,
                                           const struct bw_node *leaf);

#endif
