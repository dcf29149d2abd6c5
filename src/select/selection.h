/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk's side of btrfs-walk/selection.h: names are tried when a directory's entries are gone
 * through, inodes when they have been looked up.
 */
#ifndef BW_WALK_SELECTION_H
#define BW_WALK_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/selection.h"
#include "record/file.h"

/** An entry as far as its directory tells. */
struct bw_named {
    const char *path; /**< absolute, with a NUL behind it */
    size_t path_length;
    size_t name_length; /**< of the last name, with which the path ends; the top one is "/" */
    uint64_t number;    /**< of its inode */
    uint8_t type;       /**< BW_FILE_*, less than 8 */
};

/** Whether there are no conditions. */
bool bw_selection_is_empty(const struct bw_selection *selection);

/** What has to be known of a file beyond its name: BW_FILE_NEEDS_* flags. */
unsigned bw_selection_needs(const struct bw_selection *selection);

/** Whether an "exclude" matches. */
bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named);

/** Whether all other conditions are met that need no inode. Safe from any thread, as are the
 * others. */
bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named);

/** Whether those are met that need one. False if the inode is not known and there are any. */
bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file);

#endif
