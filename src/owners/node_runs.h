/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Versions of tree nodes, as snapshots have them. They are read one after the other, the oldest
 * first. They have much the same children in the same slots, so a child is reported once for a run
 * of nodes, with the set of all subvolumes that reach one of them: a set grows by many at once,
 * whichever thread reads the nodes.
 *
 * Used by owners/shares.c, which finds blocks, with owners/level_reader.c, which reads them.
 */
#ifndef BW_OWNERS_NODE_RUNS_H
#define BW_OWNERS_NODE_RUNS_H

#include <pthread.h>

#include "base/vector.h"
#include "ondisk/node.h"
#include "owners/level_reader.h"
#include "owners/root_sets.h"
#include "owners/shared_extents.h"

/* The order in which the blocks of a level are read: versions of one node follow one another, and
 * leaves are in the order of their addresses. */

/** A node of the table of shared extents. */
struct bw_found_node {
    uint32_t place; /**< in the table */
    uint32_t group; /**< as bw_level_group() */
};

/** The nodes of a level that were found; of leaves only their number. */
BW_VECTOR(bw_found_nodes, struct bw_found_node);

/** All zeros: no blocks. */
struct bw_level_order {
    struct bw_found_nodes found[BW_MAX_LEVEL];
    /** The blocks of the current level, in order. A block with one reference has its index in the
     * order of requests. Other blocks follow: the number of the former, plus the block's index in
     * the table. */
    uint32_t *numbers;
};

/** The group of nodes that begin with a key: versions of one node have the same. */
uint32_t bw_level_group(const struct bw_key *key);

/** Notes that a block of the table was found for the first time; false if memory runs out. */
bool bw_level_order_add(struct bw_level_order *order, unsigned level, size_t place, uint32_t group);

/** Fills in `numbers` for the blocks that are wanted and those that were found; `*count` is how
 * many these are. False if memory runs out, or there are more than fit in 32 bits. */
bool bw_level_order_make(struct bw_level_order *order, unsigned level,
                         const struct bw_block_queue *wanted,
                         const struct bw_shared_extents *shared, uint64_t newest, size_t *count);

void bw_level_order_free(struct bw_level_order *order);

/* Runs of nodes with the same children. Each thread has its own. */

/** The most references that a block can make. */
enum { BW_MOST_REFERENCES = BW_MAX_NODESIZE / sizeof(struct bw_disk_item) };

/** A child of a node, or an extent of a leaf. */
struct bw_run_child {
    uint64_t bytenr;
    size_t shared;  /**< index in the table of shared extents; SIZE_MAX: not known */
    uint32_t value; /**< as there: age or length */
    uint32_t group; /**< of a node: as bw_level_group() */
    uint32_t since; /**< the first node of its run; for node_runs.c */
};

struct bw_node_runs;

/** Receives children. */
struct bw_run_receiver {
    struct bw_root_sets *sets;
    pthread_mutex_t *lock; /**< of the sets */
    /** Fills in `shared` of a child; returns whether it may be shared: others have no runs. */
    bool (*find)(void *context, struct bw_run_child *child);
    /** A child, with the set of those that reach a run of nodes (UINT32_MAX: memory ran out);
     * called with the lock. */
    void (*reach)(void *context, const struct bw_run_child *child, unsigned level, uint32_t set);
    void *context;
};

/** NULL if memory runs out. `receiver` must outlive it. */
struct bw_node_runs *bw_node_runs_create(const struct bw_run_receiver *receiver);
void bw_node_runs_destroy(struct bw_node_runs *runs);

/** Takes a node that the subvolumes of a set reach, from slot `begin` on; the age of a child is
 * `newest` less its generation. Sets alone[slot] for children that are not shared. */
void bw_node_runs_add(struct bw_node_runs *runs, const struct bw_node *node, uint32_t begin,
                      uint64_t newest, uint32_t set, bool *alone);

/** Ends all runs. */
void bw_node_runs_end(struct bw_node_runs *runs);

#endif
