/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a walk lists: types, depth, a selection. Tasks and recovery ask it about each entry that
 * they find: whether the entry is listed, and a directory entered.
 */
#ifndef BW_WALK_ENTRY_CHOICE_H
#define BW_WALK_ENTRY_CHOICE_H

#include <assert.h>

#include "btrfs-walk/walk.h"
#include "walk/selection.h"

/** The choice of a whole walk. It does not change while tasks run. */
struct bw_choice {
    bool is_plain;                        /**< all regular files, and nothing else */
    unsigned types;                       /**< a bit for each BW_FILE_* */
    const struct bw_selection *selection; /**< NULL: none */
    bool has_maxdepth;
    unsigned maxdepth, mindepth;
    unsigned start_depth; /**< how many names the path of the start has */
};

/** The type in an entry, or BW_FILE_UNKNOWN if there is no such type. */
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
bool bw_choice_lists(const struct bw_choice *choice, const struct bw_named *named, unsigned depth);

#endif
