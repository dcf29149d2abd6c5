/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk's side of btrfs-walk/selection.h: names are tested when the entries of a directory are
 * read, inodes when they have been looked up.
 */
#ifndef BW_SELECT_SELECTION_H
#define BW_SELECT_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wctype.h>

#include "btrfs-walk/selection.h"
#include "record/file.h"

/** An entry, as far as it is known from its directory. */
struct bw_named {
    const char *path; /**< absolute, with a NUL after it */
    size_t path_length;
    size_t name_length; /**< of the last name, with which the path ends; the top one is "/" */
    uint64_t number;    /**< of its inode */
    uint8_t type;       /**< BW_FILE_*, less than 8 */
};

/** A set of conditions that a file must meet: a range in the array of all. */
struct bw_alternative {
    size_t first, end;
    unsigned types;     /**< a bit for each BW_FILE_*; 0: none is named */
    unsigned not_types; /**< and none of these */
    bool has_any_name;  /**< there are conditions of which one must be met */
};

struct bw_selection {
    struct bw_condition *conditions;
    size_t count, capacity;
    struct bw_alternative *alternatives; /**< at least one */
    size_t alternative_count, alternative_capacity;
    unsigned default_types; /**< of alternatives without a type */
    bool has[4];            /**< whether there are conditions of each list (condition.h) */
    bool negates;           /**< the next condition is to be negated */
    int64_t now;            /**< nanoseconds since 1970 */
    locale_t locale;        /**< knows the case of all letters; 0: only those of ASCII are known */
};

/** Whether an "exclude" matches; false if `selection` is NULL. */
bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named);

/** Whether all other conditions are met that need no inode. Safe from any thread, as are the
 * others. */
bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named);

/** Whether those are met that need one. False if there are any and the inode is not known. If there
 * are several alternatives, all is tested, and a NUL must follow the path. */
bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file);

#endif
