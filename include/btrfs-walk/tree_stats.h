/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How large a tree is, how its blocks lie, and what is in it. Distances are those of logical
 * addresses, as in `btrfs inspect-internal tree-stats`.
 */
#ifndef BTRFS_WALK_TREE_STATS_H
#define BTRFS_WALK_TREE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

enum {
    BW_TREE_LEVELS = 8,   /**< the most levels that a tree can have */
    BW_SEEK_BUCKETS = 65, /**< of bw_tree_stats.seek_lengths */
    BW_KEY_TYPES = 256,   /**< types that a key can have */
};

/** Items of a type. */
struct bw_item_type_stats {
    uint64_t count;
    uint64_t bytes; /**< of the items, without their keys */
};

/** What a tree consists of. */
struct bw_tree_stats {
    uint64_t id;
    unsigned levels;                 /**< 1: the root is a leaf */
    uint64_t blocks[BW_TREE_LEVELS]; /**< those read on each level; level 0 are the leaves */
    uint64_t block_count;            /**< on all levels */
    uint64_t lost_blocks;    /**< those that cannot be read; what is below them is not counted */
    uint64_t bytes;          /**< of all blocks read */
    uint64_t items;          /**< in the leaves */
    uint64_t used_bytes;     /**< bytes of the leaves that hold items and their keys */
    uint64_t capacity_bytes; /**< bytes of the leaves that could */
    uint64_t inline_bytes;   /**< contents of files among the items, as stored */

    /**
     * A seek is needed where a child of a node does not lie right behind the child before it, or
     * the first one not right behind the node. Children that do form a cluster; a cluster counts
     * if it holds more than one block and a seek ends it.
     */
    uint64_t seeks, forward_seeks, backward_seeks;
    uint64_t seek_bytes;                    /**< sum of their lengths; UINT64_MAX: that, or more */
    uint64_t longest_seek;                  /**< in bytes */
    uint64_t seek_lengths[BW_SEEK_BUCKETS]; /**< how many are of n bits: from 2^(n-1) bytes up to,
                                                 but not including, 2^n */
    uint64_t clusters, cluster_bytes;       /**< how many, and the sum of their sizes */
    uint64_t smallest_cluster, largest_cluster; /**< in bytes; 0 if there is none */
    uint64_t lowest, highest;                   /**< logical addresses of the outermost blocks */

    struct bw_item_type_stats types[BW_KEY_TYPES]; /**< items by the type of their key */
    uint64_t reserved[8];                          /**< zeros: room for more members */
};

/**
 * Reads a whole tree, in batches and with constant memory. Blocks that cannot be read are counted
 * and reported. BW_ERROR_NOT_FOUND if there is no such tree; other errors if the root tree, which
 * has to know it, cannot be read there, or if memory runs out.
 */
struct bw_error *bw_tree_stats_read(struct bw_fs *fs, uint64_t tree_id,
                                    struct bw_tree_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
