/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest items of a tree whose root is lost, from leaves of all generations. A leaf is complete
 * for the range from its first to its last key: items that it lacks in this range did not exist
 * when it was written. Therefore an item is valid if no newer leaf has its key in its range. */
#ifndef BW_RESCUE_NEWEST_ITEMS_H
#define BW_RESCUE_NEWEST_ITEMS_H

#include "base/buffer.h"
#include "base/vector.h"
#include "ondisk/node.h"

/** The rank of leaves of the current generation. Other leaves are ranked by their generation. */
#define BW_PRESENT_RANK UINT64_MAX

/** An item of one of the leaves. */
struct bw_newest_item {
    struct bw_key key;
    uint64_t rank; /**< of its leaf */
    size_t at;     /**< offset of its data in `bytes` */
    uint32_t size;
};

/** The range of keys of a leaf. */
struct bw_newest_leaf {
    struct bw_key first, last;
    uint64_t rank;
};

BW_VECTOR(bw_newest_leaves, struct bw_newest_leaf);

BW_VECTOR(bw_newest_items, struct bw_newest_item);

/** The leaves. All zeros is empty. */
struct bw_newest {
    struct bw_newest_items items; /**< once settled: ascending, one per key */
    struct bw_newest_leaves leaves;
    struct bw_buffer bytes;
};

void bw_newest_free(struct bw_newest *newest);

/** Adds the items of a leaf that have a type (0: any). BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_add(struct bw_newest *newest, const struct bw_node *leaf, uint64_t rank,
                               uint8_t type);

/** Adds an item without a leaf. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_add_item(struct bw_newest *newest, const struct bw_item *item,
                                    uint64_t rank);

/** Keeps only the newest valid items, in ascending order. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_newest_settle(struct bw_newest *newest);

/** Whether the range of a leaf of the current generation contains a key. */
bool bw_newest_is_present(const struct bw_newest *newest, const struct bw_key *key);

/** The item as in a leaf; its data is not copied. */
static inline struct bw_item bw_newest_view(const struct bw_newest *newest,
                                            const struct bw_newest_item *item)
{
    const uint8_t *bytes = (const uint8_t *)newest->bytes.data; /* NULL: all items are empty */
    return (struct bw_item){item->key, bytes ? bytes + item->at : NULL, item->size};
}

/** The next item, where `*at` is 0 before the first; false at the end. */
static inline bool bw_newest_next(const struct bw_newest *newest, size_t *at, struct bw_item *item)
{
    if (*at == newest->items.count)
        return false;
    *item = bw_newest_view(newest, &newest->items.items[(*at)++]);
    return true;
}

/** The index of the first item at or after a key. The items must be settled. */
size_t bw_newest_first(const struct bw_newest *newest, const struct bw_key *key);

#endif
