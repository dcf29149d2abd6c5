/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a file is made of, in numbers: its extents by kind and compression. */
#ifndef BW_FS_EXTENT_COUNT_H
#define BW_FS_EXTENT_COUNT_H

#include "btree/block.h"
#include "format/file_extent.h"

struct bw_fs;

/** Counts the extents of an inode; what cannot be read is reported, and not counted. Returns errors
 * of memory. */
struct bw_error *bw_extents_count(struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                  struct bw_extent_count *count);

#endif
