/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest items of a tree whose root is lost, from leaves of all generations. A leaf covers all
 * keys from its first to its last: items that it lacks in between did not exist when it was
 * written. So an item counts if no newer leaf that was found covers its key. */
#ifndef BW_RESCUE_NEWEST_ITEMS_H
#define BW_RESCUE_NEWEST_ITEMS_H

#include "base/buffer.h"
#include "ondisk/node.h"

/** The rank of leaves of the present state. The rank of any other leaf is its generation. */
#define BW_PRESENT_RANK UINT64_MAX

/** An item of one of the leaves. */
struct bw_newest_item {
    struct bw_key key;
    uint64_t rank;   /**< of its leaf */
    uint64_t source; /**< where its leaf was found: argument of bw_newest_add() */
    size_t at;       /**< of its bytes, in `bytes` */
    uint32_t size;
};

/** The leaves. All zeros is none. */
struct bw_newest {
    struct bw_newest_item *items; /**< once settled: ascending, one for each key */
    size_t count, capacity;
    struct bw_newest_leaf {
        struct bw_key first, last;
        uint64_t rank;
    } * leaves;
    size_t leaf_count, leaf_capacity;
    struct bw_buffer bytes;
};

/** Frees its memory. */
void bw_newest_free(struct bw_newest *newest);

/** Adds the items of a leaf for whose type `wants` holds (NULL: all). BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_add(struct bw_newest *newest, const struct bw_node *leaf, uint64_t rank,
                               uint64_t source, bool (*wants)(uint8_t type));

/** Adds an item without a leaf. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_add_item(struct bw_newest *newest, const struct bw_item *item,
                                    uint64_t rank, uint64_t source);

/** Keeps the newest items only, in order. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_settle(struct bw_newest *newest);

/** Whether a leaf of the present state covers a key. */
bool bw_newest_is_present(const struct bw_newest *newest, const struct bw_key *key);

/** An item as readers of leaves get it: a view. */
static inline struct bw_item bw_newest_view(const struct bw_newest *newest,
                                            const struct bw_newest_item *item)
{
    return (struct bw_item){item->key, (const uint8_t *)newest->bytes.data + item->at, item->size};
}

#endif
