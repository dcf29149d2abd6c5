/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of ranges: a sorted array. */
#include "base/range_set.h"

#include "base/compare.h"
#include "base/search.h"

void bw_range_set_free(struct bw_range_set *set)
{
    bw_spans_free(&set->ranges);
    *set = (struct bw_range_set){0};
}

/* The same numbers may be added again and again: they are joined before more memory is taken. */
struct bw_error *bw_range_set_insert(struct bw_range_set *set, uint64_t start, uint64_t end)
{
    struct bw_span *last = set->ranges.count ? &set->ranges.items[set->ranges.count - 1] : NULL;
    if (last && start >= last->start && start <= last->end) {
        last->end = bw_max(last->end, end);
        return NULL;
    }
    const bool ascends = set->joined == set->ranges.count && (!last || start > last->end);
    if (set->ranges.count == set->ranges.capacity && set->joined < set->ranges.count / 2)
        bw_range_set_join(set);
    BW_TRY(bw_spans_push(&set->ranges, (struct bw_span){start, end}));
    set->joined += ascends;
    return NULL;
}

void bw_range_set_join(struct bw_range_set *set)
{
    size_t kept = 0;
    if (set->joined == set->ranges.count)
        return;
    bw_spans_sort(&set->ranges, bw_compare_first);
    for (size_t i = 1; i < set->ranges.count; i++) {
        struct bw_span *last = &set->ranges.items[kept], *item = &set->ranges.items[i];
        if (item->start > last->end)
            set->ranges.items[++kept] = *item;
        else
            last->end = bw_max(last->end, item->end);
    }
    set->ranges.count = set->joined = kept + 1;
}

bool bw_range_set_has(const struct bw_range_set *set, uint64_t number, uint64_t *end)
{
    const struct bw_span *items = set->ranges.items;
    const size_t next = BW_FIRST_INDEX(i, set->ranges.count, items[i].start > number);
    const bool contained = next && items[next - 1].end > number;
    if (contained && items[next - 1].end < *end)
        *end = items[next - 1].end;
    if (!contained && next < set->ranges.count && items[next].start < *end)
        *end = items[next].start;
    return contained;
}

uint64_t bw_range_set_overlap(const struct bw_range_set *set, uint64_t start, uint64_t end)
{
    const struct bw_span *items = set->ranges.items;
    uint64_t overlap = 0;
    size_t i = BW_FIRST_INDEX(k, set->ranges.count, items[k].end > start);
    for (; i < set->ranges.count && items[i].start < end; i++)
        overlap += bw_min(items[i].end, end) - bw_max(items[i].start, start);
    return overlap;
}

uint64_t bw_range_set_total(struct bw_range_set *set)
{
    uint64_t total = 0;
    bw_range_set_join(set);
    for (size_t i = 0; i < set->ranges.count; i++)
        total += set->ranges.items[i].end - set->ranges.items[i].start;
    return total;
}
