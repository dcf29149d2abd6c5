/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Directories without their entries: the paths of directories that were found in a tree, by the
 * references of their inodes up to the start of the walk. A directory is found only if a walk from
 * the start would enter it.
 */
#ifndef BW_WALK_ANCESTORS_H
#define BW_WALK_ANCESTORS_H

#include "btree/find_leaf.h"
#include "walk/known_files.h"
#include "walk/task.h"

/* Numbers of directories that have no place in the result of a task. */
#define BW_NOT_ENTERED (UINT32_MAX - 1) /**< not below the start, excluded, or too deep */
#define BW_UNRESOLVED  (UINT32_MAX - 2) /**< no known path leads to the start */

/** The directories whose numbers are known. All zeros is empty; only one thread may use it. */
struct bw_ancestors {
    struct bw_map numbers; /**< by inode */
    /** Inodes that will be needed: when an entry is read, those next to it are added, too. */
    uint64_t first, end;
    struct bw_known_files *files; /**< gets the files among them; NULL: they are not needed */

    /* Private. */
    struct bw_item_range references; /**< of the inode that was looked up last */
    struct bw_leaf_finder finder;    /**< of entries */
    bool has_finder;
    struct bw_ancestor *steps;
    size_t capacity;
    struct bw_buffer path;   /**< of the directory that others are added below */
    uint32_t path_directory; /**< number of the same */
    unsigned depth;          /**< of the same */
};

/** Forgets all directories, for another task or subvolume. */
void bw_ancestors_clear(struct bw_ancestors *ancestors, const struct bw_task_scope *scope);
void bw_ancestors_free(struct bw_ancestors *ancestors);

/** Remembers the number of a directory. */
struct bw_error *bw_ancestors_put(struct bw_ancestors *ancestors, uint64_t inode, uint32_t number);

/**
 * Finds the number of a directory: 0 for the start, otherwise a number in `found`, to which it is
 * added with all directories above it, as walked; or one of those above. A reference counts only if
 * the parent has the entry, or the entry is lost. `leaf` may contain the directory's reference, and
 * may be NULL. Fails only if memory runs out.
 */
struct bw_error *bw_ancestors_find(struct bw_ancestors *ancestors,
                                   const struct bw_task_scope *scope, struct bw_packed *found,
                                   uint64_t inode, const struct bw_node *leaf, uint32_t *number);

#endif
