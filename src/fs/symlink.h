/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a symbolic link points to. */
#ifndef BW_FS_SYMLINK_H
#define BW_FS_SYMLINK_H

#include "base/buffer.h"
#include "btree/block.h"

struct bw_fs;

/**
 * Appends the target of the symbolic link with this inode number: raw bytes, without a NUL, as a
 * mount would tell it, that is up to the first NUL. BW_ERROR_NOT_FOUND if the inode has no target,
 * BW_ERROR_CORRUPT if what it has makes no sense or is longer than a link can be.
 */
struct bw_error *bw_symlink_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                 struct bw_buffer *target);

#endif
