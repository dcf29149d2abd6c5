/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of lost keys as pieces that do not overlap, each with the earliest wave it was lost in. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "recovery/recovery.h"

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

struct bw_error *bw_lost_ranges_add(struct bw_lost_ranges *ranges,
                                    const struct bw_lost_range *range)
{
    return bw_lost_ranges_push(ranges, *range);
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

/* Which waves there are, and how many ranges of each hold the keys that the sweep has come to. */
struct open_ranges {
    uint32_t *waves; /* ascending */
    size_t *counts;
    size_t wave_count;
};

static size_t *count_of(const struct open_ranges *open, uint32_t wave)
{
    const uint32_t *found = bsearch(&wave, open->waves, open->wave_count, sizeof wave, by_number);
    return &open->counts[found - open->waves];
}

/* The earliest wave in which a key was lost; UINT32_MAX if it was not. */
static uint32_t earliest_wave(const struct open_ranges *open)
{
    for (size_t i = 0; i < open->wave_count; i++)
        if (open->counts[i])
            return open->waves[i];
    return UINT32_MAX;
}

static void add_piece(struct bw_lost_list *list, const struct bw_key *low,
                      const struct bw_key *high, uint32_t wave)
{
    struct bw_lost_range *last = list->count ? &list->items[list->count - 1] : NULL;
    if (wave == UINT32_MAX || bw_key_compare(low, high) >= 0)
        return;
    if (last && last->wave == wave && bw_key_compare(&last->high, low) == 0)
        last->high = *high;
    else
        list->items[list->count++] =
            (struct bw_lost_range){.bytenr = BW_NO_BLOCK, .low = *low, .high = *high, .wave = wave};
}

static void sweep_edges(const struct edge *edges, size_t count, const struct open_ranges *open,
                        struct bw_lost_list *list)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            add_piece(list, &edges[i - 1].key, &edges[i].key, earliest_wave(open));
        *count_of(open, edges[i].wave) += edges[i].begins ? 1 : SIZE_MAX;
    }
}

static size_t collect_edges(const struct bw_lost_range *ranges, size_t count, uint8_t level,
                            struct edge *edges, uint32_t *waves)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        /* Of keys in disorder nothing is known. */
        if (ranges[i].level < level || bw_key_compare(&ranges[i].low, &ranges[i].high) >= 0)
            continue;
        edges[2 * kept] = (struct edge){ranges[i].low, ranges[i].wave, true};
        edges[2 * kept + 1] = (struct edge){ranges[i].high, ranges[i].wave, false};
        waves[kept++] = ranges[i].wave;
    }
    return kept;
}

static size_t drop_equal(uint32_t *waves, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || waves[kept - 1] != waves[i])
            waves[kept++] = waves[i];
    return kept;
}

struct bw_error *bw_lost_list_make(const struct bw_lost_ranges *ranges, uint8_t level,
                                   struct bw_lost_list *list)
{
    const size_t count = ranges->count;
    *list = (struct bw_lost_list){.items = malloc((2 * count + 1) * sizeof *list->items)};
    BW_AUTO_FREE struct edge *edges = malloc((2 * count + 1) * sizeof *edges);
    BW_AUTO_FREE uint32_t *waves = malloc((count + 1) * sizeof *waves);
    BW_AUTO_FREE size_t *counts = calloc(count + 1, sizeof *counts);
    if (!list->items || !edges || !waves || !counts)
        return bw_error_no_memory();
    size_t kept = collect_edges(ranges->items, count, level, edges, waves);
    qsort(edges, 2 * kept, sizeof *edges, by_key);
    qsort(waves, kept, sizeof *waves, by_number);
    sweep_edges(edges, 2 * kept, &(struct open_ranges){waves, counts, drop_equal(waves, kept)},
                list);
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
    size_t at = first_above(list, key);
    return at && bw_key_compare(key, &list->items[at - 1].high) < 0 ? &list->items[at - 1] : NULL;
}

/* The first range with a key from `first` to `last`, both included; NULL if there is none. */
static const struct bw_lost_range *first_lost(const struct bw_lost_list *list,
                                              const struct bw_key *first, const struct bw_key *last)
{
    const size_t above = first_above(list, first);
    const size_t at = bw_lost_list_find(list, first) ? above - 1 : above;
    return at < list->count && bw_key_compare(&list->items[at].low, last) <= 0 ? &list->items[at]
                                                                               : NULL;
}

bool bw_lost_list_overlaps(const struct bw_lost_list *list, const struct bw_key *first,
                           const struct bw_key *last, uint32_t wave)
{
    const struct bw_lost_range *range = first_lost(list, first, last);
    for (; range && range < &list->items[list->count]; range++)
        if (bw_key_compare(&range->low, last) <= 0 && range->wave <= wave)
            return true;
    return false;
}
