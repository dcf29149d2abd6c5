/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions: trees of tests. */
#include "base/condition.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

struct bw_error *bw_condition_add(struct bw_condition *condition, enum bw_condition_kind kind,
                                  uint32_t test, uint32_t *node)
{
    if (condition->count == UINT32_MAX ||
        !BW_ARRAY_RESERVE(condition->nodes, condition->count, condition->capacity))
        return bw_error_no_memory();
    *node = (uint32_t)condition->count++;
    condition->nodes[*node] = (struct bw_condition_node){.kind = kind, .test = test};
    return NULL;
}

/* Puts a copy of the node into a new group, which takes its number and its place. */
static struct bw_error *wrap_node(struct bw_condition *condition, enum bw_condition_kind kind,
                                  uint32_t number)
{
    uint32_t copy;
    BW_TRY(bw_condition_add(condition, BW_CONDITION_TEST, 0, &copy));
    struct bw_condition_node *nodes = condition->nodes;
    nodes[copy] = nodes[number];
    nodes[copy].next = 0;
    nodes[number] = (struct bw_condition_node){
        .kind = kind, .first = copy, .last = copy, .next = nodes[number].next};
    return NULL;
}

struct bw_error *bw_condition_join(struct bw_condition *condition, enum bw_condition_kind kind,
                                   uint32_t node, uint32_t other)
{
    if (condition->nodes[node].kind != kind || condition->nodes[node].negated)
        BW_TRY(wrap_node(condition, kind, node));
    struct bw_condition_node *group = &condition->nodes[node];
    *(group->last ? &condition->nodes[group->last].next : &group->first) = other;
    group->last = other;
    return NULL;
}

static enum bw_verdict evaluate_node(const struct bw_condition_node *nodes,
                                     const struct bw_condition_node *node, bool negated,
                                     bw_condition_test *test, const void *context)
{
    negated ^= node->negated;
    if (node->kind == BW_CONDITION_TEST)
        return test(context, node->test, negated);
    const bool needs_all = (node->kind == BW_CONDITION_ALL) != negated;
    const enum bw_verdict decides = needs_all ? BW_NO : BW_STRONG_YES;
    enum bw_verdict verdict = needs_all ? BW_YES : BW_NO;
    for (uint32_t i = node->first; i; i = nodes[i].next) {
        const enum bw_verdict one = nodes[i].kind == BW_CONDITION_TEST /* saves a call */
                                        ? test(context, nodes[i].test, negated ^ nodes[i].negated)
                                        : evaluate_node(nodes, &nodes[i], negated, test, context);
        if (one == decides)
            return one;
        verdict = one > verdict ? one : verdict;
    }
    return verdict;
}

enum bw_verdict bw_condition_evaluate(const struct bw_condition *condition, bw_condition_test *test,
                                      const void *context)
{
    return evaluate_node(condition->nodes, condition->nodes, false, test, context);
}

void bw_condition_free(struct bw_condition *condition)
{
    free(condition->nodes);
}
