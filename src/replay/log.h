/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Log trees, read into memory as a whole: they are small, and each of their items is wanted. There
 * is one for each subvolume in which something was fsynced since the last commit, and one that
 * lists those. Source: fs/btrfs/tree-log.c of the kernel.
 */
#ifndef BW_REPLAY_LOG_H
#define BW_REPLAY_LOG_H

#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "fs/fs.h"

/** The items of a log tree. All zeros is none. */
struct bw_log {
    struct bw_item *items; /**< ascending */
    size_t count, capacity;
    uint8_t **leaves; /**< which they are views on */
    size_t leaf_count, leaf_capacity;
    struct bw_log_loss *losses; /**< keys whose items cannot be read */
    size_t loss_count, loss_capacity;
};

/** Keys from `first` on and less than `end`. */
struct bw_log_loss {
    struct bw_key first, end;
};

/** Reads a log tree. Parts that cannot be read are reported, with `name` in front, and left out.
 * Fails only if memory runs out. */
struct bw_error *bw_log_load(struct bw_fs *fs, const struct bw_root_pointer *root, const char *name,
                             struct bw_log *log);

/** Frees the items. */
void bw_log_free(struct bw_log *log);

/** The number of the first item whose key is at least `key`. */
size_t bw_log_first(const struct bw_log *log, const struct bw_key *key);

/** The item of a key; NULL if there is none. */
const struct bw_item *bw_log_find(const struct bw_log *log, const struct bw_key *key);

/** Whether the log may have had an item of a key that it does not have now. */
bool bw_log_is_lost(const struct bw_log *log, const struct bw_key *key);

#endif
