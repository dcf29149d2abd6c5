/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scanning a tree, or a range of its keys, in key order, for readers of many leaves. Leaves are
 * read in batches, as the node above names them. A block that cannot be read is reported with the
 * keys it held, and the scan continues after it. */
#ifndef BW_BTREE_SCAN_H
#define BW_BTREE_SCAN_H

#include "btree/block.h"

/** Memory of scans, for callers that start many of them. All zeros is none. One scan at a time uses
 * it. */
struct bw_scan_buffers {
    uint8_t *nodes[BW_MAX_LEVEL]; /**< one block a level, allocated when first needed */
    uint8_t *leaves;              /**< blocks of a batch */
    unsigned leaf_room;           /**< how many */
    struct bw_range *ranges;      /**< BW_MAX_CHILDREN, for announcing leaves */
};

/** Frees the memory, and leaves none. */
void bw_scan_buffers_free(struct bw_scan_buffers *buffers);

/** The keys to scan, and the functions that receive the results. Functions may be NULL where
 * noted. */
struct bw_scan {
    struct bw_key first, last; /**< the keys wanted, both included */
    /** Lenient: read on where keys are wrong, and visit no block twice. For recovery. */
    bool lenient;
    /** In place of a lost node, read the leaves that the reader's adopter knows. If they hold all
     * keys wanted, nothing is lost. */
    bool adopt;
    /** Announce all leaves wanted below a node before reading the first and, if they lie close
     * together, as many after them, which the next scan will probably want. Not if lenient. */
    bool announce;
    struct bw_scan_buffers *buffers; /**< to be used and kept; NULL: memory of this scan alone */
    /** Whether anything is wanted below a pointer inside the range; NULL: yes. */
    bool (*wants)(void *context, const struct bw_block_pointer *pointer);
    /** Receives every internal node that was read, before anything below it. An error ends the
     * scan. May be NULL. */
    struct bw_error *(*node)(void *context, const struct bw_node *node);
    uint8_t lowest_level; /**< nothing below this level is read */
    /** Receives every leaf that was read. An error ends the scan. */
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
