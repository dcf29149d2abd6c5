/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replaces snapshots on file systems without them: a copy of a directory tree whose files are hard
 * links to the originals. A file is copied before its first change.
 */
#ifndef BW_STREAM_LINKED_TREE_H
#define BW_STREAM_LINKED_TREE_H

#include <sys/stat.h>

#include "base/number_set.h"
#include "btrfs-walk/error.h"

/** Removes the access control lists that a new file or directory has inherited from the directory
 * around it; `name` is "." for the directory itself. Nothing happens if it has none. */
void bw_remove_inherited(int directory, const char *name);

/** The trees of a receiver. All zeros is the state before the first one. */
struct bw_linked_tree {
    struct bw_number_set own;   /**< inodes that only the last tree has */
    struct bw_number_set named; /**< inodes with several names in a tree */
    uint64_t links;             /**< number of hard links between trees */
    uint64_t copied;            /**< bytes of files that were copied */
    char copy[32];              /**< name of the file that was copied last, in its directory */
    unsigned depth;             /**< number of directories above the current one */
};

/** Makes the directory `name` in `folder`, with links to all files of the directory `from`. Two
 * directories of each level are open at the same time. BW_ERROR_UNSUPPORTED if there are more than
 * 2000 levels. */
struct bw_error *bw_linked_tree_make(struct bw_linked_tree *tree, int from, int folder,
                                     const char *name);

/** Notes a new file of the last tree. */
struct bw_error *bw_linked_tree_add(struct bw_linked_tree *tree, int directory, const char *name);

/** Notes another name of a file. */
struct bw_error *bw_linked_tree_add_link(struct bw_linked_tree *tree, int directory,
                                         const char *name);

/** Makes sure that a file of the last tree, whose top is `top`, can be changed without changing
 * another tree. */
struct bw_error *bw_linked_tree_own(struct bw_linked_tree *tree, int top, int directory,
                                    const char *name);

/** Removes all names that a file has below `top`. */
struct bw_error *bw_linked_tree_remove(struct bw_linked_tree *tree, int top,
                                       const struct stat *file);

void bw_linked_tree_free(struct bw_linked_tree *tree);

#endif
