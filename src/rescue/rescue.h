/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands in for a lost trunk: superblocks, the chunk tree and the root tree are put together
 * from what is found on the devices. The functions are called while a file system is opened, see
 * struct bw_fs_hooks. The trees that they make are in memory (btree/memory.h); to all readers they
 * are trees like others. What they did is said.
 */
#ifndef BW_RESCUE_RESCUE_H
#define BW_RESCUE_RESCUE_H

#include "btree/edit.h"
#include "fs/fs.h"

/** Without bw_fs_options.scan, no more than this is read in search of a trunk. */
#define BW_TRUNK_LIMIT (UINT64_C(64) << 30)

/** bw_fs_hooks.find_superblocks. (lost_superblocks.c) */
struct bw_error *bw_trunk_find_superblocks(struct bw_fs *fs, struct bw_image_set *set);

/** bw_fs_hooks.find_devices. (lost_devices.c) */
struct bw_error *bw_trunk_find_devices(struct bw_fs *fs);

/** bw_fs_hooks.find_chunks. (lost_chunks.c) */
struct bw_error *bw_trunk_find_chunks(struct bw_fs *fs, struct bw_error *why);

/** bw_fs_hooks.find_roots. (lost_roots.c) */
struct bw_error *bw_trunk_find_roots(struct bw_fs *fs, struct bw_error *why);

/** Begins a tree in memory, which takes the place of a lost one. */
struct bw_error *bw_trunk_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor);

/** What a hook returns: takes the error of its search, and that of what was lost unless the search
 * was a success and has reported it. */
struct bw_error *bw_trunk_give_up(struct bw_error *error, struct bw_error *why);

#endif
