/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tree nodes that are read one after the other lead to. Snapshots have much the same children
 * in the same slots, so a child is told once for a run of nodes, with the set of all subvolumes
 * that reach one of them: a set grows by many at once, whichever thread reads the nodes.
 *
 * Between owners/waves.c, which reads nodes in batches, and owners/count.c. Each thread has its
 * own.
 */
#ifndef BW_OWNERS_NODE_RUNS_H
#define BW_OWNERS_NODE_RUNS_H

#include <pthread.h>

#include "ondisk/node.h"
#include "owners/root_sets.h"

/** The most references that a block can make. */
enum { BW_MOST_REFERENCES = BW_MAX_NODESIZE / sizeof(struct bw_disk_item) };

/** What a node or leaf leads to. */
struct bw_run_child {
    uint64_t bytenr;
    size_t shared;  /**< index in the table of shared extents; SIZE_MAX: not known */
    uint32_t value; /**< as there: age or length */
    uint32_t group; /**< of a node: as bw_level_group() */
    uint32_t since; /**< the first node of its run; for node_runs.c */
};

struct bw_node_runs;

/** Who is told about children. */
struct bw_run_taker {
    struct bw_root_sets *sets;
    pthread_mutex_t *lock; /**< of the sets */
    /** Fills in `shared` of a child; returns whether it may be shared: others have no runs. */
    bool (*find)(void *context, struct bw_run_child *child);
    /** A child, with the set of those that reach a run of nodes (UINT32_MAX: memory ran out);
     * called with the lock. */
    void (*reach)(void *context, const struct bw_run_child *child, unsigned level, uint32_t set);
    void *context;
};

/** NULL if memory runs out. `taker` must outlive it. */
struct bw_node_runs *bw_node_runs_create(const struct bw_run_taker *taker);
void bw_node_runs_destroy(struct bw_node_runs *runs);

/** Takes a node that the subvolumes of a set reach, from slot `begin` on; the age of a child is
 * `newest` less its generation. Sets alone[slot] for children that are not shared. */
void bw_node_runs_take(struct bw_node_runs *runs, const struct bw_node *node, uint32_t begin,
                       uint64_t newest, uint32_t set, bool *alone);

/** Ends all runs. */
void bw_node_runs_end(struct bw_node_runs *runs);

#endif
