/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The newest items of a tree, from leaves of all generations. */
#include "rescue/newest_items.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"

void bw_newest_free(struct bw_newest *newest)
{
    bw_newest_items_free(&newest->items);
    bw_newest_leaves_free(&newest->leaves);
    bw_buffer_free(&newest->bytes);
    *newest = (struct bw_newest){0};
}

struct bw_error *bw_newest_add_item(struct bw_newest *newest, const struct bw_item *item,
                                    uint64_t rank, uint64_t source)
{
    BW_TRY(bw_newest_items_push(
        &newest->items,
        (struct bw_newest_item){item->key, rank, source, newest->bytes.length, item->size}));
    bw_buffer_append(&newest->bytes, item->data, item->size);
    return newest->bytes.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_newest_add(struct bw_newest *newest, const struct bw_node *leaf, uint64_t rank,
                               uint64_t source, bool (*wants)(uint8_t type))
{
    struct bw_item item;
    if (!leaf->item_count)
        return NULL;
    BW_TRY(bw_newest_leaves_push(
        &newest->leaves, (struct bw_newest_leaf){bw_leaf_key(leaf, 0),
                                                 bw_leaf_key(leaf, leaf->item_count - 1), rank}));
    for (uint32_t slot = 0; slot < leaf->item_count; slot++)
        if (bw_leaf_item(leaf, slot, &item) && (!wants || wants(item.key.type)))
            BW_TRY(bw_newest_add_item(newest, &item, rank, source));
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

/* Keeps the item of the highest rank for each key. */
static void keep_highest_rank(struct bw_newest *newest)
{
    size_t kept = 0;
    if (newest->items.count)
        qsort(newest->items.items, newest->items.count, sizeof *newest->items.items, by_key);
    for (size_t i = 0; i < newest->items.count; i++)
        if (!kept ||
            bw_key_compare(&newest->items.items[kept - 1].key, &newest->items.items[i].key) != 0)
            newest->items.items[kept++] = newest->items.items[i];
    newest->items.count = kept;
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

/* Visits leaves in descending order of their ranks. An item that is older than the first leaf whose
 * range contains its key gets the size UINT32_MAX. */
static void mark_removed(struct bw_newest *newest, size_t *next)
{
    for (size_t i = 0; i <= newest->items.count; i++)
        next[i] = i;
    for (size_t i = 0; i < newest->leaves.count; i++) {
        const struct bw_newest_leaf *leaf = &newest->leaves.items[i];
        size_t at = BW_FIRST_INDEX(n, newest->items.count,
                                   bw_key_compare(&newest->items.items[n].key, &leaf->first) >= 0);
        for (at = first_open(next, at);
             at < newest->items.count &&
             bw_key_compare(&newest->items.items[at].key, &leaf->last) <= 0;
             at = first_open(next, at)) {
            if (newest->items.items[at].rank < leaf->rank)
                newest->items.items[at].size = UINT32_MAX;
            next[at] = at + 1;
        }
    }
}

struct bw_error *bw_newest_settle(struct bw_newest *newest)
{
    keep_highest_rank(newest);
    BW_AUTO_FREE size_t *next = malloc((newest->items.count + 1) * sizeof *next);
    if (!next)
        return bw_error_no_memory();
    if (newest->leaves.count)
        qsort(newest->leaves.items, newest->leaves.count, sizeof *newest->leaves.items,
              newest_first);
    mark_removed(newest, next);
    size_t kept = 0;
    for (size_t i = 0; i < newest->items.count; i++)
        if (newest->items.items[i].size != UINT32_MAX)
            newest->items.items[kept++] = newest->items.items[i];
    newest->items.count = kept;
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
