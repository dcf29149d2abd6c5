/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading many trees with many threads, level by level: when a block is read, all blocks that may
 * refer to it have been read. Leaves are read together with the nodes above them, in batches, so
 * only nodes have to be remembered. Blocks are announced before they are read.
 */
#ifndef BW_OWNERS_LEVEL_READER_H
#define BW_OWNERS_LEVEL_READER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "base/vector.h"
#include "owners/tree_list.h"

/** A block to be read, with a number for the caller, which the blocks below it inherit. */
struct bw_queued_block {
    struct bw_block_pointer pointer;
    uint32_t value;
    const struct bw_listed_tree *dropped; /**< a tree that is being deleted, which determines the
                                             remaining part of the block; NULL: the block is
                                             complete */
};

BW_VECTOR(bw_block_queue, struct bw_queued_block);

/** The functions that receive the results are called from the threads of the pool. */
struct bw_level_reader {
    struct bw_fs *fs;
    unsigned threads; /**< 0: as many as there are processors */
    /** Chooses which children of a node are to be read because of this one: sets wanted[slot],
     * which begins as false. NULL: all of them. */
    void (*node)(void *context, unsigned worker, const struct bw_queued_block *block,
                 const struct bw_node *node, bool *wanted);
    /** Receives a leaf. NULL: nothing to do. */
    void (*leaf)(void *context, unsigned worker, const struct bw_queued_block *block,
                 const struct bw_node *leaf);
    /** Called after a row of blocks read by one thread, with all blocks below it that are read at
     * once. NULL: nothing to do. */
    void (*row)(void *context, unsigned worker);
    /** Receives a block that cannot be read, and consumes the error. NULL: it is reported. */
    void (*lost)(void *context, const struct bw_queued_block *block, struct bw_error *error);
    /** Orders the blocks of a level: requested blocks, and more that the caller knows; returns
     * their number. NULL: in the order of requests. */
    size_t (*order)(void *context, unsigned level, const struct bw_block_queue *wanted);
    /** Fills in blocks `first` to `first + count - 1` of that order. */
    void (*pick)(void *context, unsigned level, size_t first, unsigned count,
                 struct bw_queued_block *blocks);
    void *context;
    /** Whether to continue; called in the calling thread only. NULL: yes. */
    bool (*progress)(void *context);
    void *progress_context;

    /** From here on: set by bw_level_reader_begin(). */
    struct bw_pool *pool;
    unsigned workers;
    struct bw_level_reader_worker *memory; /**< of each worker */
    pthread_mutex_t lock;                  /**< of the lists; the caller may use it, too */
    struct bw_block_queue lists[BW_MAX_LEVEL];
    atomic_bool no_memory; /**< may be set by the caller */
    atomic_bool stopped;
    atomic_bool has_losses;      /**< a block could not be read */
    atomic_uint_fast64_t blocks; /**< read so far */
};

/** Prepares it. Must be ended, even after an error. */
struct bw_error *bw_level_reader_begin(struct bw_level_reader *reader);

/** Adds a block to begin with. */
struct bw_error *bw_level_reader_add(struct bw_level_reader *reader,
                                     const struct bw_queued_block *block);

/** Reads all of them, and the requested blocks below them. */
struct bw_error *bw_level_reader_run(struct bw_level_reader *reader);

void bw_level_reader_end(struct bw_level_reader *reader);

#endif
