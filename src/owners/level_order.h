/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order in which the blocks of a level are read. Versions of one node, as snapshots have them,
 * follow one another, the oldest first: then owners/node_runs.c finds the longest runs of nodes
 * with the same children. Leaves are read in the order of their addresses.
 *
 * Between owners/count.c, which meets blocks, and owners/waves.c, which reads them.
 */
#ifndef BW_OWNERS_LEVEL_ORDER_H
#define BW_OWNERS_LEVEL_ORDER_H

#include "owners/shared_extents.h"
#include "owners/waves.h"

/** A node of the table of shared extents. */
struct bw_met_node {
    uint32_t place; /**< in the table */
    uint32_t group; /**< as bw_level_group() */
};

/** The nodes of a level that were met; of leaves only their number. */
struct bw_met_nodes {
    struct bw_met_node *nodes;
    size_t count, capacity;
};

/** All zeros is one without blocks. */
struct bw_level_order {
    struct bw_met_nodes met[BW_MAX_LEVEL];
    /** Of the level that is read, in order: indices of blocks with one reference, as they were
     * wanted; the number of these and the index of a block in the table for others. */
    uint32_t *numbers;
};

/** The group of nodes that begin with a key: versions of one node have the same. */
uint32_t bw_level_group(const struct bw_key *key);

/** Notes that a block of the table was met for the first time; false if memory runs out. */
bool bw_level_order_meet(struct bw_level_order *order, unsigned level, size_t place,
                         uint32_t group);

/** Fills in `numbers` for the blocks that are wanted and those that were met; `*count` is how many
 * these are. False if memory runs out, or there are more than fit in 32 bits. */
bool bw_level_order_make(struct bw_level_order *order, unsigned level,
                         const struct bw_wave_list *wanted, const struct bw_shared_extents *shared,
                         uint64_t newest, size_t *count);

void bw_level_order_free(struct bw_level_order *order);

#endif
