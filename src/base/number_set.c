/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of numbers: a map of groups. */
#include "base/number_set.h"

enum { GROUP_SHIFT = 6 };

void bw_number_set_free(struct bw_number_set *set)
{
    bw_number_groups_free(&set->groups);
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << (number & ((1U << GROUP_SHIFT) - 1));
}

struct bw_error *bw_number_set_insert(struct bw_number_set *set, uint64_t number, bool *is_new)
{
    struct bw_number_groups_entry *group;
    BW_TRY(bw_number_groups_enter(&set->groups, number >> GROUP_SHIFT, &group, is_new));
    *is_new = !(group->value & bit_of(number));
    group->value |= bit_of(number);
    return NULL;
}

bool bw_number_set_has(const struct bw_number_set *set, uint64_t number)
{
    return bw_number_groups_get(&set->groups, number >> GROUP_SHIFT, 0) & bit_of(number);
}
