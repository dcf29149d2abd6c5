/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/owners/root_sets.c: equal sets have one number, however they were made. */
#include "owners/root_sets.h"

#include "support/walk_helpers.h"

enum { ROOTS = 10000 };

static void has_runs(const struct bw_root_sets *sets, uint32_t set,
                     const struct bw_root_range *runs, size_t count)
{
    struct bw_root_range run = {0};
    for (size_t i = 0; i < count; i++) {
        assert_true(bw_root_set_next(sets, set, &run));
        assert_int_equal(run.first, runs[i].first);
        assert_int_equal(run.end, runs[i].end);
    }
    assert_false(bw_root_set_next(sets, set, &run));
}

static void test_unions(void **state)
{
    struct bw_root_sets sets;
    assert_true(bw_root_sets_init(&sets, 6));
    const uint32_t one = bw_root_set_of(&sets, 1), two = bw_root_set_of(&sets, 2);
    const uint32_t five = bw_root_set_of(&sets, 5);
    assert_int_equal(bw_root_set_of(&sets, 1), one);
    assert_int_equal(bw_root_set_union(&sets, 0, one), one);
    assert_int_equal(bw_root_set_union(&sets, one, 0), one);
    assert_int_equal(bw_root_set_union(&sets, one, one), one);
    has_runs(&sets, 0, NULL, 0);

    const uint32_t outer = bw_root_set_union(&sets, five, one);
    has_runs(&sets, outer, (const struct bw_root_range[]){{1, 2}, {5, 6}}, 2);
    assert_int_equal(bw_root_set_union(&sets, one, five), outer);
    const uint32_t all = bw_root_set_union(&sets, outer, two);
    has_runs(&sets, all, (const struct bw_root_range[]){{1, 3}, {5, 6}}, 2);
    assert_int_equal(bw_root_set_union(&sets, bw_root_set_union(&sets, two, five), one), all);
    assert_int_equal(bw_root_set_union(&sets, all, outer), all);
    assert_int_equal(bw_root_set_below(&sets, all, 5), bw_root_set_union(&sets, one, two));
    assert_int_equal(bw_root_set_below(&sets, all, 1), 0);
    bw_root_sets_free(&sets);
}

/* Sets that grow by one subvolume each, as for a series of snapshots, take little memory. */
static void test_many_snapshots(void **state)
{
    struct bw_root_sets sets;
    assert_true(bw_root_sets_init(&sets, ROOTS));
    uint32_t row = 0, odd = 0;
    for (uint32_t i = 0; i < ROOTS; i++) {
        const uint32_t one = bw_root_set_of(&sets, i);
        row = bw_root_set_union(&sets, row, one);
        odd = i % 2 ? bw_root_set_union(&sets, odd, one) : odd;
    }
    has_runs(&sets, row, (const struct bw_root_range[]){{0, ROOTS}}, 1);
    has_runs(&sets, bw_root_set_below(&sets, row, 4711), (const struct bw_root_range[]){{0, 4711}},
             1);
    struct bw_root_range run = {0};
    size_t runs = 0;
    while (bw_root_set_next(&sets, odd, &run)) {
        assert_int_equal(run.first, 2 * runs + 1);
        assert_int_equal(run.end, run.first + 1);
        runs++;
    }
    assert_int_equal(runs, ROOTS / 2);
    assert_int_equal(bw_root_set_union(&sets, row, odd), row);
    assert_true(sets.nodes.count < 300000);
    bw_root_sets_free(&sets);
}

/* Every subvolume is found in the set of itself, at every height. */
static void test_numbers(void **state)
{
    const uint32_t sizes[] = {0, 1, 64, 65, 128, 129, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct bw_root_sets sets;
        assert_true(bw_root_sets_init(&sets, sizes[i]));
        for (uint32_t root = 0; root < sizes[i]; root += root < 200 ? 1 : 977)
            has_runs(&sets, bw_root_set_of(&sets, root),
                     (const struct bw_root_range[]){{root, root + 1}}, 1);
        bw_root_sets_free(&sets);
    }
}

/* Compares sets with lists of their members. */
struct example {
    uint32_t set;
    bool members[300];
};

static void is_right(const struct bw_root_sets *sets, const struct example *example)
{
    struct bw_root_range run = {0};
    bool members[300] = {false};
    while (bw_root_set_next(sets, example->set, &run))
        for (uint32_t root = run.first; root < run.end; root++)
            members[root] = true;
    assert_memory_equal(members, example->members, sizeof members);
}

static struct bw_root_range any_run(unsigned *seed, bool is_short)
{
    const uint32_t first = (uint32_t)rand_r(seed) % 300, most = is_short ? 3 : 300;
    const uint32_t end = first + 1 + (uint32_t)rand_r(seed) % most;
    return (struct bw_root_range){first, end < 300 ? end : 300};
}

static void add_members(struct example *to, const bool *members, uint32_t first, uint32_t end)
{
    for (uint32_t root = first; root < end; root++)
        to->members[root] |= !members || members[root];
}

/* The sum of some runs and sets, in any order. */
static struct example any_sum(struct bw_root_sets *sets, unsigned *seed,
                              const struct example *examples)
{
    struct example all = {0};
    struct bw_root_sum sum = {0};
    const bool is_short = rand_r(seed) % 2;
    for (int i = rand_r(seed) % 20; i >= 0; i--) {
        const struct example *other = &examples[rand_r(seed) % 50];
        const struct bw_root_range run = any_run(seed, is_short);
        if (i % 5 == 4) {
            bw_root_sum_add(sets, &sum, other->set);
            add_members(&all, other->members, 0, 300);
        } else {
            bw_root_sum_add_range(sets, &sum, run);
            add_members(&all, NULL, run.first, run.end);
        }
    }
    all.set = bw_root_sum_end(sets, &sum);
    return all;
}

static void test_against_lists(void **state)
{
    struct bw_root_sets sets;
    static struct example examples[50];
    unsigned seed = 1;
    assert_true(bw_root_sets_init(&sets, 300));
    for (unsigned round = 0; round < 2000; round++) {
        struct example *example = &examples[rand_r(&seed) % 50];
        const struct example *other = &examples[rand_r(&seed) % 50];
        const uint32_t end = (uint32_t)rand_r(&seed) % 300;
        if (round % 4 == 0) {
            example->set = bw_root_set_below(&sets, example->set, end);
            memset(&example->members[end], 0, 300 - end);
        } else if (round % 4 == 1) {
            *example = any_sum(&sets, &seed, examples);
        } else {
            example->set = bw_root_set_union(&sets, example->set, other->set);
            add_members(example, other->members, 0, 300);
        }
        is_right(&sets, example);
        if (memcmp(example->members, other->members, 300) == 0)
            assert_int_equal(example->set, other->set);
    }
    bw_root_sets_free(&sets);
}
