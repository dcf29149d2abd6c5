/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The items in a range of keys, one by one, in key order: what is asked of a tree when it is known
 * what is looked for. For whole trees and leaves see scan.h, on which this stands.
 */
#ifndef BW_BTREE_ITEM_RANGE_H
#define BW_BTREE_ITEM_RANGE_H

#include "btree/block.h"

/** Which items are wanted, and who gets them. */
struct bw_item_range {
    struct bw_key first, last; /**< inclusive bounds */
    /** Receives every item; it is a view that ends with the call. An error ends it all:
     * BW_ERROR_STOPPED is the way to have seen enough. */
    struct bw_error *(*item)(void *context, const struct bw_item *item);
    /**
     * Receives what could have been in the range and cannot be read, and takes the error: a block,
     * with its logical address, or an item outside its leaf, with the address BW_LOST_ITEM. NULL:
     * the first one ends it all.
     */
    void (*lost)(void *context, uint64_t bytenr, struct bw_error *error);
    void *context;
};

/** Stands for the address of a block where an item is lost. */
#define BW_LOST_ITEM UINT64_MAX

/** Reads the range. Returns the error that ended it early, if one did. */
struct bw_error *bw_item_range_read(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                    const struct bw_item_range *range);

#endif
