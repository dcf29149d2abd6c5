/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restoring what is known of a file: owner, permissions, extended attributes, access lists and times. */
#ifndef BW_EXPORT_TARGET_ATTRIBUTES_H
#define BW_EXPORT_TARGET_ATTRIBUTES_H

#include "export/target.h"
#include "format/items.h"

/** What is known. */
struct bw_target_attributes {
    const struct bw_inode *inode;
    const struct bw_xattr *xattrs; /**< a NUL is behind each name */
    size_t xattr_count;
};

/**
 * Restores all of it, as far as the user may. `descriptor` is of the file; -1: it is target->name in the open
 * directory, a link or a special file. What could not be restored goes to the target's `missed`, with `path`,
 * as relative to the folder.
 */
void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

/** The same for a directory, when nothing more is made in it. */
void bw_target_restore_directory(struct bw_target *target, const char *path, size_t length,
                                 const struct bw_target_attributes *attributes);

#endif
