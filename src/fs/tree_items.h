/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding the root blocks of trees by id. */
#ifndef BW_FS_TREE_ITEMS_H
#define BW_FS_TREE_ITEMS_H

#include "fs/fs.h"

/** Finds a tree of a file system. BW_ERROR_NOT_FOUND if no tree has this id; other errors if the
 * relevant part of the root tree cannot be read. */
struct bw_error *bw_tree_find(struct bw_fs *fs, uint64_t id, struct bw_tree *tree);

/** Reads a verified tree block of any tree; `copy` counts from 1, 0: any good one. */
struct bw_error *bw_block_copy_read(struct bw_fs *fs, uint64_t bytenr, unsigned copy,
                                    uint8_t *bytes);

#endif
