/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees that are printed: which there are, in which order, and what they are called. */
#ifndef BW_TREES_DUMP_H
#define BW_TREES_DUMP_H

#include "fs/fs.h"

/** A tree to be printed. */
struct bw_dump_tree {
    struct bw_tree tree;
    const char *name;         /**< as btrfs-progs call it: "checksum" */
    const struct bw_key *key; /**< of its root item; NULL: the superblock points to it */
    bool deleted;             /**< it is being deleted: blocks may be gone */
};

/** Receives a tree; a view that ends with the call. An error ends the iteration. */
typedef struct bw_error *bw_dump_tree_taker(void *context, const struct bw_dump_tree *tree);

/** Hands out the trees of an id, or all of them if `id` is NULL; with `replayed`, as they are after
 * the replay of the log. Roots that cannot be read are reported. */
struct bw_error *bw_dump_each_tree(struct bw_fs *fs, const uint64_t *id, bool replayed,
                                   bw_dump_tree_taker *take, void *context);

/** BW_ERROR_NOT_FOUND, which names what there is, unless there is a tree of that id. */
struct bw_error *bw_dump_tree_check(struct bw_fs *fs, uint64_t id);

#endif
