/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walking an open file system: the absolute path of every regular file, as `find -type f` shows them on a
 * mount of the top-level subvolume.
 */
#ifndef BTRFS_WALK_WALK_H
#define BTRFS_WALK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_rows;

/** What to walk and how to print it. All zeros but `consume` is a walk of everything. */
struct bw_walk_options {
    /** Only this subvolume, without those nested in it: "default", an id, or an absolute path ("/256" is a
     * path); NULL: all. */
    const char *subvolume;
    bool no_snapshots; /**< leave out the files of snapshots */
    bool escape;       /**< write unprintable bytes, spaces and backslashes as `ls -b` does */
    char terminator;   /**< byte behind each path, usually '\n' or 0 */
    /** What to write of each file (bw_rows_create()); NULL: its path, as `escape` and `terminator` say. */
    const struct bw_rows *rows;
    unsigned threads; /**< threads that read, at most 32; 0: one per processor, at most 8 */
    /**
     * Receives runs of whole paths, in order, never from two threads at once, but not always from the same
     * one. Must not be NULL. An error it returns ends the walk and is what bw_walk() returns;
     * BW_ERROR_STOPPED says that there is enough.
     */
    struct bw_error *(*consume)(void *context, const char *paths, size_t length);
    void *context; /**< passed to consume */
};

/** What a walk came past. */
struct bw_walk_summary {
    uint64_t files;       /**< paths of regular files */
    uint64_t directories; /**< directories entered, top directories of subvolumes included */
    uint64_t subvolumes;  /**< subvolumes entered */
    uint64_t lost_blocks; /**< tree blocks that could not be read, counted once a subvolume */
};

/**
 * Walks. Damage does not end it: it is reported through the file system's reporter (each lost block once a
 * file system), and what can be read is listed. Returns an error only if nothing more can be done:
 * BW_ERROR_NOT_FOUND if `subvolume` names none, BW_ERROR_NO_MEMORY, or what consume returned. `summary` may
 * be NULL. The order of the paths depends on the image and the options, not on the number of threads. One
 * walk of a file system at a time.
 */
struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *options,
                         struct bw_walk_summary *summary);

#ifdef __cplusplus
}
#endif
#endif
