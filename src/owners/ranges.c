/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges that are searched for. */
#include "owners/ranges.h"

#include "base/compare.h"
#include "base/search.h"

bool bw_query_ranges_add(struct bw_query_ranges *list, uint64_t start, uint64_t length,
                         size_t number)
{
    if (bw_query_range_list_reserve(&list->ranges, 1))
        return false;
    list->ranges.items[list->ranges.count++] = (struct bw_query_range){start, length, number};
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
    bw_query_range_list_sort(&list->ranges, by_start);
}

const struct bw_query_range *bw_query_ranges_next(const struct bw_query_ranges *list, size_t *next,
                                                  uint64_t start, uint64_t length)
{
    const uint64_t from = start > list->longest ? start - list->longest : 0;
    if (!*next)
        *next = BW_FIRST_INDEX(i, list->ranges.count, list->ranges.items[i].start >= from);
    while (*next < list->ranges.count && (list->ranges.items[*next].start < start ||
                                          list->ranges.items[*next].start - start < length)) {
        const struct bw_query_range *query = &list->ranges.items[(*next)++];
        if (query->start >= start || query->length > start - query->start)
            return query;
    }
    return NULL;
}
