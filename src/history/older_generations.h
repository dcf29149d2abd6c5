/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Iteration over the older generations of a file system, which opens one after the other. */
#ifndef BW_HISTORY_OLDER_GENERATIONS_H
#define BW_HISTORY_OLDER_GENERATIONS_H

#include "btrfs-walk/history.h"
#include "fs/fs.h"
#include "history/request_blocks.h"

/** The iteration. Initialize with bw_older_init(). */
struct bw_older {
    struct bw_fs *present;
    struct bw_fs_options images;
    const struct bw_generation_choice *states; /**< the newest first */
    struct bw_generation_choice *own; /**< the list if bw_older_init() allocated it, or NULL */
    size_t count, next;
    uint64_t since;  /**< skip generations before this one */
    uint64_t bytenr; /**< of the root tree opened last */
    size_t ahead;    /**< the blocks of the generations before this one were requested */
    const struct bw_requested_file *file; /**< of a file, set by the caller; NULL: all blocks */
    void (*progress)(void *context, size_t number, size_t count); /**< NULL: no progress reports */
    void *context;
};

/** Starts with the historic roots of an open file system; finds them if `states` is NULL. Always
 * call bw_older_end(). BW_ERROR_USAGE if `images` are wrong. */
struct bw_error *bw_older_init(struct bw_older *older, struct bw_fs *present,
                               const struct bw_fs_options *images,
                               const struct bw_generation_choice *states, size_t count);

/** Frees the list; opened file systems stay open. */
void bw_older_end(struct bw_older *older);

/** Opens the next generation; NULL after the last. If images are on servers, the blocks of several
 * generations are requested together. Skips those that cannot be opened, that are not
 * older than the current one, or that are equal to the previous one. Does not report losses,
 * because they are not damage of the file system. Fails only if memory runs out. */
struct bw_error *bw_older_next(struct bw_older *older, struct bw_fs **fs);

/** The time of the last change in any subvolume of a generation. */
struct bw_error *bw_older_time(struct bw_fs *fs, struct timespec *time);

#endif
