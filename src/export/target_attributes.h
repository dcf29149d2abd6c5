/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The attributes of files in a target: owner, permissions, flags, extended attributes and times. */
#ifndef BW_EXPORT_TARGET_ATTRIBUTES_H
#define BW_EXPORT_TARGET_ATTRIBUTES_H

#include "btrfs-walk/inode.h"
#include "export/target.h"

/** When flags can be set. */
enum bw_flag_time {
    BW_FLAGS_EMPTY,   /**< before anything is written: flags for the storage of data */
    BW_FLAGS_ANY,     /**< at any time */
    BW_FLAGS_PROTECT, /**< after everything else: immutable, append-only */
};

/** Sets those flags of an inode that the open file lacks, one by one. False with errno if one could
 * not be set. */
bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when);

/** Attributes to restore. */
struct bw_target_attributes {
    const struct bw_inode *inode;
    const struct bw_xattr *xattrs; /**< each name is NUL-terminated and contains no other NUL */
    size_t xattr_count;
};

/** Whether two times are equal, within the precision of the folder's file system. */
bool bw_target_is_same_time(const struct timespec *there, const struct timespec *wanted);

/** Whether an existing directory already has the owner and permissions that would be restored. */
bool bw_target_has_permissions(const struct bw_target *target, const struct stat *status,
                               const struct bw_inode *inode);

/**
 * Restores all attributes, as far as the user may, except those of bw_target_restore_last(). The
 * file is in the current directory; `descriptor` is O_PATH for a symbolic link or a special file.
 * Attributes that could not be restored are reported to the target's `missed` with `path`, which is
 * relative to the folder.
 */
void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

/** Restores the last attributes of an open file: see bw_target_restore_last(). */
void bw_target_restore_end(struct bw_target *target, int descriptor, const struct stat *status,
                           const char *path, size_t length,
                           const struct bw_target_attributes *attributes);

/** Whether an inode is a device node that is only made with `preserve`. */
bool bw_target_leaves_out(const struct bw_target *target, const struct bw_inode *inode);

/** Whether a file gets flags that forbid changing, linking or deleting it (immutable, append-only),
 * which needs `preserve`. */
bool bw_target_is_protected(const struct bw_target *target, const struct bw_inode *inode);

#endif
