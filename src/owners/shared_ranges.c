/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ranges are merged only when there is no more room: memory follows what is left of them. */
#include "owners/shared_ranges.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

static uint64_t end_of(const struct bw_range *range)
{
    return range->length > UINT64_MAX - range->address ? UINT64_MAX
                                                       : range->address + range->length;
}

static int by_address(const void *a, const void *b)
{
    const struct bw_range *one = a, *other = b;
    return one->address < other->address ? -1 : one->address > other->address;
}

static void merge(struct bw_shared_ranges *ranges)
{
    size_t count = 0;
    if (ranges->count)
        qsort(ranges->ranges, ranges->count, sizeof *ranges->ranges, by_address);
    for (size_t i = 0; i < ranges->count; i++) {
        const struct bw_range next = ranges->ranges[i];
        struct bw_range *last = count ? &ranges->ranges[count - 1] : NULL;
        if (!last || next.address > end_of(last))
            ranges->ranges[count++] = next;
        else if (end_of(&next) > end_of(last))
            last->length = end_of(&next) - last->address;
    }
    ranges->count = count;
}

static struct bw_error *grow(struct bw_shared_ranges *ranges)
{
    void *grown = bw_array_grown(ranges->ranges, ranges->capacity + 1, &ranges->capacity,
                                 sizeof *ranges->ranges);
    if (!grown)
        return bw_error_no_memory();
    ranges->ranges = grown;
    return NULL;
}

struct bw_error *bw_shared_ranges_add(struct bw_shared_ranges *ranges, const struct bw_range *range)
{
    if (ranges->count == ranges->capacity) {
        merge(ranges);
        if (ranges->count >= ranges->capacity / 2)
            BW_TRY(grow(ranges));
    }
    ranges->ranges[ranges->count++] = *range;
    return NULL;
}

uint64_t bw_shared_ranges_total(struct bw_shared_ranges *ranges)
{
    uint64_t total = 0;
    merge(ranges);
    for (size_t i = 0; i < ranges->count; i++)
        total += ranges->ranges[i].length;
    return total;
}

void bw_shared_ranges_free(struct bw_shared_ranges *ranges)
{
    free(ranges->ranges);
    *ranges = (struct bw_shared_ranges){0};
}
