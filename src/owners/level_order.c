/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Putting the blocks of a level in order: nodes by group and age. */
#include "owners/level_order.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

/* A node that is put in its place. */
struct entry {
    uint32_t group, age, number;
};

/* Keys that have the same group by chance cost nothing but time. */
uint32_t bw_level_group(const struct bw_key *key)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(((key->objectid * odd ^ key->type) * odd ^ key->offset) * odd >> 32);
}

bool bw_level_order_meet(struct bw_level_order *order, unsigned level, size_t place, uint32_t group)
{
    struct bw_met_nodes *met = &order->met[level];
    if (level && !BW_ARRAY_RESERVE(met->nodes, met->count, met->capacity))
        return false;
    if (level)
        met->nodes[met->count] = (struct bw_met_node){(uint32_t)place, group};
    met->count++;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->age != b->age)
        return a->age > b->age ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static bool order_nodes(struct bw_level_order *order, const struct bw_met_nodes *met,
                        const struct bw_wave_list *wanted, const struct bw_shared_extents *shared,
                        uint64_t newest)
{
    const size_t count = wanted->count + met->count;
    BW_AUTO_FREE struct entry *entries = calloc(count + 1, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct bw_tree_block_expectation *promise = &wanted->blocks[i].pointer.expectation;
        entries[i] = (struct entry){bw_level_group(&promise->first_key),
                                    bw_shared_age(newest, promise->generation), (uint32_t)i};
    }
    for (size_t i = 0; i < met->count; i++)
        entries[wanted->count + i] =
            (struct entry){met->nodes[i].group, shared->extents[met->nodes[i].place].value,
                           (uint32_t)wanted->count + met->nodes[i].place};
    qsort(entries, count, sizeof *entries, compare);
    for (size_t i = 0; i < count; i++)
        order->numbers[i] = entries[i].number;
    return true;
}

static void order_leaves(struct bw_level_order *order, size_t wanted, size_t all,
                         const struct bw_shared_extents *shared)
{
    size_t count = 0;
    for (; count < wanted; count++)
        order->numbers[count] = (uint32_t)count;
    for (size_t i = 0; count < all; i++)
        if ((shared->extents[i].place & BW_SHARED_FLAGS) == 1)
            order->numbers[count++] = (uint32_t)(wanted + i);
}

bool bw_level_order_make(struct bw_level_order *order, unsigned level,
                         const struct bw_wave_list *wanted, const struct bw_shared_extents *shared,
                         uint64_t newest, size_t *count)
{
    struct bw_met_nodes *met = &order->met[level];
    *count = wanted->count + met->count;
    if (wanted->count + shared->count >= UINT32_MAX)
        return false;
    free(order->numbers);
    order->numbers = calloc(*count + 1, sizeof *order->numbers);
    if (!order->numbers)
        return false;
    if (!level)
        order_leaves(order, wanted->count, *count, shared);
    else if (!order_nodes(order, met, wanted, shared, newest))
        return false;
    free(BW_TAKE(met->nodes));
    return true;
}

void bw_level_order_free(struct bw_level_order *order)
{
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(order->met[level].nodes);
    free(order->numbers);
}
