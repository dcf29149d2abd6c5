/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conditions: tests that "and", "or" and "not" join to a tree. The caller gives the tests numbers
 * and evaluates them: see walk/selection.c.
 *
 * A tree is built from its leaves, in the order of the text: `a && (b || !c)` is
 *
 *     add a: 0    add b: 1    add c: 2, negated    join any 1 2    join all 0 1
 *
 * A node that is joined with another becomes the group of both and keeps its number. So the node
 * that was added first is always the root.
 */
#ifndef BW_BASE_CONDITION_H
#define BW_BASE_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

enum bw_condition_kind {
    BW_CONDITION_TEST,
    BW_CONDITION_ALL, /**< "and"; holds if nothing is in it */
    BW_CONDITION_ANY, /**< "or" */
};

struct bw_condition_node {
    enum bw_condition_kind kind;
    bool negated;         /**< set by the caller */
    uint32_t test;        /**< the caller's number */
    uint32_t first, last; /**< nodes in a group; 0: none */
    uint32_t next;        /**< the next node in the same group; 0: none */
};

/** All zeros: empty. */
struct bw_condition {
    struct bw_condition_node *nodes;
    size_t count, capacity;
};

/** Whether a condition holds. If several alternatives hold, the strongest verdict counts. */
enum bw_verdict { BW_NO, BW_YES, BW_STRONG_YES };

/** Evaluates the test with that number, or its negation. */
typedef enum bw_verdict bw_condition_test(const void *context, uint32_t test, bool negated);

/** Adds a node that is in no group: a test, or an empty group. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_condition_add(struct bw_condition *condition, enum bw_condition_kind kind,
                                  uint32_t test, uint32_t *node);

/** Joins a node with another one that is not in a group. `kind` is the kind of the group; if the
 * node already is such a group and not negated, the other one is added to it. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_condition_join(struct bw_condition *condition, enum bw_condition_kind kind,
                                   uint32_t node, uint32_t other);

/** Evaluates a condition that is not empty. "Not" is carried down to the tests, so that a test
 * whose result is unknown can pass on either side of it. */
enum bw_verdict bw_condition_evaluate(const struct bw_condition *condition, bw_condition_test *test,
                                      const void *context);

/** Frees it. */
void bw_condition_free(struct bw_condition *condition);

#endif
