/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of a tree, or of several trees with disjoint keys as if they were one, in the order of
 * their keys. What is lost is passed over, and the item after it says so. */
#ifndef BW_OWNERS_ITEM_STREAM_H
#define BW_OWNERS_ITEM_STREAM_H

#include "owners/tree_list.h"

struct bw_item_stream {
    struct bw_item item; /**< the present item, a view that ends with the next step */
    uint64_t tree;       /**< id of the tree that it is in */
    bool ended;          /**< there is no present item */
    bool after_loss;     /**< items between the one before and this one, or the end, may be lost */
    bool lost;           /**< so far, anything */

    /* Private. */
    struct bw_stream_part *parts;
    size_t count, present;
};

/** Begins with the first item of all trees of the list with an id; none is as one without items.
 * To be ended, whatever is returned. */
struct bw_error *bw_item_stream_begin(struct bw_item_stream *stream, struct bw_fs *fs,
                                      const struct bw_tree_list *list, uint64_t tree);

/** Moves on. */
void bw_item_stream_next(struct bw_item_stream *stream);

/** Ends it; returns `error`, or in its place that of the stream. */
struct bw_error *bw_item_stream_end(struct bw_item_stream *stream, struct bw_error *error);

#endif
