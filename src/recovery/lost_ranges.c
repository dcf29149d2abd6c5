/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranges of lost keys as pieces that do not overlap, each with the earliest wave it was lost in. A
 * sweep over the beginnings and ends of all ranges, in the order of their keys, counts for each
 * wave how many of its ranges are open; between two edges, the first wave with an open range is the
 * earliest one.
 */
#include "recovery/recovery.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"

struct bw_lost_range bw_lost_range_of(const struct bw_block_pointer *pointer, uint32_t wave)
{
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    return (struct bw_lost_range){.bytenr = pointer->bytenr,
                                  .low = expectation->first_key,
                                  .high = expectation->end_key,
                                  .level = expectation->level,
                                  .generation = expectation->generation,
                                  .wave = wave};
}

/* Where a range begins or ends, in key order. */
struct edge {
    struct bw_key key;
    uint32_t wave;
    bool begins;
};

static int by_key(const void *a, const void *b)
{
    const struct edge *left = a, *right = b;
    return bw_key_compare(&left->key, &right->key);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

struct bw_error *bw_lost_list_make(const struct bw_lost_ranges *ranges, uint8_t level,
                                   struct bw_lost_list *list)
{
    const size_t count = ranges->count;
    *list = (struct bw_lost_list){.items = malloc((2 * count + 1) * sizeof *list->items)};
    BW_AUTO_FREE struct edge *edges = malloc((2 * count + 1) * sizeof *edges);
    BW_AUTO_FREE uint32_t *waves = malloc((count + 1) * sizeof *waves);
    BW_AUTO_FREE size_t *open = calloc(count + 1, sizeof *open); /* open ranges of each wave */
    if (!list->items || !edges || !waves || !open)
        return bw_error_no_memory();

    size_t kept = 0, wave_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bw_lost_range *range = &ranges->items[i];
        /* Of keys in disorder nothing is known. */
        if (range->level < level || bw_key_compare(&range->low, &range->high) >= 0)
            continue;
        edges[2 * kept] = (struct edge){range->low, range->wave, true};
        edges[2 * kept + 1] = (struct edge){range->high, range->wave, false};
        waves[kept++] = range->wave;
    }
    qsort(edges, 2 * kept, sizeof *edges, by_key);
    qsort(waves, kept, sizeof *waves, by_number);
    for (size_t i = 0; i < kept; i++)
        if (!wave_count || waves[wave_count - 1] != waves[i])
            waves[wave_count++] = waves[i];

    for (size_t i = 0; i < 2 * kept; i++) {
        size_t earliest = 0;
        while (earliest < wave_count && !open[earliest])
            earliest++;
        /* The piece between the edge before and this one, which may be at the same key. */
        if (earliest < wave_count && bw_key_compare(&edges[i - 1].key, &edges[i].key) < 0) {
            struct bw_lost_range *last = list->count ? &list->items[list->count - 1] : NULL;
            const struct bw_lost_range piece = {.bytenr = BW_NO_BLOCK,
                                                .low = edges[i - 1].key,
                                                .high = edges[i].key,
                                                .wave = waves[earliest]};
            if (last && last->wave == piece.wave && bw_key_compare(&last->high, &piece.low) == 0)
                last->high = piece.high;
            else
                list->items[list->count++] = piece;
        }
        const uint32_t *wave = bsearch(&edges[i].wave, waves, wave_count, sizeof *waves, by_number);
        open[wave - waves] += edges[i].begins ? 1 : SIZE_MAX;
    }
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
               bw_key_compare(&a->items[i].high, &b->items[i].high) == 0 &&
               a->items[i].wave == b->items[i].wave;
    return same;
}

/* Index of the first range that begins after a key. */
static size_t first_above(const struct bw_lost_list *list, const struct bw_key *key)
{
    return BW_FIRST_INDEX(i, list->count, bw_key_compare(&list->items[i].low, key) > 0);
}

const struct bw_lost_range *bw_lost_list_find(const struct bw_lost_list *list,
                                              const struct bw_key *key)
{
    const size_t at = first_above(list, key);
    if (!at || bw_key_compare(key, &list->items[at - 1].high) >= 0)
        return NULL;
    return &list->items[at - 1];
}

bool bw_lost_list_overlaps(const struct bw_lost_list *list, const struct bw_key *first,
                           const struct bw_key *last, uint32_t wave)
{
    size_t at = first_above(list, first);
    if (bw_lost_list_find(list, first))
        at--;
    for (; at < list->count && bw_key_compare(&list->items[at].low, last) <= 0; at++)
        if (list->items[at].wave <= wave)
            return true;
    return false;
}
