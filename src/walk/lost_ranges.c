/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorting, merging and searching ranges of lost keys. */
#include "walk/lost_ranges.h"

#include <stdlib.h>

static int by_low_key(const void *a, const void *b)
{
    const struct bw_lost_range *left = a, *right = b;
    return bw_key_compare(&left->low, &right->low);
}

static void merge(struct bw_lost_list *list)
{
    size_t last = 0;
    for (size_t i = 1; i < list->count; i++) {
        if (bw_key_compare(&list->items[i].low, &list->items[last].high) > 0)
            list->items[++last] = list->items[i];
        else if (bw_key_compare(&list->items[i].high, &list->items[last].high) > 0)
            list->items[last].high = list->items[i].high;
    }
    list->count = list->count ? last + 1 : 0;
}

struct bw_error *bw_lost_list_make(const struct bw_lost_range *ranges, size_t count, uint8_t level,
                                   struct bw_lost_list *list)
{
    *list = (struct bw_lost_list){.items = malloc((count + 1) * sizeof *list->items)};
    if (!list->items)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        if (ranges[i].level >= level)
            list->items[list->count++] = ranges[i];
    qsort(list->items, list->count, sizeof *list->items, by_low_key);
    merge(list);
    return NULL;
}

void bw_lost_list_free(struct bw_lost_list *list)
{
    free(list->items);
    *list = (struct bw_lost_list){0};
}

bool bw_lost_lists_equal(const struct bw_lost_list *a, const struct bw_lost_list *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = bw_key_compare(&a->items[i].low, &b->items[i].low) == 0 &&
               bw_key_compare(&a->items[i].high, &b->items[i].high) == 0;
    return same;
}

/* Index of the first range that begins behind `key`. */
static size_t first_above(const struct bw_lost_list *list, const struct bw_key *key)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bw_key_compare(&list->items[middle].low, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct bw_lost_range *bw_lost_list_find(const struct bw_lost_list *list, const struct bw_key *key)
{
    size_t at = first_above(list, key);
    return at && bw_key_compare(key, &list->items[at - 1].high) < 0 ? &list->items[at - 1] : NULL;
}

bool bw_lost_list_overlaps(const struct bw_lost_list *list, const struct bw_key *first,
                           const struct bw_key *last)
{
    size_t at = first_above(list, first);
    return bw_lost_list_find(list, first) ||
           (at < list->count && bw_key_compare(&list->items[at].low, last) <= 0);
}
