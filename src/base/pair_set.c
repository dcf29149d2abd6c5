/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of pairs: a set for each first number. */
#include "base/pair_set.h"

#include "base/array.h"

/* The set of a first number; NULL if memory runs out. */
static struct bw_number_set *seconds_of(struct bw_pair_set *set, uint64_t first)
{
    const uint32_t at = bw_map_get(&set->firsts, first);
    if (at != UINT32_MAX)
        return &set->seconds[at];
    if (!BW_ARRAY_RESERVE(set->seconds, set->count, set->capacity) ||
        !bw_map_put(&set->firsts, first, (uint32_t)set->count))
        return NULL;
    set->seconds[set->count] = (struct bw_number_set){0};
    return &set->seconds[set->count++];
}

bool bw_pair_set_add(struct bw_pair_set *set, uint64_t first, uint64_t second, bool *is_new)
{
    struct bw_number_set *seconds = seconds_of(set, first);
    return seconds && bw_number_set_add(seconds, second, is_new);
}

void bw_pair_set_forget(struct bw_pair_set *set, uint64_t first)
{
    const uint32_t at = bw_map_get(&set->firsts, first);
    if (at != UINT32_MAX)
        bw_number_set_free(&set->seconds[at]);
}

void bw_pair_set_free(struct bw_pair_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        bw_number_set_free(&set->seconds[i]);
    bw_map_free(&set->firsts);
    free(set->seconds);
    *set = (struct bw_pair_set){0};
}
