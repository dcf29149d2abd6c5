/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ranges of an image that a connection keeps because they were requested ahead, or may be read
 * again, as tree blocks. Their number of bytes is limited. The clock algorithm chooses the range to
 * remove: a hand goes around the ranges, and removes those that nobody has read since it was there
 * last. Ranges that were requested ahead wait for their reader, unless they are old.
 */
#include "servers/connection.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"

enum {
    LIMIT = 128 << 20, /* bytes of all ranges */
    OLD = 256 << 20,   /* a range is old when so many bytes were requested after it */
};

static uint64_t end_of(const struct bw_cached_range *range)
{
    return range->read.offset + range->read.length;
}

void bw_range_cache_free(struct bw_range_cache *cache)
{
    for (size_t i = 0; i < cache->ranges.count; i++)
        free(cache->ranges.items[i]);
    bw_cached_ranges_free(&cache->ranges);
    *cache = (struct bw_range_cache){0};
}

/* The index of the first range that ends after an offset. */
static size_t first_after(const struct bw_range_cache *cache, uint64_t offset)
{
    return BW_FIRST_INDEX(i, cache->ranges.count, end_of(cache->ranges.items[i]) > offset);
}

static bool is_removable(const struct bw_range_cache *cache, const struct bw_cached_range *range)
{
    return range->read.done && !range->users &&
           (!range->left || cache->requested - range->age > OLD);
}

/* Removes ranges that were not read since the hand has passed them, until there is room. */
static bool make_room(struct bw_range_cache *cache, uint64_t length)
{
    for (size_t passed = 0; cache->bytes + length > LIMIT && passed < 2 * cache->ranges.count;
         passed++) {
        if (cache->hand >= cache->ranges.count)
            cache->hand = 0;
        struct bw_cached_range *range = cache->ranges.items[cache->hand];
        if (is_removable(cache, range) && !range->hit) {
            bw_range_cache_remove(cache, range);
        } else {
            range->hit = false;
            cache->hand++;
        }
    }
    return cache->bytes + length <= LIMIT;
}

struct bw_cached_range *bw_range_cache_add(struct bw_range_cache *cache, uint64_t *begin,
                                           uint64_t end, uint32_t most, bool stays)
{
    size_t at = first_after(cache, *begin);
    for (;
         at < cache->ranges.count && cache->ranges.items[at]->read.offset <= *begin && *begin < end;
         at++) {
        cache->ranges.items[at]->stays |= stays;
        *begin = end_of(cache->ranges.items[at]);
    }
    if (at < cache->ranges.count && cache->ranges.items[at]->read.offset < end)
        end = cache->ranges.items[at]->read.offset;
    if (*begin >= end)
        return NULL;
    const uint32_t length = end - *begin < most ? (uint32_t)(end - *begin) : most;
    if (!make_room(cache, length)) {
        cache->requested += length; /* so that unread ranges get old, too */
        return NULL;
    }
    struct bw_cached_range *range = malloc(sizeof *range + length);
    if (!range)
        return NULL;
    *range = (struct bw_cached_range){
        .read = {.offset = *begin, .length = length}, .age = cache->requested, .stays = stays};
    range->read.buffer = range->bytes;
    BW_AUTO_ERROR struct bw_error *error =
        bw_cached_ranges_insert(&cache->ranges, first_after(cache, *begin), range);
    if (error) {
        free(range);
        return NULL;
    }
    cache->bytes += length;
    cache->requested += length;
    *begin += length;
    return range;
}

struct bw_cached_range *bw_range_cache_find(const struct bw_range_cache *cache, uint64_t offset)
{
    const size_t at = first_after(cache, offset);
    return at < cache->ranges.count && cache->ranges.items[at]->read.offset <= offset
               ? cache->ranges.items[at]
               : NULL;
}

bool bw_range_cache_has(const struct bw_range_cache *cache, uint64_t offset, uint64_t length)
{
    const uint64_t end = offset + length;
    const struct bw_cached_range *range;
    while (offset < end && (range = bw_range_cache_find(cache, offset)))
        offset = end_of(range);
    return offset >= end;
}

void bw_range_cache_remove(struct bw_range_cache *cache, struct bw_cached_range *range)
{
    bw_cached_ranges_remove(&cache->ranges, first_after(cache, range->read.offset));
    cache->bytes -= range->read.length;
    free(range);
}
