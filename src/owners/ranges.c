/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges that are searched for, and bytes that are covered. */
#include "owners/ranges.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/search.h"

/* Searching. */

bool bw_sought_add(struct bw_sought_list *list, uint64_t start, uint64_t length, size_t number)
{
    if (!BW_ARRAY_RESERVE(list->items, list->count, list->capacity))
        return false;
    list->items[list->count++] = (struct bw_sought){start, length, number};
    list->longest = length > list->longest ? length : list->longest;
    return true;
}

static int by_start(const void *first, const void *second)
{
    const struct bw_sought *a = first, *b = second;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void bw_sought_sort(struct bw_sought_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_start);
}

const struct bw_sought *bw_sought_next(const struct bw_sought_list *list, size_t *next,
                                       uint64_t start, uint64_t length)
{
    const uint64_t from = start > list->longest ? start - list->longest : 0;
    if (!*next)
        *next = BW_FIRST_INDEX(i, list->count, list->items[i].start >= from);
    while (*next < list->count &&
           (list->items[*next].start < start || list->items[*next].start - start < length)) {
        const struct bw_sought *sought = &list->items[(*next)++];
        if (sought->start >= start || sought->length > start - sought->start)
            return sought;
    }
    return NULL;
}

/* Covering. */

static int by_begin(const void *first, const void *second)
{
    const struct bw_covered *a = first, *b = second;
    return a->start < b->start ? -1 : a->start > b->start;
}

void bw_cover_join(struct bw_cover *cover)
{
    size_t kept = 0;
    if (cover->joined == cover->count)
        return;
    qsort(cover->items, cover->count, sizeof *cover->items, by_begin);
    for (size_t i = 1; i < cover->count; i++) {
        struct bw_covered *last = &cover->items[kept], *item = &cover->items[i];
        if (item->start > last->end)
            cover->items[++kept] = *item;
        else if (item->end > last->end)
            last->end = item->end;
    }
    cover->count = cover->joined = kept + 1;
}

/* The same bytes are added for each snapshot: they are joined before more memory is taken. */
bool bw_cover_add(struct bw_cover *cover, uint64_t start, uint64_t end)
{
    if (cover->count == cover->capacity && cover->joined < cover->count / 2)
        bw_cover_join(cover);
    if (!BW_ARRAY_RESERVE(cover->items, cover->count, cover->capacity))
        return false;
    cover->items[cover->count++] = (struct bw_covered){start, end};
    return true;
}

bool bw_cover_at(const struct bw_cover *cover, uint64_t address, uint64_t *end)
{
    const size_t next = BW_FIRST_INDEX(i, cover->count, cover->items[i].start > address);
    const bool covered = next && cover->items[next - 1].end > address;
    if (covered && cover->items[next - 1].end < *end)
        *end = cover->items[next - 1].end;
    if (!covered && next < cover->count && cover->items[next].start < *end)
        *end = cover->items[next].start;
    return covered;
}
