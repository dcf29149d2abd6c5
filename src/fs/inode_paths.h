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
    const struct bw_subvolume *listed; /* the paths of one of its inodes are being listed */
    struct bw_hard_links *names;       /* of that inode, unless it is the top directory */
    bool is_top;                       /* it is, and its path is the next one */
    struct bw_error *failure;
};

/** Begins with the absolute paths of an inode, from the top-level subvolume on: one for each of its
 * names, and none in a subvolume without a path. */
void bw_inode_paths_begin(struct bw_inode_paths *paths, const struct bw_subvolume *subvolume,
                          uint64_t inode);

/** The next path, a view that ends with the next call; its length does not count a NUL. False at
 * the end: `*path` is all zeros then. Reports unreadable blocks. */
bool bw_inode_paths_next(struct bw_inode_paths *paths, struct bw_bytes *path);

/** Why the list ended too early: BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_inode_paths_error(struct bw_inode_paths *paths);

/** The path of an entry with a known name in directory `directory`, like bw_inode_paths_next(); all
 * zeros if the directory has no path. */
struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, struct bw_bytes *path);

void bw_inode_paths_free(struct bw_inode_paths *paths);

#endif
