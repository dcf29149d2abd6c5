/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space that the data of files take, and how much of it is shared: the numbers of `btrfs
 * filesystem du`.
 *
 * They count the parts of extents that files use, in bytes of the files: not what is stored for
 * them if they are compressed, not the rest of extents that are used in part, and not metadata, so
 * that files whose data are inside the tree have 0. Data are shared if their extent has several
 * references in the extent tree, also from the same file, or if a tree block on the way to them is
 * shared with a snapshot. Source: btrfs_is_data_extent_shared() in the kernel's
 * fs/btrfs/backref.c.
 */
#ifndef BTRFS_WALK_DU_H
#define BTRFS_WALK_DU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_selection;

/** A file or a directory. The path is valid during the call only. */
struct bw_du_entry {
    const char *path; /**< as in struct bw_entry (walk.h): raw bytes, not terminated */
    size_t path_length;
    struct bw_place place;
    uint64_t depth;       /**< below the start; 0: the start itself */
    uint64_t files;       /**< files that are counted in it; 1 for a file */
    uint64_t total;       /**< bytes, of a directory those of all files in it */
    uint64_t exclusive;   /**< of those, the bytes that are not shared */
    uint64_t shared;      /**< those that are; both together are less than `total` where it is lost
                               what is shared */
    uint64_t set_shared;  /**< of the start: the shared bytes, each that files in it share with each
                               other counted once; otherwise 0 */
    bool sharing_known;   /**< the last three mean something: there is an extent tree */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Receives an entry. An error ends the work and is returned. */
typedef struct bw_error *bw_du_taker(void *context, const struct bw_du_entry *entry);

/** What to count, and who receives the result. */
struct bw_du_options {
    size_t struct_size; /**< sizeof(struct bw_du_options) */
    /** Where paths begin, and where to start, as in struct bw_walk_options. */
    const char *subvolume, *start;
    /** Conditions that files must meet to be counted, unchanged during the call; NULL: none. With
     * conditions, a directory in which nothing is counted is left out. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< deeper entries are counted, but not handed out */
    bw_du_taker *take;
    void *context;     /**< passed to `take` */
    unsigned mindepth; /**< entries less deep are counted, but not handed out */
    unsigned nested;   /**< enum bw_nested (walk.h): whether subvolumes below `start` are entered */
};

/**
 * Counts a file, or all that is below a directory. Regular files and directories are handed out in
 * the order of readdir(3), a directory after all that is in it, and a file with several names once,
 * by the first of them. All of them are kept in memory until the trees have been read.
 *
 * What is lost is reported, and the sizes are lower bounds then. BW_ERROR_NOT_FOUND if the start
 * does not exist, BW_ERROR_USAGE for wrong options, BW_ERROR_NO_MEMORY, or what `take` returned.
 */
struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *options);

#ifdef __cplusplus
}
#endif
#endif
