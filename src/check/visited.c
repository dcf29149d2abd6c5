/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which tree blocks have been reached. A word of the map has the bits of 16 places of the smallest
 * block size; sums are kept beside it. */
#include <stdlib.h>

#include "base/array.h"
#include "check/blocks.h"

enum { PLACES = 16 };

struct bw_visited {
    pthread_mutex_t lock;
    struct bw_map places; /* address / (PLACES blocks) to bits */
    struct bw_map shared; /* address to number of the sums */
    struct bw_inode_sums *sums;
    size_t count, capacity;
};

struct bw_visited *bw_visited_create(void)
{
    struct bw_visited *visited = calloc(1, sizeof *visited);
    if (visited)
        pthread_mutex_init(&visited->lock, NULL);
    return visited;
}

void bw_visited_destroy(struct bw_visited *visited)
{
    if (!visited)
        return;
    bw_map_free(&visited->places);
    bw_map_free(&visited->shared);
    free(visited->sums);
    pthread_mutex_destroy(&visited->lock);
    free(visited);
}

static enum bw_visit visit(struct bw_visited *visited, uint64_t bytenr, struct bw_inode_sums *sums)
{
    const uint64_t place = bytenr / BW_MIN_SECTORSIZE;
    const uint32_t bit = UINT32_C(1) << place % PLACES;
    uint32_t known = bw_map_get(&visited->places, place / PLACES);
    known = known == UINT32_MAX ? 0 : known;
    if (!(known & bit))
        return bw_map_put(&visited->places, place / PLACES, known | bit) ? BW_VISIT_FIRST
                                                                         : BW_VISIT_FAILED;
    const uint32_t number = bw_map_get(&visited->shared, bytenr);
    if (number == UINT32_MAX)
        return BW_VISIT_CROSSED;
    *sums = visited->sums[number];
    return BW_VISIT_SHARED;
}

enum bw_visit bw_visit(struct bw_visited *visited, uint64_t bytenr, struct bw_inode_sums *sums)
{
    pthread_mutex_lock(&visited->lock);
    enum bw_visit result = visit(visited, bytenr, sums);
    pthread_mutex_unlock(&visited->lock);
    return result;
}

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Adds the blocks of a word of the map that lie in the range. */
static bool list_places(struct bw_visited_list *list, uint64_t start, uint64_t end, uint64_t word,
                        uint32_t bits)
{
    for (unsigned i = 0; bits >> i; i++) {
        const uint64_t bytenr = (word * PLACES + i) * BW_MIN_SECTORSIZE;
        if (!(bits >> i & 1) || bytenr < start || bytenr >= end)
            continue;
        if (!BW_ARRAY_RESERVE(list->addresses, list->count, list->capacity))
            return false;
        list->addresses[list->count++] = bytenr;
    }
    return true;
}

bool bw_visited_in(struct bw_visited *visited, uint64_t start, uint64_t end,
                   struct bw_visited_list *list)
{
    size_t position = 0;
    uint64_t word;
    uint32_t bits;
    list->count = 0;
    while (bw_map_next(&visited->places, &position, &word, &bits))
        if (word <= UINT64_MAX / PLACES / BW_MIN_SECTORSIZE &&
            !list_places(list, start, end, word, bits))
            return false;
    if (list->count)
        qsort(list->addresses, list->count, sizeof *list->addresses, compare);
    return true;
}

static bool keep(struct bw_visited *visited, uint64_t bytenr, const struct bw_inode_sums *sums)
{
    if (!BW_ARRAY_RESERVE(visited->sums, visited->count, visited->capacity) ||
        visited->count >= UINT32_MAX ||
        !bw_map_put(&visited->shared, bytenr, (uint32_t)visited->count))
        return false;
    visited->sums[visited->count++] = *sums;
    return true;
}

bool bw_visited_keep(struct bw_visited *visited, uint64_t bytenr, const struct bw_inode_sums *sums)
{
    pthread_mutex_lock(&visited->lock);
    bool kept = keep(visited, bytenr, sums);
    pthread_mutex_unlock(&visited->lock);
    return kept;
}
