/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of addresses, and those of lists of bad sectors. */
#include "cli/inspect/bad_map.h"

#include "base/bad_map.h"
#include "base/cleanup.h"
#include "base/compare.h"

static int by_start(const void *first, const void *second)
{
    const struct bw_address_range *a = first, *b = second;
    return bw_compare(a->logical, b->logical);
}

void bad_ranges_join(struct bad_ranges *ranges)
{
    size_t kept = 0;
    if (!ranges->count)
        return;
    bad_ranges_sort(ranges, by_start);
    for (size_t i = 1; i < ranges->count; i++) {
        struct bw_address_range *last = &ranges->items[kept], *item = &ranges->items[i];
        if (item->logical > last->logical + last->length)
            ranges->items[++kept] = *item;
        else if (item->logical + item->length > last->logical + last->length)
            last->length = item->logical + item->length - last->logical;
    }
    ranges->count = kept + 1;
}

static struct bw_error *add_range(void *ranges, uint64_t start, uint64_t length)
{
    return bad_ranges_push(ranges, (struct bw_address_range){start, length});
}

struct bw_error *bad_map_read(const char *file, struct bad_ranges *ranges)
{
    BW_TRY(bw_bad_map_read(file, add_range, ranges, NULL));
    bad_ranges_join(ranges);
    return NULL;
}
