/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for what was deleted, as its parts share it:
 *
 *     deleted.c: state by state --> deleted_find.c: inodes --> deleted_entries.c: entries
 */
#ifndef BW_HISTORY_DELETED_H
#define BW_HISTORY_DELETED_H

#include "base/pair_set.h"
#include "btrfs-walk/deleted.h"
#include "fs/fs.h"
#include "history/older_generations.h"

/** An inode that was deleted. */
struct bw_deleted_inode {
    const struct bw_subvolume *subvolume; /**< of the state that holds it */
    uint64_t number;
};

struct bw_deleted {
    struct bw_fs *present;
    struct bw_deleted_options options;
    struct bw_older older;
    struct bw_buffer path; /**< options.path with a '/' before it and none after it */
    struct bw_fs *newer;   /**< the state that came before; may be the present one */
    struct bw_fs *state;   /**< the one at hand; NULL before the first */
    bool at_end;           /**< the present state was handed out */
    struct bw_deleted_inode *inodes;
    size_t count, capacity;
    struct bw_pair_set known; /**< inodes that were handed out: subvolume, number and generation */
    struct bw_map gone;       /**< subvolumes that were handed out */
};

/** Finds what deleted->state holds, and deleted->newer and the present lack. Fails only if memory
 * runs out. */
struct bw_error *bw_deleted_find(struct bw_deleted *deleted);

/** Finds what the present state holds that is deleted: orphans, and subvolumes that no older state
 * held. Likewise. */
struct bw_error *bw_deleted_find_present(struct bw_deleted *deleted);

#endif
