/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The versions of a file: what older states of a file system have at its path, or under another
 * name, if it was renamed.
 */
#ifndef BTRFS_WALK_VERSIONS_H
#define BTRFS_WALK_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/diff.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A version: a file as one or more states that follow one another have it. */
struct bw_version {
    struct bw_fs *fs;      /**< the newest of these states, open until the call ends */
    uint64_t generation;   /**< of that state */
    uint64_t first;        /**< generation of the oldest of these states */
    uint64_t tree_root;    /**< logical address of the root of the root tree of the newest */
    struct timespec time;  /**< of the last change in that state */
    struct bw_place place; /**< of the file in it */
    struct bw_inode inode; /**< what its inode holds there */
    const char *path;      /**< there, from bw_versions_options.subvolume; raw bytes, not
                              terminated */
    size_t path_length;
    unsigned changes;     /**< what differs from the version before: enum bw_difference_changes */
    unsigned unknown;     /**< what could not be compared with it */
    bool replaced;        /**< the version before was another file */
    bool is_oldest;       /**< there is no version before that is known */
    bool renamed;         /**< the version before is the same file under another name */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Receives a version. An error ends the search and is returned. */
typedef struct bw_error *bw_version_taker(void *context, const struct bw_version *version);

/** Which file, and who receives its versions. */
struct bw_versions_options {
    size_t struct_size; /**< sizeof(struct bw_versions_options) */
    /** How the present file system was opened. Its functions, probes and state are not used. */
    const struct bw_fs_options *images;
    /** The older states, the newest first; NULL: those that bw_past_open() finds by itself. */
    const struct bw_state_choice *states;
    size_t state_count;
    const char *path; /**< from `subvolume`; a link at its end is not followed */
    bool all;         /**< each state is a version of its own, even if nothing differs */
    bw_version_taker *take;
    void *context;
    /** Told of each state that is about to be opened: its number, from 1 on, and of how many. May
     * be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    /** The subvolume at which paths begin, as in struct bw_walk_options (walk.h), of the present;
     * older states are searched for it by its id. NULL: the top-level one. */
    const char *subvolume;
};

/**
 * Hands out the versions of a file, the newest first. In a state that has nothing at the path, the
 * file is looked for by its subvolume, its inode number and the generation of its inode. Contents
 * are compared by extents and checksums, and read only where those cannot tell.
 *
 * What is lost of an older state is reported to nobody. BW_ERROR_NOT_FOUND if no state has the
 * file; BW_ERROR_USAGE if the options are wrong; the error of `take`; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_versions(struct bw_fs *present, const struct bw_versions_options *options);

#ifdef __cplusplus
}
#endif
#endif
