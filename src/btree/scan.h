/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans of a tree, or of a range of its keys, in the order of keys, for callers that read many
 * leaves. Leaves are read in batches below each node of level 1. A block that cannot be read is
 * reported with its key range, and the scan continues after it. */
#ifndef BW_BTREE_SCAN_H
#define BW_BTREE_SCAN_H

#include "btree/block.h"

/** Memory for scans, for callers that start many of them. All zeros is empty. Only one scan at a
 * time may use it. */
struct bw_scan_buffers {
    uint8_t *nodes[BW_MAX_LEVEL]; /**< one block per level, allocated on first use */
    uint8_t *leaves;              /**< blocks of a batch */
    unsigned leaf_room;           /**< capacity of `leaves`, in blocks */
    struct bw_range *ranges;      /**< BW_MAX_CHILDREN of them, for announcing leaves */
};

/** Frees the memory and empties the structure. */
void bw_scan_buffers_free(struct bw_scan_buffers *buffers);

/** The keys to scan, and the functions that receive the results. Functions may be NULL where
 * noted. */
struct bw_scan {
    struct bw_key first, last; /**< the keys to read, inclusive */
    /** Continue where keys are wrong, and visit no block twice. For recovery. */
    bool lenient;
    /** Instead of a lost node, read the leaves that the reader's adopter finds. If they contain all
     * selected keys, nothing is lost. */
    bool adopt;
    /** Announce all selected leaves below a node before reading the first; if they are close
     * together, also as many after them, which the next scan will probably read. So `select` is
     * called twice for each leaf. Ignored if lenient. */
    bool announce;
    /** Leave out the last items of a leaf if they belong in later leaves. */
    bool cut;
    struct bw_scan_buffers *buffers; /**< memory to use and keep; NULL: memory of this scan only */
    /** Sets `*selected`, which begins as false, if a block whose keys are inside the range is to be
     * read. An error ends the scan. NULL: all are read. */
    struct bw_error *(*select)(void *context, const struct bw_block_pointer *pointer,
                               bool *selected);
    /** Returns a leaf that the caller has in memory, verified; NULL: it must be read. Such a leaf
     * may be passed to `leaf` before leaves with lower keys. May be NULL. */
    const uint8_t *(*known)(void *context, const struct bw_block_pointer *pointer);
    /** Receives every internal node that was read, before anything below it. An error ends the
     * scan. May be NULL. */
    struct bw_error *(*node)(void *context, const struct bw_node *node);
    uint8_t lowest_level; /**< blocks below this level are not read */
    /** Receives every leaf that was read. An error ends the scan. May be NULL. */
    struct bw_error *(*leaf)(void *context, const struct bw_node *leaf);
    /** If set, the scan stops above the leaves: this receives the pointers to all nodes of level 1
     * (or to the root, if it is a leaf), which are not read. */
    struct bw_error *(*pointer)(void *context, const struct bw_block_pointer *pointer);
    /** Receives every block that cannot be read, and consumes `error`; an error that it returns
     * ends the scan. NULL: the first error ends it. */
    struct bw_error *(*lost)(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error);
    void *context;
};

/** A scan of all keys; set the functions. */
#define BW_SCAN_ALL .last = BW_KEY_MAX

/** For `lost`, where losses are reported elsewhere or do not matter. */
struct bw_error *bw_scan_ignore_lost(void *context, const struct bw_block_pointer *pointer,
                                     struct bw_error *error);

/** Scans. Returns the error that ended the scan early, if one did. */
struct bw_error *bw_tree_scan(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                              const struct bw_scan *scan);

#endif
