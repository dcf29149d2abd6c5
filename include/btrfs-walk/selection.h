/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selections: conditions that files must meet to be listed, with the names that find(1) uses. The
 * conditions on names are tested first; an inode is looked up only for files that meet those, and
 * only if another condition needs it.
 */
#ifndef BTRFS_WALK_SELECTION_H
#define BTRFS_WALK_SELECTION_H

#include <stdbool.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A set of conditions, all of which a file must meet. Several threads may use it at once, as long
 * as it is not changed. */
struct bw_selection;

/** Creates an empty selection, which every file meets. The condition "mtime" is relative to the
 * time of this call. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_create(struct bw_selection **selection);

/** Frees a selection, after the last walk that uses it; NULL is allowed. */
void bw_selection_destroy(struct bw_selection *selection);

/**
 * Adds a condition. `argument` is copied.
 *
 * - "name", "iname": a pattern for the last component of the path; "iname" ignores case. Of several
 *   such patterns a file must match at least one.
 * - "path": a pattern for the whole path, in which '*' also matches '/'
 * - "regex": an extended regular expression for the whole path, matched byte by byte
 * - "exclude": leave out files whose name or path matches this pattern, and for directories also
 *   everything in them
 * - "size": [+-]N in blocks of 512 bytes, or with a suffix c w b k M G T; rounded up as find does
 * - "newer": modified after YYYY-MM-DD[ HH:MM[:SS[.N]]][Z|+HH:MM] (UTC by default), or @SECONDS
 * - "mtime": modified [+-]N days ago
 * - "uid", "gid", "links", "inum": [+-]N
 * - "perm": MODE in octal: exactly these permissions; -MODE: all of them; /MODE: any of them
 * - "empty": a file of size 0 or a directory without entries; takes no argument
 *
 * A file whose inode is lost does not meet conditions that need the inode. BW_ERROR_USAGE if there
 * is no such condition or its argument is wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_selection_add(struct bw_selection *selection, const char *condition,
                                  const char *argument);

/*
 * For programs that list directories by themselves. Of an entry that is not excluded, both the
 * name and the inode must be accepted. In these functions a NUL must follow the entry's path. They
 * may be called by several threads at once.
 */

/** Whether an "exclude" condition matches: the entry is left out, with everything below it. */
bool bw_selection_excludes_entry(const struct bw_selection *selection,
                                 const struct bw_entry *entry);

/** Whether an entry meets all conditions, but for "exclude", that need no inode. */
bool bw_selection_accepts_name(const struct bw_selection *selection, const struct bw_entry *entry);

/** Whether there are conditions that need an inode. */
bool bw_selection_needs_inode(const struct bw_selection *selection);

/** Whether an entry meets those; false if there are any and entry->inode is NULL. */
bool bw_selection_accepts_inode(const struct bw_selection *selection, const struct bw_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
