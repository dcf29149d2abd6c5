/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much is left of the trees whose blocks a scan has found. All trees of all generations are
 * judged in one pass, from the leaves up: every node is read once, and adds up what its
 * children have lost. A child counts only if it is the block that its parent promises.
 */
#ifndef BW_HISTORY_COMPLETENESS_H
#define BW_HISTORY_COMPLETENESS_H

#include "history/block_index.h"

/** What is lost of a tree or a part of it. What was below a lost node is not counted. */
struct bw_loss {
    uint32_t missing; /**< blocks; UINT32_MAX stands for that many and more */
    uint32_t trimmed; /**< of these: there are zeros in their place */
};

struct bw_completeness;

/** Judges all that is in a sorted index, which must outlive the completeness, as the file system
 * must. Uses `threads` threads, or for 0 one for each processor, at most 8. */
struct bw_error *bw_completeness_create(struct bw_fs *fs, const struct bw_found_index *index,
                                        unsigned threads, struct bw_completeness **completeness);
/** Frees it; NULL is allowed. */
void bw_completeness_destroy(struct bw_completeness *completeness);

/** What is lost of a tree. `*readable`: its root block is left. */
struct bw_loss bw_completeness_of_tree(struct bw_completeness *completeness,
                                       const struct bw_tree *tree, bool *readable);

/** Whether a block of the index is a child of another one of the same tree: then it is no root. */
bool bw_completeness_is_child(const struct bw_completeness *completeness,
                              const struct bw_found_block *block);

#endif
