/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of ranges: a sorted array. */
#include "base/range_set.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/compare.h"
#include "base/search.h"

void bw_range_set_free(struct bw_range_set *set)
{
    free(set->items);
    *set = (struct bw_range_set){0};
}

/* The same numbers may be added again and again: they are joined before more memory is taken. */
bool bw_range_set_add(struct bw_range_set *set, uint64_t start, uint64_t end)
{
    struct bw_span *last = set->count ? &set->items[set->count - 1] : NULL;
    if (last && start >= last->start && start <= last->end) {
        last->end = end > last->end ? end : last->end;
        return true;
    }
    const bool ascends = set->joined == set->count && (!last || start > last->end);
    if (set->count == set->capacity && set->joined < set->count / 2)
        bw_range_set_join(set);
    if (!BW_ARRAY_RESERVE(set->items, set->count, set->capacity))
        return false;
    set->items[set->count++] = (struct bw_span){start, end};
    set->joined += ascends;
    return true;
}

void bw_range_set_join(struct bw_range_set *set)
{
    size_t kept = 0;
    if (set->joined == set->count)
        return;
    qsort(set->items, set->count, sizeof *set->items, bw_compare_first);
    for (size_t i = 1; i < set->count; i++) {
        struct bw_span *last = &set->items[kept], *item = &set->items[i];
        if (item->start > last->end)
            set->items[++kept] = *item;
        else if (item->end > last->end)
            last->end = item->end;
    }
    set->count = set->joined = kept + 1;
}

bool bw_range_set_has(const struct bw_range_set *set, uint64_t number, uint64_t *end)
{
    const struct bw_span *items = set->items;
    const size_t next = BW_FIRST_INDEX(i, set->count, items[i].start > number);
    const bool contained = next && items[next - 1].end > number;
    if (contained && items[next - 1].end < *end)
        *end = items[next - 1].end;
    if (!contained && next < set->count && items[next].start < *end)
        *end = items[next].start;
    return contained;
}

uint64_t bw_range_set_overlap(const struct bw_range_set *set, uint64_t start, uint64_t end)
{
    const struct bw_span *items = set->items;
    uint64_t overlap = 0;
    size_t i = BW_FIRST_INDEX(k, set->count, items[k].end > start);
    for (; i < set->count && items[i].start < end; i++)
        overlap += (items[i].end < end ? items[i].end : end) -
                   (items[i].start > start ? items[i].start : start);
    return overlap;
}

uint64_t bw_range_set_total(struct bw_range_set *set)
{
    uint64_t total = 0;
    bw_range_set_join(set);
    for (size_t i = 0; i < set->count; i++)
        total += set->items[i].end - set->items[i].start;
    return total;
}
