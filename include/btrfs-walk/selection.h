/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Selections: which of the files that a walk comes past are listed, in the words of find(1). What
 * only needs names is tried first; only for what passes, and only if a condition asks for it, is an
 * inode looked up.
 */
#ifndef BTRFS_WALK_SELECTION_H
#define BTRFS_WALK_SELECTION_H

#include <stdbool.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Conditions that all have to be met. While it is not changed, any number of threads may use it.
 */
struct bw_selection;

/** Makes an empty one, which selects all. "mtime" counts from now on. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_create(struct bw_selection **selection);

/** Frees it, after the last walk that uses it; NULL is allowed. */
void bw_selection_destroy(struct bw_selection *selection);

/**
 * Adds a condition; `argument` is its text, copied.
 *
 * - "name", "iname": pattern for the last name of the path, with case or without; of several one
 * has to match
 * - "path": pattern for the whole path; '*' stands for '/', too
 * - "regex": extended regular expression for the whole path, by bytes
 * - "exclude": what matches this pattern by name or by path is left out, a directory with all that
 * is in it
 * - "size": [+-]N, in blocks of 512 bytes or with one of the letters c w b k M G T; rounded up as
 * find does
 * - "newer": changed after a date, YYYY-MM-DD[ HH:MM[:SS[.N]]][Z|+HH:MM], in UTC unless it says
 * otherwise; or @SECONDS since 1970
 * - "mtime": [+-]N days ago
 * - "uid", "gid", "links", "inum": [+-]N
 * - "perm": octal MODE, exactly; -MODE: all of its bits; /MODE: any of them
 * - "empty": a file of size 0 or a directory without entries; no argument
 *
 * What is known of no file whose inode is lost does not count as met. BW_ERROR_USAGE: no condition
 * has that name, or its argument makes no sense; BW_ERROR_NO_MEMORY.
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
