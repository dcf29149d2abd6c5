/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older states of a file system, opened one after the other. */
#ifndef BW_HISTORY_OLDER_GENERATIONS_H
#define BW_HISTORY_OLDER_GENERATIONS_H

#include "btrfs-walk/deleted.h"
#include "fs/fs.h"

/** States that are still to be opened. Started with bw_older_init(). */
struct bw_older {
    struct bw_fs *present;
    struct bw_fs_options images;
    const struct bw_state_choice *states; /**< the newest first */
    struct bw_state_choice *own;          /**< the states if this search found them; or NULL */
    size_t count, next;
    uint64_t since;  /**< none before this generation */
    uint64_t bytenr; /**< of the root tree of the last one */
    void (*progress)(void *context, size_t number, size_t count); /**< NULL: no progress reports */
    void *context;
};

/** Starts with the states of an open file system, after finding them if `states` is NULL. Call
 * bw_older_end() in any case. BW_ERROR_USAGE if `images` are wrong. */
struct bw_error *bw_older_init(struct bw_older *older, struct bw_fs *present,
                               const struct bw_fs_options *images,
                               const struct bw_state_choice *states, size_t count);

/** Frees what the search has found; states that were opened stay open. */
void bw_older_end(struct bw_older *older);

/** Opens the next state; NULL after the last. Skips states that cannot be opened, that are no older
 * than the present state, or that equal the previous state. Losses in a state are not reported,
 * since they are no damage of the file system. Fails only if memory runs out. */
struct bw_error *bw_older_next(struct bw_older *older, struct bw_fs **fs);

/** The time of the last change in any subvolume of a state. */
struct bw_error *bw_older_time(struct bw_fs *fs, struct timespec *time);

#endif
