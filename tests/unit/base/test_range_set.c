/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/range_set.c: membership, with ranges added in any order. */
#include "base/range_set.h"

#include "base/buffer.h"
#include "base/cleanup.h"
#include "support/walk_helpers.h"

/* Walks over the numbers from 0 to 100, and says where the set changes. */
static void contains(const struct bw_range_set *ranges, const char *wanted)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    for (uint64_t at = 0, next; at < 100; at = next) {
        next = 100;
        const bool contained = bw_range_set_has(ranges, at, &next);
        bw_buffer_format(&text, "%c%u", contained ? '+' : '-', (unsigned)next);
    }
    assert_string_equal(bw_buffer_text(&text), wanted);
}

static void test_join(void **state)
{
    struct bw_range_set ranges = {0};
    contains(&ranges, "-100");
    for (int round = 0; round < 1000; round++) {
        assert_null(bw_range_set_insert(&ranges, 30, 40));
        assert_null(bw_range_set_insert(&ranges, 10, 20));
        assert_null(bw_range_set_insert(&ranges, 15, 25));
    }
    assert_true(ranges.ranges.capacity < 100); /* adding the same range again takes no memory */
    bw_range_set_join(&ranges);
    contains(&ranges, "-10+25-30+40-100");
    assert_null(bw_range_set_insert(&ranges, 25, 30));
    bw_range_set_join(&ranges);
    contains(&ranges, "-10+40-100");
    bw_range_set_free(&ranges);
}

static void test_ascending(void **state)
{
    struct bw_range_set ranges = {0};
    assert_int_equal(bw_range_set_overlap(&ranges, 0, UINT64_MAX), 0);
    assert_null(bw_range_set_insert(&ranges, 4096, 8192));
    assert_null(bw_range_set_insert(&ranges, 8192, 12288));
    assert_null(bw_range_set_insert(&ranges, 20480, 28672));
    assert_int_equal(ranges.joined, 2);
    assert_int_equal(bw_range_set_overlap(&ranges, 0, 4096), 0);
    assert_int_equal(bw_range_set_overlap(&ranges, 0, 8192), 4096);
    assert_int_equal(bw_range_set_overlap(&ranges, 8192, 24576), 8192);
    assert_int_equal(bw_range_set_overlap(&ranges, 12288, 20480), 0);
    assert_int_equal(bw_range_set_overlap(&ranges, 0, 1 << 20), 16384);
    bw_range_set_free(&ranges);
}
