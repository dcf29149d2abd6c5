/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of `subvolumes --tree`: each subvolume below the one that it is in. */
#ifndef BW_CMD_SUBVOLUME_TREE_H
#define BW_CMD_SUBVOLUME_TREE_H

#include "btrfs-walk/subvolume.h"
#include "cli/command.h"

struct subvolume_branch;

/** All zeros is empty. */
struct subvolume_tree {
    struct subvolume_branch *branches;
    size_t count, capacity;
    struct bw_buffer texts;
};

/** Adds a subvolume with its attributes (NULL: none). */
struct bw_error *subvolume_tree_add(struct subvolume_tree *tree,
                                    const struct bw_subvolume_info *info, const char *attributes);

/** Writes a line for each subvolume, by path; those without a path come last. */
struct bw_error *subvolume_tree_write(struct subvolume_tree *tree, struct cmd_output *output);

/** Frees the memory. */
void subvolume_tree_free(struct subvolume_tree *tree);

#endif
