/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges that are searched for. */
#include "owners/ranges.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/compare.h"
#include "base/search.h"

bool bw_query_ranges_add(struct bw_query_ranges *list, uint64_t start, uint64_t length,
                         size_t number)
{
    if (!BW_ARRAY_RESERVE(list->items, list->count, list->capacity))
        return false;
    list->items[list->count++] = (struct bw_query_range){start, length, number};
    list->longest = length > list->longest ? length : list->longest;
    return true;
}

static int by_start(const void *first, const void *second)
{
    const struct bw_query_range *a = first, *b = second;
    const int order = bw_compare(a->start, b->start);
    return order ? order : bw_compare(a->number, b->number);
}

void bw_query_ranges_sort(struct bw_query_ranges *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_start);
}

const struct bw_query_range *bw_query_ranges_next(const struct bw_query_ranges *list, size_t *next,
                                                  uint64_t start, uint64_t length)
{
    const uint64_t from = start > list->longest ? start - list->longest : 0;
    if (!*next)
        *next = BW_FIRST_INDEX(i, list->count, list->items[i].start >= from);
    while (*next < list->count &&
           (list->items[*next].start < start || list->items[*next].start - start < length)) {
        const struct bw_query_range *query = &list->items[(*next)++];
        if (query->start >= start || query->length > start - query->start)
            return query;
    }
    return NULL;
}
