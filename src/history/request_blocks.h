/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests the tree blocks in which generations differ before these are opened and compared one
 * after the other: level by level for all of them, so that servers see few round trips. For images
 * that are not on servers, the functions do nothing. */
#ifndef BW_HISTORY_REQUEST_BLOCKS_H
#define BW_HISTORY_REQUEST_BLOCKS_H

#include "btree/block.h"
#include "btrfs-walk/history.h"
#include "fs/fs.h"

/** The number of generations to look at together. */
enum { BW_REQUESTED_GENERATIONS = 64 };

/** Whether an image is on a server, which keeps ranges that were requested. Any other storage would
 * read them twice. */
bool bw_history_is_served(const struct bw_fs *fs);

/** The items of a file in two trees: the subvolume that contains it, and the one where its path
 * begins. */
struct bw_requested_file {
    uint64_t trees[2]; /**< ids */
    uint64_t inode;
};

/** Requests the blocks of root trees, all subvolumes and checksums in which these generations and
 * the present one differ; with `file`, only those that lead to it, or to the top directories of its
 * trees. `only_roots`: only the blocks of root trees. Leaves unreadable blocks to the readers.
 * Fails only if memory runs out. */
struct bw_error *bw_request_blocks(struct bw_fs *present, const struct bw_generation_choice *states,
                                   size_t count, bool only_roots,
                                   const struct bw_requested_file *file);

/** A search for a key in a tree. */
struct bw_look_down {
    struct bw_block_pointer block; /**< initially the root of the tree */
    struct bw_key key;
};

/** Requests the blocks on the paths of searches, level by level for all of them; not those of
 * unreadable blocks. Changes the searches. Fails only if memory runs out. */
struct bw_error *bw_look_down(struct bw_fs *fs, struct bw_look_down *searches, size_t count);

#endif
