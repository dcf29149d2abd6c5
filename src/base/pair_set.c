/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The set of pairs: a set for each first number. */
#include "base/pair_set.h"

struct bw_error *bw_pair_set_insert(struct bw_pair_set *set, uint64_t first, uint64_t second,
                                    bool *is_new)
{
    uint32_t at = bw_key_map_get(&set->firsts, first, UINT32_MAX);
    if (at == UINT32_MAX) {
        at = (uint32_t)set->seconds.count;
        BW_TRY(bw_number_sets_reserve(&set->seconds, 1));
        BW_TRY(bw_key_map_put(&set->firsts, first, at));
        BW_TRY(bw_number_sets_push(&set->seconds, (struct bw_number_set){0}));
    }
    return bw_number_set_insert(&set->seconds.items[at], second, is_new);
}

void bw_pair_set_forget(struct bw_pair_set *set, uint64_t first)
{
    const uint32_t at = bw_key_map_get(&set->firsts, first, UINT32_MAX);
    if (at != UINT32_MAX)
        bw_number_set_free(&set->seconds.items[at]);
}

void bw_pair_set_free(struct bw_pair_set *set)
{
    for (size_t i = 0; i < set->seconds.count; i++)
        bw_number_set_free(&set->seconds.items[i]);
    bw_key_map_free(&set->firsts);
    bw_number_sets_free(&set->seconds);
}
