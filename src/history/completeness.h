/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completeness of the trees whose blocks a scan has found. One pass assesses all trees of all
 * generations, from the leaves up: it reads every node once, and adds up the losses of its
 * children. A child counts only if it matches the pointer in its parent. */
#ifndef BW_HISTORY_COMPLETENESS_H
#define BW_HISTORY_COMPLETENESS_H

#include "history/block_index.h"

/** The losses of a tree or a part of it. Blocks below a lost node are not counted. */
struct bw_loss {
    uint32_t missing; /**< number of blocks; UINT32_MAX means that many or more */
    uint32_t trimmed; /**< how many of these were overwritten with zeros */
};

struct bw_completeness;

/** Assesses all blocks of a sorted index. The index and the file system must outlive the result.
 * Uses `threads` threads; 0: one per processor, at most 8. */
struct bw_error *bw_completeness_create(struct bw_fs *fs, const struct bw_found_index *index,
                                        unsigned threads, struct bw_completeness **completeness);
/** `completeness` may be NULL. */
void bw_completeness_destroy(struct bw_completeness *completeness);

/** Sets the losses of a tree. `*readable`: its root block was found. */
struct bw_error *bw_completeness_of_tree(struct bw_completeness *completeness,
                                         const struct bw_tree *tree, struct bw_loss *loss,
                                         bool *readable);

/** Whether a block of the index is a child of another one of the same tree, and therefore not a
 * root. */
bool bw_completeness_is_child(const struct bw_completeness *completeness,
                              const struct bw_found_block *block);

#endif
