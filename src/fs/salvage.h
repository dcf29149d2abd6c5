/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is left of a file whose inode is lost: its extents, which other leaves may hold. */
#ifndef BW_FS_SALVAGE_H
#define BW_FS_SALVAGE_H

#include "btree/block.h"
#include "format/items.h"

struct bw_fs;

/**
 * Makes an inode up for a regular file, by its extents that can be read: its size is where the last
 * one ends, so there may be more at the end than there was: zeros, or what the file had there
 * before it was cut. Owner root, mode 0600, one name, times 0. BW_ERROR_NOT_FOUND if no extent is
 * left. Lost blocks are reported.
 */
struct bw_error *bw_salvage_inode(struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                                  struct bw_inode *inode);

/** What the user is to be told of such a file. */
struct bw_error *bw_inode_salvaged(const char *path);

#endif
