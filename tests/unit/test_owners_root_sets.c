/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/owners/root_sets.c: each set is kept once, and unions are sorted and without duplicates. */
#include "owners/root_sets.h"

#include "support/walk_helpers.h"

static void has_roots(const struct bw_root_sets *sets, uint32_t set, const uint32_t *roots,
                      uint32_t count)
{
    assert_int_equal(sets->sets[set].count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sets->sets[set].roots[i], roots[i]);
}

static void test_unions(void **state)
{
    (void)state;
    struct bw_root_sets sets;
    assert_true(bw_root_sets_init(&sets));
    const uint32_t one = bw_root_set_of(&sets, 1), two = bw_root_set_of(&sets, 2);
    const uint32_t five = bw_root_set_of(&sets, 5);
    assert_int_equal(bw_root_set_of(&sets, 1), one);
    assert_int_equal(bw_root_set_union(&sets, 0, one), one);
    assert_int_equal(bw_root_set_union(&sets, one, 0), one);
    assert_int_equal(bw_root_set_union(&sets, one, one), one);

    const uint32_t outer = bw_root_set_union(&sets, five, one);
    has_roots(&sets, outer, (const uint32_t[]){1, 5}, 2);
    assert_int_equal(bw_root_set_union(&sets, one, five), outer);

    const uint32_t all = bw_root_set_union(&sets, outer, two);
    has_roots(&sets, all, (const uint32_t[]){1, 2, 5}, 3);
    assert_int_equal(bw_root_set_union(&sets, bw_root_set_union(&sets, two, five), one), all);
    assert_int_equal(bw_root_set_union(&sets, all, outer), all);
    bw_root_sets_free(&sets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
