/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One inode of a subvolume, by its number. */
#ifndef BW_FS_INODE_H
#define BW_FS_INODE_H

#include "btree/block.h"
#include "format/items.h"

struct bw_fs;

/**
 * Reads the INODE_ITEM of an inode. BW_ERROR_NOT_FOUND if there is none; BW_ERROR_CORRUPT if it is
 * cut off; other errors if the part of the tree that would hold it cannot be read.
 */
struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode);

/**
 * Reads many inodes of one tree, each leaf they are in once. They are in ascending order of their
 * numbers, no two of them the same. `acls`: looks for access control lists as well. Lost blocks are
 * reported; what is not found stays so. Returns errors of memory.
 */
struct bw_error *bw_inodes_read(struct bw_fs *fs, const struct bw_tree *tree,
                                struct bw_wanted_inode *wanted, size_t count, bool acls);

#endif
