/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/history/deleted.c: whether a file is recoverable, from the parts that were read. */
#include "support/walk_helpers.h"

#include "btrfs-walk/history.h"

static void take(struct bw_recoverable *left, enum bw_data_kind kind, uint64_t offset,
                 uint64_t length)
{
    const struct bw_data_part part = {.kind = kind, .offset = offset, .length = length};
    bw_recoverable_add(left, &part);
}

static void test_kinds(void **state)
{
    struct bw_recoverable left = {0};
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_VERIFIED);
    take(&left, BW_DATA_HOLE, 0, 4096);
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_VERIFIED);
    take(&left, BW_DATA_BYTES, 4096, 4096);
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_UNVERIFIED);
    assert_string_equal(bw_recoverable_name(bw_recoverable_kind(&left, false)), "verified");
    const struct bw_data_part corrected = {
        .kind = BW_DATA_BYTES, .offset = 8192, .length = 4096, .corrected = true};
    bw_recoverable_add(&left, &corrected);
    assert_string_equal(bw_recoverable_name(bw_recoverable_kind(&left, false)), "corrected");
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_UNVERIFIED);
    take(&left, BW_DATA_BAD, 12288, 1);
    assert_string_equal(bw_recoverable_name(bw_recoverable_kind(&left, false)), "partly");
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_PARTLY);
    left.good = 0;
    left.in_tree = 0;
    assert_string_equal(bw_recoverable_name(bw_recoverable_kind(&left, false)), "lost");
}

/* Data in a tree block need no checksums of their own. */
static void test_in_tree(void **state)
{
    struct bw_recoverable left = {0};
    const struct bw_data_part part = {.kind = BW_DATA_BYTES, .length = 100, .in_tree = true};
    bw_recoverable_add(&left, &part);
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_VERIFIED);
    take(&left, BW_DATA_BYTES, 4096, 1);
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_UNVERIFIED);
    take(&left, BW_DATA_BAD, 8192, 1);
    assert_int_equal(bw_recoverable_kind(&left, true), BW_RECOVERABLE_PARTLY);
}

static void test_ranges(void **state)
{
    struct bw_recoverable left = {0};
    take(&left, BW_DATA_BAD, 0, 4096);
    take(&left, BW_DATA_BAD, 4096, 4096);
    assert_int_equal(left.count, 1);
    assert_int_equal(left.ranges[0].length, 8192);
    for (uint64_t i = 1; i < 100; i++) {
        take(&left, BW_DATA_BYTES, i * 16384 - 8192, 8192);
        take(&left, BW_DATA_BAD, i * 16384, 8192);
    }
    assert_int_equal(left.count, 100);
    assert_int_equal(left.bad, 100 * 8192);
    assert_int_equal(left.good, 99 * 8192);
    assert_int_equal(left.ranges[BW_RECOVERABLE_RANGES - 1].offset, 15 * 16384);
    assert_int_equal(left.ranges[BW_RECOVERABLE_RANGES - 1].length, 8192);
}
