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

/** A set of conditions, all of which a file must meet; or several such sets (bw_selection_or()), of
 * which it must meet one; in place of a condition there may be such sets in parentheses
 * (bw_selection_open()). Several threads may use it at once, as long as it is not changed. */
struct bw_selection;

/** Creates an empty selection, which every file meets. Conditions on ages are relative to
 * the time of this call. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_create(struct bw_selection **selection);

/** Frees a selection, after the last walk that uses it; NULL is allowed. */
void bw_selection_destroy(struct bw_selection *selection);

/**
 * Adds a condition. `argument` is copied.
 *
 * - "name", "iname": a pattern for the last component of the path; "iname" ignores case. Of several
 *   such patterns a file must match at least one.
 * - "path", "wholename", "ipath": a pattern for the whole path, in which '*' also matches '/';
 *   "ipath" ignores case
 * - "regex", "iregex": an extended regular expression for the whole path, matched byte by byte;
 *   "iregex" ignores the case of ASCII
 * - "exclude": leave out files whose name or path matches this pattern, and for directories also
 *   everything in them, whatever else is selected
 * - "size": [+-]N in blocks of 512 bytes, or with a suffix c w b k M G T, or MiB or MB and the
 * like; rounded up as find does
 * - "newer", "newermt": modified after YYYY-MM-DD[ HH:MM[:SS[.N]]][Z|+HH:MM] (UTC by default), or
 *   @SECONDS; "newerat", "newerct", "newerBt": the same for the times of the last access, the last
 *   change of the inode, and the creation
 * - "mtime", "atime", "ctime": [+-]N whole days ago
 * - "mmin", "amin", "cmin": [+-]N minutes ago; N alone is the minute that ended N - 1 minutes ago
 * - "uid", "gid", "links", "inum": [+-]N
 * - "user", "group": a number, or a name that bw_selection_prepare() looks up in the image
 * - "perm": MODE, octal or symbolic as of chmod(1): exactly these permissions; -MODE: all of them;
 *   /MODE: any of them
 * - "empty": a file of size 0 or a directory without entries; takes no argument
 *
 * A file whose inode is lost does not meet conditions that need the inode, negated or not.
 * BW_ERROR_USAGE if there is no such condition or its argument is wrong; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_selection_add(struct bw_selection *selection, const char *condition,
                                  const char *argument);

/** Adds a condition on the type: one of enum bw_walk_types. Several add up. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_add_types(struct bw_selection *selection, unsigned types);

/** Negates the condition that is added next, or the parentheses that are opened. A second call
 * takes back the first. */
struct bw_error *bw_selection_not(struct bw_selection *selection);

/** Begins another set of conditions. BW_ERROR_USAGE if the set before it has none;
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_or(struct bw_selection *selection);

/** Separates patterns of names, and types, of which otherwise one has to be met: what comes before
 * it and what comes after it must be met both. Errors as of bw_selection_or(). */
struct bw_error *bw_selection_and(struct bw_selection *selection);

/** Opens parentheses: what follows up to bw_selection_close() is one condition. "exclude" holds
 * everywhere, also from there. BW_ERROR_USAGE if too many are open; BW_ERROR_NO_MEMORY. */
struct bw_error *bw_selection_open(struct bw_selection *selection);

/** Closes them. BW_ERROR_USAGE if none are open, or there is no condition in them. */
struct bw_error *bw_selection_close(struct bw_selection *selection);

/** Makes sets of conditions without a type select these: a file is of such a type, or meets
 * conditions on its type. Returns all types that can be selected then. */
unsigned bw_selection_default_types(struct bw_selection *selection, unsigned types);

/**
 * Looks up the names of "user" and "group" in the people of an image, which are read from `from`
 * (people.h) if there are such names. To be called once, after the last condition; without it, such
 * names select nothing. BW_ERROR_USAGE if a condition is missing after an operator, or parentheses
 * are open; BW_ERROR_NOT_FOUND if there is no such name; errors as of bw_people_read().
 */
struct bw_error *bw_selection_prepare(struct bw_selection *selection, struct bw_fs *fs,
                                      const struct bw_subvolume *from);

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
