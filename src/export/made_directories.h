/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories that have left an image: their attributes come last, when nothing more is made in
 * them; and files that get some of theirs only then. */
#ifndef BW_EXPORT_MADE_DIRECTORIES_H
#define BW_EXPORT_MADE_DIRECTORIES_H

#include "base/buffer.h"
#include "btrfs-walk/inode.h"

/** A directory, or such a file. There may be millions. */
struct bw_made_directory {
    size_t path; /**< in the names */
    struct bw_place place;
    struct timespec atime, ctime, mtime;
    uint32_t path_length;
    uint32_t uid, gid;
    uint16_t mode, flags; /**< the lower bits of the inode's, which are all that have a meaning here
                           */
};

/** In the order they were made: a directory before those in it. All zeros is none. */
struct bw_made_directories {
    struct bw_made_directory *items;
    size_t count, capacity;
    struct bw_buffer names;
};

/** Frees what it holds. */
void bw_made_directories_free(struct bw_made_directories *directories);

/** Adds one. */
struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode);

/** What is known of its inode. */
struct bw_inode bw_made_directory_inode(const struct bw_made_directory *directory);

#endif
