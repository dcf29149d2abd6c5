/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a path to the inode it names, as a mount of a subvolume at / would find it. The other
 * direction is in directory.h.
 */
#ifndef BW_FS_LOOKUP_H
#define BW_FS_LOOKUP_H

#include "format/items.h"
#include "fs/subvolume.h"

struct bw_fs;

/**
 * The inode that stands for a subvolume's entry which is no link to it, as those are that a
 * snapshot takes along: an empty directory, of which no tree knows anything. A mount shows the same
 * number.
 */
#define BW_EMPTY_DIRECTORY UINT64_C(2)

/** Where a path leads. */
struct bw_place {
    const struct bw_subvolume *subvolume; /**< of the file system's table */
    uint64_t inode;                       /**< there; BW_EMPTY_DIRECTORY: see above */
    uint8_t type;       /**< BW_FILE_*, as its entry says; its inode may say otherwise */
    uint64_t directory; /**< inode of the directory its entry is in, in the same subvolume; 0: a top
                           one */
};

/** The top directory of a subvolume. */
struct bw_place bw_place_top(const struct bw_subvolume *subvolume);

/** Whether it is a directory of which the trees know nothing: see BW_EMPTY_DIRECTORY. */
static inline bool bw_place_is_empty(const struct bw_place *place)
{
    return place->inode == BW_EMPTY_DIRECTORY;
}

/** What a mount makes up for such a directory: owner and times are those of the directory around
 * it. */
struct bw_inode bw_empty_directory_inode(const struct bw_inode *around);

/**
 * The inode of a place. One that a mount makes up (BW_EMPTY_DIRECTORY) looks as it does there:
 * owner and times are those of the directory around it, also that of the last change, for which a
 * mount takes the present. Errors as of bw_inode_read().
 */
struct bw_error *bw_place_inode(const struct bw_fs *fs, const struct bw_place *place,
                                struct bw_inode *inode);

/**
 * Where an entry of directory `directory` of `subvolume` leads. A subvolume is entered only if the
 * root tree confirms the entry. BW_ERROR_CORRUPT if the entry points to nothing that could be a
 * file.
 */
struct bw_error *bw_place_of_entry(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   uint64_t directory, const struct bw_dir_entry *entry,
                                   struct bw_place *place);

/**
 * Finds `path`, which begins at the top of `from` whether it starts with '/' or not; `from` NULL is
 * the top-level subvolume. "..", repeated slashes and symbolic links mean what they mean on a mount
 * of `from` at
 * /: nothing leads above it. The last name is followed if it is a link and `follow` is set, or a
 * '/' stands behind it. An empty path is none. BW_ERROR_NOT_FOUND, naming the part of the path, if
 * there is no such thing or too many links lead there; other errors if the part of the tree that
 * would tell cannot be read. Where entries are lost, finds what the directory's other entries, or
 * the inodes themselves, still know of the name.
 */
struct bw_error *bw_lookup(const struct bw_fs *fs, const struct bw_subvolume *from,
                           const char *path, bool follow, struct bw_place *place);

#endif
