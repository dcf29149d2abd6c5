/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of ranges: a sorted array. */
#include "check/sectors.h"

#include "base/array.h"
#include "base/search.h"

struct range {
    uint64_t start, end;
};

struct bw_sectors {
    struct range *ranges;
    size_t count, capacity;
};

struct bw_sectors *bw_sectors_create(void)
{
    return calloc(1, sizeof(struct bw_sectors));
}

void bw_sectors_destroy(struct bw_sectors *sectors)
{
    if (sectors)
        free(sectors->ranges);
    free(sectors);
}

bool bw_sectors_add(struct bw_sectors *sectors, uint64_t start, uint64_t length)
{
    struct range *last = sectors->count ? &sectors->ranges[sectors->count - 1] : NULL;
    if (last && last->end >= start) {
        last->end = start + length > last->end ? start + length : last->end;
        return true;
    }
    if (!BW_ARRAY_RESERVE(sectors->ranges, sectors->count, sectors->capacity))
        return false;
    sectors->ranges[sectors->count++] = (struct range){start, start + length};
    return true;
}

uint64_t bw_sectors_covered(const struct bw_sectors *sectors, uint64_t start, uint64_t length)
{
    const struct range *ranges = sectors->ranges;
    const uint64_t end = start + length;
    uint64_t covered = 0;
    size_t first = BW_FIRST_INDEX(i, sectors->count, ranges[i].end > start);
    for (size_t i = first; i < sectors->count && ranges[i].start < end; i++)
        covered += (ranges[i].end < end ? ranges[i].end : end) -
                   (ranges[i].start > start ? ranges[i].start : start);
    return covered;
}
