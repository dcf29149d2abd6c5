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

/** Whether it is a directory of which the trees know nothing: see BW_EMPTY_DIRECTORY. */
static inline bool bw_place_is_empty(const struct bw_place *place)
{
    return place->inode == BW_EMPTY_DIRECTORY;
}

/** What a mount makes up for such a directory: owner and times are those of the directory around
 * it. */
struct bw_inode bw_empty_directory_inode(const struct bw_inode *around);

/**
 * Where an entry of directory `directory` of `subvolume` leads. A subvolume is entered only if the
 * root tree confirms the entry. BW_ERROR_CORRUPT if the entry points to nothing that could be a
 * file.
 */
struct bw_error *bw_place_of_entry(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   uint64_t directory, const struct bw_dir_entry *entry,
                                   struct bw_place *place);

#endif
