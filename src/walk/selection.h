/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk's side of btrfs-walk/walk.h: names are tested when the entries of a directory are
 * read, inodes when they have been looked up.
 */
#ifndef BW_WALK_SELECTION_H
#define BW_WALK_SELECTION_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/glob.h"
#include "base/vector.h"
#include "btrfs-walk/walk.h"
#include "record/file.h"

/** An entry, with the facts from its directory. */
struct bw_named {
    const char *path; /**< absolute, with a NUL after it */
    size_t path_length;
    size_t name_length; /**< of the last name, with which the path ends; the top one is "/" */
    uint64_t number;    /**< of its inode */
    uint8_t type;       /**< BW_FILE_*, less than 8 */
};

BW_VECTOR_TYPE(bw_file_tests, struct bw_file_test);

struct bw_selection {
    struct bw_file_tests tests;
    bool has_exclude, has_inodes;
    int64_t now; /**< nanoseconds since 1970 */
    struct bw_glob glob;
};

/** Whether an "exclude" matches; false if `selection` is NULL. */
bool bw_selection_excludes(const struct bw_selection *selection, const struct bw_named *named);

/** Whether all other conditions are met that need no inode. Safe from any thread, as are the
 * others. */
bool bw_selection_takes_name(const struct bw_selection *selection, const struct bw_named *named);

/** Whether the conditions are met that need one. False if there are any and the inode is not known.
 */
bool bw_selection_takes_inode(const struct bw_selection *selection,
                              const struct bw_walked_file *file);

/*
 * The choice of a walk: types, depth, a selection. Tasks and recovery use it for each entry that
 * they find: whether the entry is listed, and a directory entered.
 */

/** The choice of a whole walk. It does not change while tasks run. */
struct bw_choice {
    bool is_plain;                        /**< all regular files, and nothing else */
    unsigned types;                       /**< a bit for each BW_FILE_* */
    const struct bw_selection *selection; /**< NULL: none */
    bool has_maxdepth;
    unsigned maxdepth, mindepth;
    unsigned start_depth; /**< how many names the path of the start has */
    unsigned part, parts; /**< only entries in this part of so many; 0: all */
};

/** The type in an entry, or BW_FILE_UNKNOWN if it is invalid. */
static inline uint8_t bw_known_type(uint8_t type)
{
    return type <= BW_FILE_SYMLINK ? type : BW_FILE_UNKNOWN;
}

/** The choice that the options make. */
struct bw_choice bw_choice_of(const struct bw_walk_options *options);

/** Sets the path of the directory that depth is counted from, '/' at both ends; with `single`, from
 * an entry of it. */
void bw_choice_start(struct bw_choice *choice, const char *path, size_t length, bool single);

/** How deep below the start something lies; 0 if depth does not matter. */
unsigned bw_choice_depth(const struct bw_choice *choice, const char *path, size_t length);

/** Whether the entries of a directory at this depth are wanted. */
static inline bool bw_choice_enters(const struct bw_choice *choice, unsigned depth)
{
    return !choice->has_maxdepth || depth < choice->maxdepth;
}

/** Whether an entry at this depth that is not excluded is listed, unless its inode is rejected
 * later.
 */
bool bw_choice_lists(const struct bw_choice *choice, uint64_t subvolume,
                     const struct bw_named *named, unsigned depth);

#endif
