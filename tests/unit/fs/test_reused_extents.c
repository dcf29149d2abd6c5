/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/fs/reused_extents.c: which of two extents at the same addresses was deleted. */
#include "fs/reused_extents.h"

#include "base/cleanup.h"
#include "support/walk_helpers.h"

/* The whole extent at an address. */
static struct bw_seen_extent whole(uint64_t logical, uint32_t stored, uint64_t generation,
                                   uint64_t leaf)
{
    return (struct bw_seen_extent){logical, generation, leaf, stored, 0, stored};
}

static bool is_reused(const struct bw_seen_extents *seen, struct bw_seen_extent part)
{
    return bw_extent_is_reused(seen, &(struct bw_extent){.kind = BW_EXTENT_REGULAR,
                                                         .generation = part.generation,
                                                         .logical = part.logical,
                                                         .stored = part.stored,
                                                         .used_logical = part.logical + part.offset,
                                                         .used_stored = part.length});
}

/* Settles parts in this order, and in the reverse one. Bit i of `wanted`: part i is reused. */
static void check_parts(const struct bw_seen_extent *parts, size_t count, unsigned wanted)
{
    for (unsigned reverse = 0; reverse < 2; reverse++) {
        BW_SCOPED(bw_seen_extents) struct bw_seen_extents seen = {0};
        for (size_t i = 0; i < count; i++)
            expect_success(bw_seen_extents_push(&seen, parts[reverse ? count - 1 - i : i]));
        expect_success(bw_seen_extents_settle(&seen));
        for (size_t i = 0; i < count; i++)
            assert_int_equal(is_reused(&seen, parts[i]), wanted >> i & 1);
    }
}

#define CHECK(wanted, ...)                                    \
    check_parts((const struct bw_seen_extent[]){__VA_ARGS__}, \
                COUNT(((const struct bw_seen_extent[]){__VA_ARGS__})), wanted)

static void test_older_leaf(void **state)
{
    check_parts(NULL, 0, 0);
    CHECK(1, whole(8192, 8192, 7, 8), whole(8192, 8192, 9, 9));
    CHECK(1, whole(8192, 8192, 7, 8), whole(4096, 8192, 9, 9));
    CHECK(1, whole(8192, 8192, 7, 8), whole(12288, 4096, 9, 9));
    CHECK(1, whole(8192, 16384, 7, 8), whole(12288, 4096, 9, 9));
    CHECK(0, whole(8192, 8192, 7, 8), whole(16384, 4096, 9, 9), whole(4096, 4096, 9, 9));
    /* A balance keeps the generation of an extent: the leaves decide. */
    CHECK(1, whole(8192, 8192, 7, 8), whole(8192, 8192, 3, 9));
    /* The newest leaf counts, in any order. */
    CHECK(5, whole(8192, 8192, 7, 10), whole(8192, 8192, 8, 12), whole(8192, 4096, 9, 11));
    /* One that was itself overwritten proves as much. */
    CHECK(7, whole(0x10000, 0x10000, 5, 5), whole(0x18000, 0x1000, 4, 4),
          whole(0x18000, 0x800, 3, 3), whole(0x10000, 0x1000, 6, 6));
}

static void test_same_extent(void **state)
{
    const struct bw_seen_extent first = {1 << 20, 6, 20, 65536, 0, 4096};
    const struct bw_seen_extent second = {1 << 20, 7, 25, 65536, 4096, 4096};
    const struct bw_seen_extent old = {1 << 20, 7, 9, 65536, 0, 65536};
    const struct bw_seen_extent newer = {1 << 20, 7, 30, 65536, 8192, 4096};
    CHECK(0, whole(8192, 8192, 7, 8), whole(8192, 8192, 7, 9), whole(8192, 8192, 7, 8));
    CHECK(0, first, second); /* preallocated space, written in two transactions */
    CHECK(0, old, newer);
    CHECK(7, old, newer, second, whole((1 << 20) + 8192, 4096, 31, 31));
}
