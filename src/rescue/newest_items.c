/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest items of a tree, from leaves of all generations. */
#include "rescue/newest_items.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "btree/block.h"

void bw_newest_free(struct bw_newest *newest)
{
    bw_newest_items_free(&newest->items);
    bw_newest_leaves_free(&newest->leaves);
    bw_buffer_free(&newest->bytes);
    *newest = (struct bw_newest){0};
}

struct bw_error *bw_newest_add_item(struct bw_newest *newest, const struct bw_item *item,
                                    uint64_t rank)
{
    BW_TRY(bw_newest_items_push(
        &newest->items,
        (struct bw_newest_item){item->key, rank, newest->bytes.length, item->size}));
    bw_buffer_append(&newest->bytes, item->data, item->size);
    return bw_buffer_error(&newest->bytes);
}

struct bw_error *bw_newest_add(struct bw_newest *newest, const struct bw_node *leaf, uint64_t rank,
                               uint8_t type)
{
    struct bw_item item;
    if (!leaf->item_count)
        return NULL;
    BW_TRY(bw_newest_leaves_push(
        &newest->leaves, (struct bw_newest_leaf){bw_leaf_key(leaf, 0),
                                                 bw_leaf_key(leaf, leaf->item_count - 1), rank}));
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        if (!type || item.key.type == type)
            BW_TRY(bw_newest_add_item(newest, &item, rank));
    return NULL;
}

static int by_key(const void *left, const void *right)
{
    const struct bw_newest_item *a = left, *b = right;
    const int order = bw_key_compare(&a->key, &b->key);
    return order ? order : (a->rank < b->rank) - (a->rank > b->rank);
}

static int newest_first(const void *left, const void *right)
{
    const struct bw_newest_leaf *a = left, *b = right;
    return (a->rank < b->rank) - (a->rank > b->rank);
}

/* The first item at or after `at` whose key has not been in the range of a leaf yet. */
static size_t first_open(size_t *next, size_t at)
{
    size_t end = at;
    while (next[end] != end)
        end = next[end];
    while (next[at] != end) {
        const size_t step = next[at];
        next[at] = end;
        at = step;
    }
    return end;
}

size_t bw_newest_first(const struct bw_newest *newest, const struct bw_key *key)
{
    return BW_FIRST_INDEX(i, newest->items.count,
                          bw_key_compare(&newest->items.items[i].key, key) >= 0);
}

struct bw_error *bw_newest_settle(struct bw_newest *newest)
{
    struct bw_newest_items *items = &newest->items;
    BW_AUTO_FREE size_t *next = malloc((items->count + 1) * sizeof *next);
    if (!next)
        return bw_error_no_memory();

    /* Keep the item of the highest rank for each key. */
    size_t kept = 0;
    bw_newest_items_sort(items, by_key);
    for (size_t i = 0; i < items->count; i++)
        if (!kept || bw_key_compare(&items->items[kept - 1].key, &items->items[i].key) != 0)
            items->items[kept++] = items->items[i];
    items->count = kept;

    /* The newest leaf whose range contains a key decides: an older item gets the size UINT32_MAX.
     */
    bw_newest_leaves_sort(&newest->leaves, newest_first);
    for (size_t i = 0; i <= items->count; i++)
        next[i] = i;
    for (size_t i = 0; i < newest->leaves.count; i++) {
        const struct bw_newest_leaf *leaf = &newest->leaves.items[i];
        for (size_t at = first_open(next, bw_newest_first(newest, &leaf->first));
             at < items->count && bw_key_compare(&items->items[at].key, &leaf->last) <= 0;
             at = first_open(next, at)) {
            if (items->items[at].rank < leaf->rank)
                items->items[at].size = UINT32_MAX;
            next[at] = at + 1;
        }
    }
    kept = 0;
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].size != UINT32_MAX)
            items->items[kept++] = items->items[i];
    items->count = kept;
    return NULL;
}

bool bw_newest_is_present(const struct bw_newest *newest, const struct bw_key *key)
{
    for (size_t i = 0; i < newest->leaves.count; i++) {
        const struct bw_newest_leaf *leaf = &newest->leaves.items[i];
        if (leaf->rank == BW_PRESENT_RANK && bw_key_compare(&leaf->first, key) <= 0 &&
            bw_key_compare(key, &leaf->last) <= 0)
            return true;
    }
    return false;
}
