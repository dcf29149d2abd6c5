/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The root blocks that the superblock names: the present ones and, if they cannot be read, those of
 * older transactions. */
#ifndef BW_FS_ROOTS_H
#define BW_FS_ROOTS_H

#include "fs/fs.h"

/** Which of the trees that only the superblock knows. */
enum bw_super_root { BW_SUPER_CHUNK_ROOT, BW_SUPER_TREE_ROOT };

/**
 * Finds the newest chunk tree or root tree whose root block can be read, and says so if it is not
 * the present one. The error is that of the present root if there is none.
 */
struct bw_error *bw_find_super_root(struct bw_fs *fs, enum bw_super_root which,
                                    struct bw_tree *tree);

#endif
