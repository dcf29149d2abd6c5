/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scanning a tree, or a range of its keys, in key order. Leaves are asked for in batches, as the
 * node above them names them. A block that cannot be read is reported with the keys it held, and
 * the scan goes on behind it.
 */
#ifndef BW_BTREE_SCAN_H
#define BW_BTREE_SCAN_H

#include "btree/block.h"

/** What to scan, and who gets the results. Functions may be NULL where noted. */
struct bw_scan {
    struct bw_key first, last; /**< inclusive bounds of the keys wanted */
    /** Lenient: read through wrong keys, and visit no block twice. For recovery. */
    bool lenient;
    /** Below a node that is lost go through the leaves that the reader's adopter knows. What they
     * tell all of is not lost. */
    bool adopt;
    /** Stop at internal nodes of level 1 (or the root, if it is lower) and hand out the pointers to
     * them. */
    bool stop_above_leaves;
    /** Whether anything is wanted below a pointer inside the bounds; NULL: yes. */
    bool (*wants)(void *context, const struct bw_block_pointer *pointer);
    /** Receives every leaf that was read. An error ends the scan. */
    struct bw_error *(*leaf)(void *context, const struct bw_node *leaf);
    /** With stop_above_leaves: receives the pointers instead. */
    struct bw_error *(*pointer)(void *context, const struct bw_block_pointer *pointer);
    /** Receives every block that could not be read, and takes the error. NULL: the first one ends
     * the scan.
     */
    void (*lost)(void *context, const struct bw_block_pointer *pointer, struct bw_error *error);
    void *context;
};

/** A scan of the whole key space; set the functions. */
#define BW_SCAN_ALL .last = BW_KEY_MAX

/** For `lost`, where what is lost is known already or does not matter. */
void bw_scan_ignore_lost(void *context, const struct bw_block_pointer *pointer,
                         struct bw_error *error);

/** Scans. Returns the error that ended the scan early, if one did. */
struct bw_error *bw_tree_scan(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                              const struct bw_scan *scan);

#endif
