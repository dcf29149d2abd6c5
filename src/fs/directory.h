/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From an inode up: by which name it hangs in which directory. The way a path is found without a
 * walk. */
#ifndef BW_FS_DIRECTORY_H
#define BW_FS_DIRECTORY_H

#include "base/buffer.h"
#include "btree/block.h"

struct bw_fs;

/** One step up. */
struct bw_parent_step {
    uint64_t parent; /**< inode of the directory above */
    char name[BW_NAME_MAX];
    uint16_t name_length;
};

/**
 * Finds the first name of an inode (INODE_REF or INODE_EXTREF). BW_ERROR_NOT_FOUND if it has none;
 * other errors if the part of the tree that would hold it cannot be read.
 */
struct bw_error *bw_inode_step_up(const struct bw_fs *fs, const struct bw_tree *tree,
                                  uint64_t inode, struct bw_parent_step *step);

/**
 * The type (BW_FILE_*) of an entry of a directory, looked up by name through its DIR_ITEM.
 * BW_ERROR_NOT_FOUND if there is none; other errors if the part of the tree that would hold it
 * cannot be read.
 */
struct bw_error *bw_directory_entry_type(const struct bw_fs *fs, const struct bw_tree *tree,
                                         uint64_t directory, const void *name, size_t name_length,
                                         uint8_t *type);

/** Puts the path of a directory ("a/b/", "" for the top one) in front of what `path` holds. */
struct bw_error *bw_directory_path(const struct bw_fs *fs, const struct bw_tree *tree,
                                   uint64_t inode, struct bw_buffer *path);

/**
 * The absolute path of a subvolume's top directory from the top-level subvolume, with a '/' at both
 * ends. BW_ERROR_NOT_FOUND if it does not hang there; BW_ERROR_CORRUPT if the way up is damaged.
 */
struct bw_error *bw_path_of_subvolume(const struct bw_fs *fs, uint64_t id, struct bw_buffer *path);

/** Finds a subvolume by id, by absolute path, or as "default". BW_ERROR_NOT_FOUND if there is none.
 */
struct bw_error *bw_subvolume_lookup(const struct bw_fs *fs, const char *text, uint64_t *id);

#endif
