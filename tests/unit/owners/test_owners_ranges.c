/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/owners/ranges.c: which of the ranges a range meets; sets of tree blocks. */
#include "owners/ranges.h"

#include "support/walk_helpers.h"

/* The numbers of the ranges that meet another one, as digits. */
static void meets(const struct bw_query_ranges *list, uint64_t start, uint64_t length,
                  const char *wanted)
{
    char found[16];
    size_t count = 0;
    const struct bw_query_range *query;
    for (size_t next = 0; (query = bw_query_ranges_next(list, &next, start, length));)
        found[count++] = (char)('0' + query->number);
    found[count] = '\0';
    assert_string_equal(found, wanted);
}

static void test_query_ranges(void **state)
{
    struct bw_query_ranges list = {0};
    meets(&list, 0, UINT64_MAX, "");
    assert_true(bw_query_ranges_add(&list, 100, 10, 0));
    assert_true(bw_query_ranges_add(&list, 50, 200, 1));
    assert_true(bw_query_ranges_add(&list, 300, 1, 2));
    assert_true(bw_query_ranges_add(&list, UINT64_MAX - 1, 1, 3));
    assert_true(bw_query_ranges_add(&list, 0, 1, 4));
    bw_query_ranges_sort(&list);
    meets(&list, 0, UINT64_MAX, "41023");
    meets(&list, 1, 49, "");
    meets(&list, 109, 1, "10");
    meets(&list, 110, 1, "1");
    meets(&list, 250, 50, "");
    meets(&list, 250, 51, "2");
    meets(&list, UINT64_MAX - 1, 1, "3");
    bw_query_range_list_free(&list.ranges);
}

static void test_blocks(void **state)
{
    struct bw_block_set set = {0};
    bool added;
    for (uint64_t block = 0; block < 100; block++) {
        assert_false(bw_block_set_has(&set, block << 14));
        assert_null(bw_block_set_insert(&set, block << 14, &added));
        assert_true(added);
        assert_null(bw_block_set_insert(&set, block << 14, &added));
        assert_true(!added);
        assert_true(bw_block_set_has(&set, block << 14));
    }
    bw_key_map_free(&set.words);
}
