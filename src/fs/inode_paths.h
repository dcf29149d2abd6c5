/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paths of many inodes, all hard links of each. What is known of a subvolume, and of the
 * directories of the present one, is kept: ask for the inodes of one subvolume after those of
 * another.
 */
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

/**
 * Hands out the absolute paths of an inode from the top-level subvolume on, one for each of its
 * names; none for inodes of subvolumes that have no path. What cannot be read is reported. Returns
 * the error of `take`, or one of memory.
 */
struct bw_error *bw_inode_paths_list(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t inode,
                                     bw_path_taker *take, void *context);

/** The same for a name that is known: that of an entry of directory `directory`. */
struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, bw_path_taker *take,
                                     void *context);

/** Frees what it holds. */
void bw_inode_paths_free(struct bw_inode_paths *paths);

#endif
