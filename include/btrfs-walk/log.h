/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log tree of a file system that was not unmounted: which inodes it changes. What it changes
 * of them shows by comparison with a second handle that was opened with BW_LOG_IGNORE.
 */
#ifndef BTRFS_WALK_LOG_H
#define BTRFS_WALK_LOG_H

#include "btrfs-walk/fs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An inode that the log changes, makes or removes, or whose names it changes. */
struct bw_log_inode {
    uint64_t subvolume; /**< id */
    uint64_t inode;     /**< number */
};

/** Receives an inode; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_log_inode_taker(void *context, const struct bw_log_inode *inode);

/** Hands out those inodes, by ascending subvolume and number, each once. There are none unless the
 * log was replayed (struct bw_fs_status). */
struct bw_error *bw_log_inodes(const struct bw_fs *fs, bw_log_inode_taker *take, void *context);

#ifdef __cplusplus
}
#endif
#endif
