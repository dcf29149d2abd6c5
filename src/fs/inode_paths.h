/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The paths of many inodes, including all hard links of each. The paths of subvolumes, and of the
 * directories of the current subvolume, are cached; therefore, request all inodes of one subvolume
 * before any inode of the next. */
#ifndef BW_FS_INODE_PATHS_H
#define BW_FS_INODE_PATHS_H

#include "base/buffer.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "fs/subvolume_paths.h"

/** A cached directory; its path is a part of the texts. */
struct bw_known_directory {
    uint64_t inode;
    uint32_t text, length; /**< length 0: it has no path */
};

BW_VECTOR(bw_known_directories, struct bw_known_directory);

/** Set the first members; the rest begins as zeros. Only one thread at a time may use it. */
struct bw_inode_paths {
    struct bw_fs *fs;
    bool with_deleted; /**< subvolumes that are being deleted have the path "/#ID" */

    /* Private. */
    struct bw_subvolume_paths subvolumes;
    bool loaded;
    const struct bw_subvolume *subvolume; /* the current one */
    struct bw_buffer top;                 /* its path; empty: it has none */
    struct bw_key_map known;              /* from inodes of its directories to indices in */
    struct bw_known_directories directories;
    struct bw_buffer texts; /* paths of directories; a path contains the paths of its parents */
    struct bw_buffer path;
};

/** Receives a path, which is valid until the call returns. */
typedef struct bw_error *bw_path_visitor(void *context, const char *path, size_t length);

/** Passes the absolute paths of an inode, from the top-level subvolume on, to `visit`: one for each
 * of its names, and none in a subvolume without a path. Reports unreadable blocks. Returns the
 * error of `visit`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_inode_paths_list(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t inode,
                                     bw_path_visitor *visit, void *context);

/** Passes the paths of an entry with a known name in directory `directory`. */
struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, bw_path_visitor *visit,
                                     void *context);

void bw_inode_paths_free(struct bw_inode_paths *paths);

#endif
