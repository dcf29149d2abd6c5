/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of the blocks of a level, and runs of nodes with the same children. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "owners/node_runs.h"

/* Order: nodes by group and age. */

/* A node to be sorted. */
struct entry {
    uint32_t group, age, number;
};

/* Keys that have the same group by chance cost nothing but time. */
uint32_t bw_level_group(const struct bw_key *key)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(((key->objectid * odd ^ key->type) * odd ^ key->offset) * odd >> 32);
}

bool bw_level_order_add(struct bw_level_order *order, unsigned level, size_t place, uint32_t group)
{
    struct bw_found_nodes *found = &order->found[level];
    if (level && bw_found_nodes_reserve(found, 1))
        return false;
    if (level)
        found->items[found->count] = (struct bw_found_node){(uint32_t)place, group};
    found->count++;
    return true;
}

static int by_group(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->age != b->age)
        return a->age > b->age ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

bool bw_level_order_make(struct bw_level_order *order, unsigned level,
                         const struct bw_block_queue *wanted,
                         const struct bw_shared_extents *shared, uint64_t newest, size_t *count)
{
    struct bw_found_nodes *found = &order->found[level];
    const struct bw_shared_extent *extents = shared->extents.items;
    const size_t all = *count = wanted->count + found->count;
    if (wanted->count + shared->extents.count >= UINT32_MAX)
        return false;
    free(order->numbers);
    order->numbers = calloc(all + 1, sizeof *order->numbers);
    if (!order->numbers)
        return false;

    /* Leaves: the requested ones, then those that were found, by address. */
    if (!level) {
        size_t filled = 0;
        for (; filled < wanted->count; filled++)
            order->numbers[filled] = (uint32_t)filled;
        for (size_t i = 0; filled < all; i++)
            if ((extents[i].place & BW_SHARED_FLAGS) == 1)
                order->numbers[filled++] = (uint32_t)(wanted->count + i);
        free(BW_TAKE(found->items));
        return true;
    }

    /* Nodes, by group and age. */
    BW_AUTO_FREE struct entry *entries = calloc(all + 1, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct bw_tree_block_expectation *promise = &wanted->items[i].pointer.expectation;
        entries[i] = (struct entry){bw_level_group(&promise->first_key),
                                    bw_shared_age(newest, promise->generation), (uint32_t)i};
    }
    for (size_t i = 0; i < found->count; i++) {
        const struct bw_found_node *node = &found->items[i];
        entries[wanted->count + i] = (struct entry){node->group, extents[node->place].value,
                                                    (uint32_t)wanted->count + node->place};
    }
    qsort(entries, all, sizeof *entries, by_group);
    for (size_t i = 0; i < all; i++)
        order->numbers[i] = entries[i].number;
    free(BW_TAKE(found->items));
    return true;
}

void bw_level_order_free(struct bw_level_order *order)
{
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(order->found[level].items);
    free(order->numbers);
}

/* Runs of nodes with the same children. Nodes that begin with the same key are versions of one
 * node; they are read one after the other, and make a row. */

enum { VERSIONS = 1024, NO_RUN = UINT32_MAX };

/* The set of trees that reach a node. */
struct reaching {
    uint32_t set;
    struct bw_root_range range; /* they are these; end 0: they are not a single range */
    uint32_t since; /* the first node of those whose runs follow one another up to here */
};

/* Versions of a node, which make a row. */
struct bw_node_runs {
    const struct bw_run_receiver *receiver;
    struct bw_key key; /* the first one */
    unsigned level;    /* of the children */
    struct reaching nodes[VERSIONS];
    unsigned count;
    uint32_t slots;                                   /* that may have a run */
    struct bw_run_child children[BW_MOST_REFERENCES]; /* what the last node had there */
    struct {
        uint32_t since, set;
        unsigned count;
    } known; /* the set of some nodes at the end of the row: most runs are of the same */
};

struct bw_node_runs *bw_node_runs_create(const struct bw_run_receiver *receiver)
{
    struct bw_node_runs *runs = calloc(1, sizeof *runs);
    if (runs)
        runs->receiver = receiver;
    return runs;
}

void bw_node_runs_destroy(struct bw_node_runs *runs)
{
    free(runs);
}

