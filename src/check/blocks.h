/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tree blocks with all their copies, each checked by itself; and which blocks have been seen. */
#ifndef BW_CHECK_BLOCKS_H
#define BW_CHECK_BLOCKS_H

#include "base/vector.h"
#include "check/check.h"
#include "check/inode_sums.h"

/** A tree block to be read. */
struct bw_checked_block {
    struct bw_block_pointer pointer; /**< set by the caller, and so is `buffer` */
    uint8_t *buffer;                 /**< receives a good mirror: nodesize bytes */
    bool good;                       /**< result: a good mirror was found */
    bool skipped;                    /**< set by the caller: it is not to be read */

    /* While its mirrors are read. */
    bool in_chunk;               /**< a chunk contains its address */
    unsigned copies, all_copies; /**< stored ones, and with those that parity gives */
    unsigned good_copy;          /**< the first that is good; 0: none of those read so far */
    unsigned bad;                /**< how many are bad */
    bool bad_parity;             /**< parity gives a block that is bad */
    bool corrected; /**< none is good, but they were joined, or a flipped bit corrected */
};

/** Memory for reading copies that are compared; one thread at a time uses it. */
struct bw_copy_buffers {
    uint8_t *copies; /**< BW_BATCH blocks at most; NULL: not yet allocated */
};

/**
 * Reads all copies of up to bw_block_batch() blocks of a tree, or with a quick check the first that
 * is good, and reports those that are bad. Safe from any thread.
 */
void bw_check_blocks(struct bw_check *check, struct bw_copy_buffers *buffers,
                     const struct bw_tree *tree, struct bw_checked_block *blocks, unsigned count);

/** The location of a tree block, reached from a tree. */
struct bw_finding bw_block_location(const struct bw_tree *tree,
                                    const struct bw_block_pointer *pointer);

/** The result of visiting a block. */
enum bw_visit {
    BW_VISIT_FIRST,   /**< it has not been reached before */
    BW_VISIT_SHARED,  /**< it has, and its sums are known */
    BW_VISIT_CROSSED, /**< it has, in a place that cannot share it with this one */
};

/** Blocks that have been reached, by address. One bit each, and for those that may be shared, what
 * they add up to. Safe from any thread. NULL if memory runs out. */
struct bw_visited *bw_visited_create(void);
void bw_visited_destroy(struct bw_visited *visited);

/** Notes that a block is reached; with BW_VISIT_SHARED, `*sums` is set, unless memory ran out.
 * BW_VISIT_FIRST if the generation or first key in another parent was different. */
enum bw_visit bw_visit(struct bw_check *check, const struct bw_block_pointer *pointer,
                       struct bw_inode_sums *sums);

/** Lists the blocks in a range of addresses that have been reached, while no thread adds any. */
struct bw_error *bw_visited_in(const struct bw_check *check, uint64_t start, uint64_t end,
                               struct bw_numbers *list);

/** Keeps what a block that may be shared adds up to. A lost block replaces nothing. */
void bw_visited_keep(struct bw_check *check, const struct bw_block_pointer *pointer,
                     const struct bw_inode_sums *sums, bool is_lost);

#endif
