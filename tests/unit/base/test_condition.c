/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trees of tests: groups, negation, verdicts of different strength, tests without a result. */
#include "base/condition.h"
#include "support/walk_helpers.h"

enum { UNKNOWN = -1 };

/* The results of the tests. An unknown one passes on either side of a negation. */
struct results {
    int of[4];
    unsigned asked; /* a bit for each test */
};

static enum bw_verdict evaluate(const void *context, uint32_t test, bool negated)
{
    struct results *results = (struct results *)(uintptr_t)context;
    results->asked |= 1U << test;
    if (results->of[test] == UNKNOWN)
        return BW_YES;
    if (negated)
        return results->of[test] ? BW_NO : BW_YES;
    return (enum bw_verdict)results->of[test];
}

static uint32_t add(struct bw_condition *condition, uint32_t test, bool negated)
{
    uint32_t node;
    expect_success(bw_condition_add(condition, BW_CONDITION_TEST, test, &node));
    condition->nodes[node].negated = negated;
    return node;
}

static void expect_verdict(const struct bw_condition *condition, struct results results,
                           enum bw_verdict verdict, unsigned asked)
{
    assert_int_equal(bw_condition_evaluate(condition, evaluate, &results), verdict);
    assert_int_equal(results.asked, asked);
}

/* 0 && (1 || !2): the example of the header. */
static void test_groups(void **state)
{
    (void)state;
    struct bw_condition condition = {0};
    const uint32_t first = add(&condition, 0, false), second = add(&condition, 1, false);
    expect_success(
        bw_condition_join(&condition, BW_CONDITION_ANY, second, add(&condition, 2, true)));
    expect_success(bw_condition_join(&condition, BW_CONDITION_ALL, first, second));
    expect_verdict(&condition, (struct results){{0, 2, 0}, 0}, BW_NO, 1);
    expect_verdict(&condition, (struct results){{1, 2, 0}, 0}, BW_STRONG_YES, 3);
    expect_verdict(&condition, (struct results){{1, 1, 1}, 0}, BW_YES, 7);
    expect_verdict(&condition, (struct results){{1, 0, 0}, 0}, BW_YES, 7);
    expect_verdict(&condition, (struct results){{1, 0, 1}, 0}, BW_NO, 7);
    condition.nodes[first].negated = true;
    expect_verdict(&condition, (struct results){{1, 0, 1}, 0}, BW_YES, 7);
    expect_verdict(&condition, (struct results){{1, 1, 0}, 0}, BW_NO, 3);
    expect_verdict(&condition, (struct results){{UNKNOWN, 1, 0}, 0}, BW_YES, 3);
    bw_condition_free(&condition);
}

/* A list stays one group; a negated group becomes a part of another. */
static void test_lists(void **state)
{
    (void)state;
    struct bw_condition condition = {0};
    const uint32_t list = add(&condition, 0, false);
    for (uint32_t test = 1; test < 3; test++)
        expect_success(
            bw_condition_join(&condition, BW_CONDITION_ANY, list, add(&condition, test, false)));
    assert_int_equal(condition.count, 4);
    condition.nodes[list].negated = true;
    expect_success(
        bw_condition_join(&condition, BW_CONDITION_ANY, list, add(&condition, 3, false)));
    assert_int_equal(condition.count, 6);
    expect_verdict(&condition, (struct results){{0, 1, 0, 0}, 0}, BW_NO, 11);
    expect_verdict(&condition, (struct results){{0, 0, 0, 0}, 0}, BW_YES, 15);
    expect_verdict(&condition, (struct results){{1, 0, 0, 2}, 0}, BW_STRONG_YES, 9);
    bw_condition_free(&condition);
}

static void test_empty_group(void **state)
{
    (void)state;
    struct bw_condition condition = {0};
    uint32_t node;
    expect_success(bw_condition_add(&condition, BW_CONDITION_ALL, 0, &node));
    expect_verdict(&condition, (struct results){{0}, 0}, BW_YES, 0);
    condition.nodes[node].negated = true;
    expect_verdict(&condition, (struct results){{0}, 0}, BW_NO, 0);
    bw_condition_free(&condition);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_empty_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