/* Ends the run of a child, which the nodes from `since` on have: the trees that reach any of them
 * reach the child. With the lock. */
static void end_run(struct bw_node_runs *runs, struct bw_run_child *child)
{
    const struct bw_run_receiver *receiver = runs->receiver;
    struct bw_root_sets *sets = receiver->sets;
    const struct reaching *first = &runs->nodes[child->since],
                          *last = &runs->nodes[runs->count - 1];
    if (runs->known.count != runs->count || runs->known.since != child->since) {
        if (last->range.end && last->since <= child->since) {
            runs->known.set = bw_root_set_of_range(
                sets, (struct bw_root_range){first->range.first, last->range.end});
        } else {
            struct bw_root_sum sum = {0};
            for (const struct reaching *those = first; those <= last; those++)
                if (those->range.end)
                    bw_root_sum_add_range(sets, &sum, those->range);
                else
                    bw_root_sum_add(sets, &sum, those->set);
            runs->known.set = bw_root_sum_end(sets, &sum);
        }
        runs->known.since = child->since;
        runs->known.count = runs->count;
    }
    receiver->reach(receiver->context, child, runs->level, runs->known.set);
    child->since = NO_RUN;
}

void bw_node_runs_end(struct bw_node_runs *runs)
{
    if (!runs->count)
        return;
    pthread_mutex_lock(runs->receiver->lock);
    for (uint32_t slot = 0; slot < runs->slots; slot++)
        if (runs->children[slot].since != NO_RUN)
            end_run(runs, &runs->children[slot]);
    pthread_mutex_unlock(runs->receiver->lock);
    runs->count = runs->known.count = runs->slots = 0;
}

/* Goes on with the run of a child, or ends it if the next node has something else there, or
 * nothing (NULL). */
static void continue_run(struct bw_node_runs *runs, struct bw_run_child *child,
                         const struct bw_run_child *next)
{
    const bool same = next && child->bytenr == next->bytenr && child->value == next->value;
    if (child->since != NO_RUN && !same) {
        pthread_mutex_lock(runs->receiver->lock);
        end_run(runs, child);
        pthread_mutex_unlock(runs->receiver->lock);
    }
    if (next && !same)
        *child = *next;
}

void bw_node_runs_add(struct bw_node_runs *runs, const struct bw_node *node, uint32_t begin,
                      uint64_t newest, uint32_t set, bool *alone)
{
    const struct bw_run_receiver *receiver = runs->receiver;

    /* The node continues the row of nodes that begin with its key, or begins another one. */
    const struct bw_key key = bw_node_key(node, 0);
    if (runs->count == VERSIONS || runs->level + 1 != node->level ||
        bw_key_compare(&runs->key, &key) != 0)
        bw_node_runs_end(runs);
    runs->key = key;
    runs->level = node->level - 1u;
    for (; runs->slots < node->item_count; runs->slots++)
        runs->children[runs->slots].since = NO_RUN;

    /* Each child continues the run in its slot, or begins another one if it is shared. */
    for (uint32_t slot = 0; slot < runs->slots; slot++) {
        struct bw_run_child *child = &runs->children[slot];
        if (slot < begin || slot >= node->item_count) {
            continue_run(runs, child, NULL);
            continue;
        }
        const struct bw_node_pointer pointer = bw_node_pointer_at(node, slot);
        const struct bw_run_child next = {pointer.bytenr, SIZE_MAX,
                                          bw_shared_age(newest, pointer.generation), 0, NO_RUN};
        continue_run(runs, child, &next);
        alone[slot] = false;
        if (child->since != NO_RUN)
            continue;
        child->group = bw_level_group(&pointer.key);
        alone[slot] = !receiver->find(receiver->context, child);
        child->since = alone[slot] ? NO_RUN : runs->count;
    }

    /* The node, with the set that reaches it. */
    const struct reaching *before = runs->count ? &runs->nodes[runs->count - 1] : NULL;
    struct reaching those = {.set = set, .since = runs->count};
    pthread_mutex_lock(receiver->lock);
    if (!bw_root_set_is_range(receiver->sets, set, &those.range))
        those.range.end = 0;
    pthread_mutex_unlock(receiver->lock);
    if (before && before->range.end && before->range.end == those.range.first)
        those.since = before->since;
    runs->nodes[runs->count++] = those;
}
