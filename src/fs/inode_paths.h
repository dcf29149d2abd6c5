/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths of many inodes, all hard links of each. Paths of subvolumes, and of the directories of
 * the current subvolume, are cached. So request all inodes of one subvolume before the inodes of
 * the next. */
#ifndef BW_FS_INODE_PATHS_H
#define BW_FS_INODE_PATHS_H

#include "base/buffer.h"
#include "base/map.h"
#include "fs/subvolume_paths.h"

/** Where the path of a directory is. */
struct bw_known_directory {
    uint64_t inode;
    uint32_t text, length; /**< length 0: it has none */
};

/** All zeros but the first members is a new one. One thread at a time may use it. */
struct bw_inode_paths {
    struct bw_fs *fs;
    bool with_deleted; /**< subvolumes that are being deleted have a path, "/#ID" */

    /* Private. */
    struct bw_subvolume_paths subvolumes;
    bool loaded;
    const struct bw_subvolume *subvolume; /* the present one */
    struct bw_buffer top;                 /* its path; empty: it has none */
    struct bw_map known;                  /* its directories: their indexes in */
    struct bw_known_directory *directories;
    size_t count, capacity;
    struct bw_buffer texts; /* their paths; one that leads to another has the beginning of its */
    struct bw_buffer path;
};

/** Receives a path, a view that ends with the call. */
typedef struct bw_error *bw_path_taker(void *context, const char *path, size_t length);

/** Passes the absolute paths of an inode, from the top-level subvolume on, to `take`: one for each
 * of its names, and none in a subvolume without a path. Unreadable blocks are reported. Returns the
 * error of `take`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_inode_paths_list(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t inode,
                                     bw_path_taker *take, void *context);

/** The same for one known name: the name of an entry of directory `directory`. */
struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, bw_path_taker *take,
                                     void *context);

/** Frees what it holds. */
void bw_inode_paths_free(struct bw_inode_paths *paths);

#endif
