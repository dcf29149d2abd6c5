/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adopting leaves: when an internal node is lost, the leaves below it are still there, and the
 * extent tree knows which blocks are in use by which tree.
 */
#ifndef BW_FS_ADOPT_H
#define BW_FS_ADOPT_H

#include "btree/adopted.h"
#include "fs/lost_ranges.h"

struct bw_fs;

/**
 * Fills `result`, which has none or old ones, with the leaves of a tree that lie below its lost
 * nodes; ranges of other than nodes do not matter. Without a readable extent tree it finds none, or
 * fewer. Fails only for want of memory.
 */
struct bw_error *bw_adopt_leaves(const struct bw_fs *fs, const struct bw_tree *tree,
                                 const struct bw_lost_range *lost, size_t lost_count,
                                 struct bw_adopted *result);

#endif
