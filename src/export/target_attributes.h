/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restoring what is known of a file: owner, permissions, extended attributes, access lists, flags
 * and times.
 */
#ifndef BW_EXPORT_TARGET_ATTRIBUTES_H
#define BW_EXPORT_TARGET_ATTRIBUTES_H

#include <sys/stat.h>

#include "export/target.h"
#include "btrfs-walk/inode.h"

/** What is known. */
struct bw_target_attributes {
    const struct bw_inode *inode;
    const struct bw_xattr *xattrs; /**< a NUL is behind each name, and none in it */
    size_t xattr_count;
};

/** Permissions that a file of the image gets, as far as options decide them; of a symbolic link,
 * none. */
mode_t bw_target_mode(const struct bw_target *target, const struct bw_inode *inode);

/** Whether a time there is the one wanted, as far as the file system of the folder tells times. */
bool bw_target_is_same_time(const struct timespec *there, const struct timespec *wanted);

/** Whether a directory that is there has the owner and permissions that it would be given. */
bool bw_target_has_permissions(const struct bw_target *target, const struct stat *status,
                               const struct bw_inode *inode);

/**
 * Restores all of it, as far as the user may, but for the flags of bw_target_protect().
 * `descriptor` is of the file, which is in the open directory; of a symbolic link or a special file
 * it is O_PATH. What could not be restored goes to the target's `missed`, with `path`, as relative
 * to the folder.
 */
void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

/** The same for a directory, when nothing more is made in it, and its protection. */
void bw_target_restore_directory(struct bw_target *target, const char *path, size_t length,
                                 const struct bw_target_attributes *attributes);

/** Whether a file is to get flags that forbid changing it, linking to it or deleting it (immutable,
 * append-only): that needs `preserve`. */
bool bw_target_is_protected(const struct bw_target *target, const struct bw_inode *inode);

/** Restores these flags of a regular file, when it has all its names. */
void bw_target_protect(struct bw_target *target, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

#endif
