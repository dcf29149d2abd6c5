/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scans of a tree, or of a range of its keys, in the order of keys, for callers that read many
 * leaves. Leaves are read in batches below each node of level 1. A block that cannot be read is a
 * step with its key range, and the scan continues after it.
 *
 *     BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
 *     bw_block_scan_begin(&scan, reader, tree);
 *     while (bw_block_scan_next(&scan))
 *         for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);)
 *             ...
 *     BW_TRY(bw_block_scan_end(&scan));
 */
#ifndef BW_BTREE_SCAN_H
#define BW_BTREE_SCAN_H

#include "base/hash_table.h"
#include "btree/block.h"

enum bw_scan_step {
    BW_SCAN_LEAF,
    BW_SCAN_NODE,   /**< an internal node, before anything below it; only with `nodes` */
    BW_SCAN_LOST,   /**< a block that cannot be read; `error` is set */
    BW_SCAN_POINTER /**< a block whose keys are inside the range, before it is read; only with
                     * `pointers` */
};

/** The keys to scan, and the current step. Only one thread at a time may use it, and it must not be
 * moved. */
struct bw_block_scan {
    struct bw_key first, last; /**< the keys to read, inclusive */
    uint64_t newer_than;       /**< only blocks of later generations are read */
    uint8_t lowest_level;      /**< blocks below this level are not read */
    /** Continue where keys are wrong, and visit no block twice. For recovery. */
    bool lenient;
    /** Instead of a lost node, read the leaves that the reader's adopter finds. If they contain all
     * selected keys, nothing is lost. */
    bool adopt;
    /** Announce all selected leaves below a node before reading the first; if they are close
     * together, also as many after them, which the next scan will probably read. Ignored if
     * lenient. */
    bool announce;
    bool cut;      /**< leave out the last items of a leaf if they belong in later leaves */
    bool nodes;    /**< stop at internal nodes, too */
    bool pointers; /**< stop at pointers, too; ignored if lenient */

    enum bw_scan_step step;
    struct bw_block_pointer pointer; /**< to the block of this step */
    struct bw_node node;             /**< the block, valid until the next step; empty if lost */
    struct bw_error *error;          /**< owned by the scan, unless the caller takes it */
    bool selected; /**< BW_SCAN_POINTER: begins as false; the caller sets it to read the block */

    /* Private. */
    struct bw_tree_reader reader;
    struct bw_tree tree;
    struct bw_frame frame;
    uint64_t start_time;
    struct bw_error *failure; /* ended the scan */
    bool runs, is_answered;
    uint32_t slot; /* of the next item */
    uint8_t level; /* of the node whose children are next; one more than the root's: the root */
    struct bw_scan_level {
        struct bw_block_pointer pointer;
        struct bw_node node;
        uint32_t slot, end; /* children to be read */
        uint8_t *block;
    } levels[BW_MAX_LEVEL + 1];
    struct bw_scan_leaves *leaves;    /* the leaves below a node; allocated on first use */
    const struct bw_adopted *adopted; /* the leaves that replace a lost node; NULL: none exists */
    size_t next_adopted;
    struct bw_block_pointer lost_node; /* with its error */
    struct bw_error *lost_error;
    struct bw_key_set seen; /* addresses of visited blocks, in a lenient scan */
};

/** A scan of all keys. */
#define BW_SCAN_ALL .last = BW_KEY_MAX

/** Starts a scan with the selected options; after bw_block_scan_end() also another one, which uses
 * the same memory. */
void bw_block_scan_begin(struct bw_block_scan *scan, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree);

/** Advances to the next step; false at the end. */
bool bw_block_scan_next(struct bw_block_scan *scan);

/** Advances to the next item whose bytes are within its leaf, and skips all other steps. */
static inline bool bw_block_scan_next_item(struct bw_block_scan *scan, struct bw_item *item)
{
    while (scan->step != BW_SCAN_LEAF || !bw_leaf_next(&scan->node, &scan->slot, item)) {
        scan->slot = 0;
        if (!bw_block_scan_next(scan))
            return false;
    }
    return true;
}

/** Ends the scan at any position. Returns the error that ended it early: no memory. */
struct bw_error *bw_block_scan_end(struct bw_block_scan *scan);

/** Ends the scan, and frees its memory. */
void bw_block_scan_free(struct bw_block_scan *scan);

#endif
