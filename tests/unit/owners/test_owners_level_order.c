/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order in which the blocks of a level are read. */
#include "owners/node_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { NEWEST = 100 };

static const struct bw_key low = {256, 1, 0}, high = {300, 1, 0};

static struct bw_queued_block wanted_block(const struct bw_key *key, uint64_t generation)
{
    return (struct bw_queued_block){
        .pointer.expectation = {.first_key = *key, .generation = generation}};
}

/* Three nodes in the table, by place; they are `NEWEST - value` old. */
static struct bw_shared_extents make_table(struct bw_shared_extent *extents, uint64_t flags)
{
    for (unsigned i = 0; i < 3; i++)
        extents[i] = (struct bw_shared_extent){.place = (uint64_t)i << 12 | flags};
    extents[0].value = NEWEST - 30;
    extents[1].value = NEWEST - 10;
    extents[2].value = NEWEST - 20;
    return (struct bw_shared_extents){.extents.items = extents, .extents.count = 3};
}

static void test_versions_together(void **state)
{
    struct bw_shared_extent extents[3];
    const struct bw_shared_extents table = make_table(extents, 2);
    struct bw_queued_block blocks[] = {wanted_block(&low, 5), wanted_block(&high, 25)};
    const struct bw_block_queue wanted = {.items = blocks, .count = 2};
    struct bw_level_order order = {0};
    size_t count;
    assert_true(bw_level_order_add(&order, 1, 0, bw_level_group(&high)));
    assert_true(bw_level_order_add(&order, 1, 2, bw_level_group(&low)));
    assert_true(bw_level_order_add(&order, 1, 1, bw_level_group(&high)));
    assert_true(bw_level_order_make(&order, 1, &wanted, &table, NEWEST, &count));
    assert_int_equal(count, 5);
    /* Which of the groups is the first one does not matter. */
    const uint32_t lows[] = {0, 4}, highs[] = {3, 1, 2};
    const bool low_first = order.numbers[0] == lows[0];
    assert_memory_equal(order.numbers + (low_first ? 0 : 3), lows, sizeof lows);
    assert_memory_equal(order.numbers + (low_first ? 2 : 0), highs, sizeof highs);
    bw_level_order_free(&order);
}

static void test_leaves_by_address(void **state)
{
    struct bw_shared_extent extents[3];
    const struct bw_shared_extents table = make_table(extents, 1);
    struct bw_queued_block block = wanted_block(&high, 5);
    const struct bw_block_queue wanted = {.items = &block, .count = 1};
    const uint32_t expected[] = {0, 1, 2, 3};
    struct bw_level_order order = {0};
    size_t count;
    for (size_t place = 3; place-- > 0;)
        assert_true(bw_level_order_add(&order, 0, place, 0));
    assert_true(bw_level_order_make(&order, 0, &wanted, &table, NEWEST, &count));
    assert_int_equal(count, 4);
    assert_memory_equal(order.numbers, expected, sizeof expected);
    bw_level_order_free(&order);
}
