/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interned sets of subvolumes: sorted lists, found again by their hash, and remembered unions. */
#include "owners/root_sets.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static uint64_t hash(const uint32_t *roots, uint32_t count)
{
    uint64_t sum = count;
    for (uint32_t i = 0; i < count; i++)
        sum = (sum ^ roots[i] ^ sum >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return sum;
}

/* The number of a list, which is copied if it is new. Sets whose hashes collide take the next. */
static uint32_t intern(struct bw_root_sets *sets, const uint32_t *roots, uint32_t count)
{
    uint64_t key = hash(roots, count);
    for (;; key++) {
        const uint32_t number = bw_map_get(&sets->by_hash, key);
        if (number == UINT32_MAX)
            break;
        if (sets->sets[number].count == count &&
            memcmp(sets->sets[number].roots, roots, count * sizeof *roots) == 0)
            return number;
    }
    uint32_t *copy = malloc((count + 1) * sizeof *copy);
    if (!copy || sets->count >= UINT32_MAX ||
        !BW_ARRAY_RESERVE(sets->sets, sets->count, sets->capacity) ||
        !bw_map_put(&sets->by_hash, key, (uint32_t)sets->count)) {
        free(copy);
        return UINT32_MAX;
    }
    if (count)
        memcpy(copy, roots, count * sizeof *roots);
    sets->sets[sets->count] = (struct bw_root_set){copy, count, 0};
    sets->memory += (count + 1) * sizeof *copy + sizeof *sets->sets;
    return (uint32_t)sets->count++;
}

bool bw_root_sets_init(struct bw_root_sets *sets)
{
    const uint32_t none = 0;
    *sets = (struct bw_root_sets){0};
    return intern(sets, &none, 0) == 0;
}

void bw_root_sets_free(struct bw_root_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++)
        free(sets->sets[i].roots);
    free(sets->sets);
    bw_map_free(&sets->by_hash);
    bw_map_free(&sets->unions);
}

uint32_t bw_root_set_of(struct bw_root_sets *sets, uint32_t root)
{
    return intern(sets, &root, 1);
}

static uint32_t merge(const struct bw_root_set *a, const struct bw_root_set *b, uint32_t *merged)
{
    uint32_t i = 0, k = 0, count = 0;
    while (i < a->count || k < b->count) {
        const bool from_a = k == b->count || (i < a->count && a->roots[i] <= b->roots[k]);
        const bool both = from_a && k < b->count && a->roots[i] == b->roots[k];
        merged[count++] = from_a ? a->roots[i] : b->roots[k];
        i += from_a;
        k += !from_a || both;
    }
    return count;
}

uint32_t bw_root_set_union(struct bw_root_sets *sets, uint32_t a, uint32_t b)
{
    if (a == b || !b)
        return a;
    if (!a)
        return b;
    const uint64_t key = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
    uint32_t number = bw_map_get(&sets->unions, key);
    if (number != UINT32_MAX)
        return number;
    uint32_t *merged = malloc((sets->sets[a].count + sets->sets[b].count) * sizeof *merged);
    if (!merged)
        return UINT32_MAX;
    number = intern(sets, merged, merge(&sets->sets[a], &sets->sets[b], merged));
    free(merged);
    return number != UINT32_MAX && bw_map_put(&sets->unions, key, number) ? number : UINT32_MAX;
}
