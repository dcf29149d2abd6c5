/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of `subvolumes --tree`: each subvolume below the one it is nested in. */
#ifndef BW_CLI_INSPECT_SUBVOLUME_TREE_H
#define BW_CLI_INSPECT_SUBVOLUME_TREE_H

#include "base/vector.h"
#include "btrfs-walk/subvolume.h"
#include "cli/command.h"

struct subvolume_branch {
    uint64_t id;
    size_t path; /**< offset in the texts; its attributes follow, ended by a NUL */
    size_t path_length;
    uint32_t around; /**< number of the branch around this one, plus 1; 0: none */
    uint32_t depth;
};

BW_VECTOR(subvolume_branches, struct subvolume_branch);

/** The subvolumes. All zeros is an empty tree. */
struct subvolume_tree {
    struct subvolume_branches branches;
    struct bw_buffer texts;
};

/** Adds a subvolume; `attributes` may be NULL. */
struct bw_error *subvolume_tree_add(struct subvolume_tree *tree,
                                    const struct bw_subvolume_info *info, const char *attributes);

/** Writes a line for each subvolume, by path; those without a path come last. */
struct bw_error *subvolume_tree_write(struct subvolume_tree *tree, struct cmd_output *output);

void subvolume_tree_free(struct subvolume_tree *tree);

#endif
