/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Open addressing with linear probing; at most three quarters full. */
#include "base/number_set.h"

#include <stdlib.h>

#include "base/map.h"

enum { GROUP_SHIFT = 6, FIRST_CAPACITY = 16 };

struct bw_number_group {
    uint64_t group; /* numbers divided by 64 */
    uint64_t bits;  /* 0: the place is free */
};

void bw_number_set_free(struct bw_number_set *set)
{
    free(set->groups);
    *set = (struct bw_number_set){0};
}

/* The place of a group or, if it is not there, the free one where it would go. */
static struct bw_number_group *find_group(const struct bw_number_set *set, uint64_t group)
{
    size_t at = bw_map_hash(group, set->multiplier) & (set->capacity - 1);
    while (set->groups[at].bits && set->groups[at].group != group)
        at = (at + 1) & (set->capacity - 1);
    return &set->groups[at];
}

static bool grow_set(struct bw_number_set *set)
{
    struct bw_number_set larger = {.capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY,
                                   .count = set->count,
                                   .multiplier = set->multiplier ? set->multiplier
                                                                 : bw_map_random_multiplier(set)};
    larger.groups = calloc(larger.capacity, sizeof *larger.groups);
    if (!larger.groups)
        return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->groups[i].bits)
            *find_group(&larger, set->groups[i].group) = set->groups[i];
    free(set->groups);
    *set = larger;
    return true;
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << (number & ((1U << GROUP_SHIFT) - 1));
}

bool bw_number_set_add(struct bw_number_set *set, uint64_t number, bool *is_new)
{
    if (set->count * 4 >= set->capacity * 3 && !grow_set(set))
        return false;
    struct bw_number_group *place = find_group(set, number >> GROUP_SHIFT);
    *is_new = !(place->bits & bit_of(number));
    set->count += !place->bits;
    place->group = number >> GROUP_SHIFT;
    place->bits |= bit_of(number);
    return true;
}

bool bw_number_set_has(const struct bw_number_set *set, uint64_t number)
{
    return set->count && find_group(set, number >> GROUP_SHIFT)->bits & bit_of(number);
}
