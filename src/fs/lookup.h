/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: from a path to an inode, as on a mount of a subvolume at / (lookup.c), and from an inode
 * up to its path (parents.c).
 */
#ifndef BW_FS_LOOKUP_H
#define BW_FS_LOOKUP_H

#include "base/buffer.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/inode.h"
#include "fs/subvolume.h"
#include "ondisk/items.h"

struct bw_fs;

/** Whether a place is a BW_EMPTY_DIRECTORY. */
static inline bool bw_place_is_empty(const struct bw_place *place)
{
    return place->inode == BW_EMPTY_DIRECTORY;
}

/** The inode that the kernel shows for an empty directory; its owner and times are copied from the
 * parent directory. */
struct bw_inode bw_empty_directory_inode(const struct bw_inode *around);

/**
 * The place that an entry of directory `directory` of `subvolume` leads to. A subvolume is entered
 * only if the root tree confirms the entry. BW_ERROR_CORRUPT if the entry cannot lead to a file.
 */
struct bw_error *bw_place_of_entry(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   uint64_t directory, const struct bw_dir_entry *entry,
                                   struct bw_place *place);

/** Like bw_lookup_name(), but only by the hash of the name. So a name that does not exist costs one
 * search, however large the directory is; a name whose DIR_ITEM is lost is not found. */
struct bw_error *bw_lookup_hashed(const struct bw_fs *fs, const struct bw_place *directory,
                                  const char *name, struct bw_place *place);

/* From an inode to its parents. */

/** A step from an inode to its parent directory. */
struct bw_parent_step {
    uint64_t parent; /**< inode of the parent directory */
    uint64_t index;  /**< offset of the DIR_INDEX key of its entry there */
    char name[BW_NAME_MAX];
    uint16_t name_length;
};

/** Prepends a name and a '/' to a path. */
struct bw_error *bw_path_prepend(struct bw_buffer *path, const char *name, size_t length);

/**
 * Finds the first name of an inode (INODE_REF or INODE_EXTREF). BW_ERROR_NOT_FOUND if it has none;
 * other errors if the part of the tree that may contain it cannot be read.
 */
struct bw_error *bw_inode_step_up(const struct bw_fs *fs, const struct bw_tree *tree,
                                  uint64_t inode, struct bw_parent_step *step);

/** The type (BW_FILE_*) of an entry of a directory, looked up by name through its DIR_ITEM;
 * BW_FILE_UNKNOWN if the directory has no such entry, or its block cannot be read. Fails only if
 * memory runs out. */
struct bw_error *bw_directory_entry_type(const struct bw_fs *fs, const struct bw_tree *tree,
                                         uint64_t directory, const void *name, size_t name_length,
                                         uint8_t *type);

/** Sets `path` to the absolute path of a directory, from `from` (NULL: the top-level subvolume),
 * with a '/' at both ends. BW_ERROR_NOT_FOUND if a subvolume in the path has no entry, or none of
 * them is `from`; BW_ERROR_CORRUPT if the path is damaged. */
struct bw_error *bw_directory_path(const struct bw_fs *fs, const struct bw_subvolume *from,
                                   const struct bw_subvolume *subvolume, uint64_t inode,
                                   struct bw_buffer *path);

#endif
