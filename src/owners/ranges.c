/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges that are searched for, and bytes that are covered. */
#include "owners/ranges.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/search.h"

/* Searching. */

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
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
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

/* Covering. */

static int by_begin(const void *first, const void *second)
{
    const struct bw_covered_range *a = first, *b = second;
    return a->start < b->start ? -1 : a->start > b->start;
}

void bw_covered_join(struct bw_covered *covered)
{
    size_t kept = 0;
    if (covered->joined == covered->count)
        return;
    qsort(covered->items, covered->count, sizeof *covered->items, by_begin);
    for (size_t i = 1; i < covered->count; i++) {
        struct bw_covered_range *last = &covered->items[kept], *item = &covered->items[i];
        if (item->start > last->end)
            covered->items[++kept] = *item;
        else if (item->end > last->end)
            last->end = item->end;
    }
    covered->count = covered->joined = kept + 1;
}

/* The same bytes are added for each snapshot: they are joined before more memory is taken. */
bool bw_covered_add(struct bw_covered *covered, uint64_t start, uint64_t end)
{
    if (covered->count == covered->capacity && covered->joined < covered->count / 2)
        bw_covered_join(covered);
    if (!BW_ARRAY_RESERVE(covered->items, covered->count, covered->capacity))
        return false;
    covered->items[covered->count++] = (struct bw_covered_range){start, end};
    return true;
}

bool bw_covered_at(const struct bw_covered *covered, uint64_t address, uint64_t *end)
{
    const size_t next = BW_FIRST_INDEX(i, covered->count, covered->items[i].start > address);
    const bool inside = next && covered->items[next - 1].end > address;
    if (inside && covered->items[next - 1].end < *end)
        *end = covered->items[next - 1].end;
    if (!inside && next < covered->count && covered->items[next].start < *end)
        *end = covered->items[next].start;
    return inside;
}

uint64_t bw_covered_total(struct bw_covered *covered)
{
    uint64_t total = 0;
    bw_covered_join(covered);
    for (size_t i = 0; i < covered->count; i++)
        total += covered->items[i].end - covered->items[i].start;
    return total;
}
