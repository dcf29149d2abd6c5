/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The root blocks of trees by their id. */
#ifndef BW_FS_TREE_ITEMS_H
#define BW_FS_TREE_ITEMS_H

#include "fs/fs.h"

/** Finds any tree of a file system. BW_ERROR_NOT_FOUND if there is none with that id; other errors
 * if the root tree, which has to know it, cannot be read there. */
struct bw_error *bw_tree_find(struct bw_fs *fs, uint64_t id, struct bw_tree *tree);

#endif
