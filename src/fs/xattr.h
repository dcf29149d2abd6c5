/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extended attributes of an inode. */
#ifndef BW_FS_XATTR_H
#define BW_FS_XATTR_H

#include "btree/block.h"
#include "format/items.h"

struct bw_fs;

/**
 * Hands out all attributes of an inode, in the order a mount lists them in. What is lost is
 * reported and costs itself. Returns the error of `take`, or one of memory.
 */
struct bw_error *bw_xattrs_read(struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                bw_xattr_taker *take, void *context);

/** The same for one XATTR_ITEM of the tree with the id `tree`. Returns the error of `take`. */
struct bw_error *bw_xattrs_of_item(struct bw_fs *fs, uint64_t tree, const struct bw_item *item,
                                   bw_xattr_taker *take, void *context);

#endif
