/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees that can be printed. */
#ifndef BW_TREES_DUMP_H
#define BW_TREES_DUMP_H

#include "fs/fs.h"

/** BW_ERROR_NOT_FOUND, which names what there is, unless there is a tree of that id. */
struct bw_error *bw_dump_tree_check(struct bw_fs *fs, uint64_t id);

#endif
