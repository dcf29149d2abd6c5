/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening an unmounted btrfs file system from its image files or block devices. Nothing is ever
 * written to them.
 */
#ifndef BTRFS_WALK_FS_H
#define BTRFS_WALK_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/probe.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An open file system. */
struct bw_fs;

/** Superblock copy to use: 0, 1 or 2, or the best one. */
enum { BW_ANY_SUPERBLOCK_COPY = -1 };

/** How to open a file system. */
struct bw_fs_options {
    const char *const *paths; /**< image files or block devices, in any order */
    size_t path_count;        /**< at least 1; may be 0 if a volfile names the images */
    int superblock_copy;      /**< 0, 1, 2 or BW_ANY_SUPERBLOCK_COPY */
    struct bw_graph_options graph;
    struct bw_probes *probes; /**< with who watches them (probe.h), must outlive it; NULL: nobody
                                 does */
    /** Called, if not NULL, when it is known which files will be read (bw_fs_is_input()) and before
     * the first image is opened: the time to open outputs, and to add consumers to `probes`. Its
     * error ends it all. */
    struct bw_error *(*planned)(void *context, const struct bw_fs *fs);
    void *planned_context;       /**< passed to planned */
    struct bw_reporter reporter; /**< its context must outlive the file system; its function may be
                                    NULL */
};

/** What opening found out about the whole. */
struct bw_fs_status {
    size_t missing_devices; /**< devices of the file system that were not given */
    size_t unused_images;   /**< images given that are no part of the file system, or have no
                               superblock; a second image of a device does not count */
    bool log_tree;          /**< there are changes that were fsynced but not committed */
    uint64_t damages;       /**< messages of severity BW_DAMAGE so far */
};

/**
 * Opens a file system: reads the superblocks, the chunk tree and the root tree. On success the
 * caller owns
 * `*fs`. BW_ERROR_SYSTEM: an image cannot be opened; BW_ERROR_NOT_BTRFS: none has a good
 * superblock; BW_ERROR_UNSUPPORTED: unknown feature bits; BW_ERROR_CORRUPT: chunk tree or root tree
 * cannot be read at all; BW_ERROR_USAGE: the graph asked for cannot be made.
 */
struct bw_error *bw_fs_open(const struct bw_fs_options *options, struct bw_fs **fs);

/** Closes a file system; NULL is allowed. */
void bw_fs_close(struct bw_fs *fs);

/** What is known so far; walking may add to it. Safe from any thread, as is bw_fs_bytes_read(). */
struct bw_fs_status bw_fs_status(const struct bw_fs *fs);

/** Bytes of metadata that were asked of the image files so far. */
uint64_t bw_fs_bytes_read(const struct bw_fs *fs);

#ifdef __cplusplus
}
#endif
#endif
