/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/vector.h: growth, and what happens without memory. */
#include <stdlib.h>

static void *failing_realloc(void *memory, size_t size);

/* The reallocation of the vectors of this test fails on demand. */
#define realloc failing_realloc
#include "base/vector.c"
#undef realloc

#include "base/vector.h"
#include "support/walk_helpers.h"

static bool memory_is_exhausted;

static void *failing_realloc(void *memory, size_t size)
{
    return memory_is_exhausted ? NULL : realloc(memory, size);
}

struct point {
    uint32_t x, y;
};

BW_VECTOR(points, struct point);

static void test_push(void **state)
{
    BW_SCOPED(points) struct points points = {0};
    for (uint32_t i = 0; i < 1000; i++) {
        assert_null(points_push(&points, (struct point){i, i + 1}));
        assert_true(points.capacity >= points.count);
    }
    assert_int_equal(points.count, 1000);
    assert_true(points.capacity < 2000);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(points.items[i].x, i);
        assert_int_equal(points.items[i].y, i + 1);
    }
    assert_int_equal(points_pop(&points).x, 999);
    assert_int_equal(points.count, 999);
}

static void test_append_and_insert(void **state)
{
    BW_SCOPED(points) struct points points = {0};
    static const struct point many[20] = {{1, 2}, {3, 4}, [19] = {5, 6}};
    assert_null(points_append(&points, NULL, 0));
    assert_null(points.items);
    assert_null(points_append(&points, many, 2));
    assert_null(points_append(&points, many, 20));
    assert_int_equal(points.count, 22);
    assert_int_equal(points.items[2].x, 1);
    assert_int_equal(points.items[21].y, 6);
    assert_null(points_insert(&points, 1, (struct point){7, 8}));
    assert_null(points_insert(&points, 23, (struct point){9, 10}));
    assert_null(points_insert(&points, 0, (struct point){11, 12}));
    assert_int_equal(points.count, 25);
    static const uint32_t first[] = {11, 1, 7, 3, 1};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(points.items[i].x, first[i]);
    assert_int_equal(points.items[23].x, 5);
    assert_int_equal(points.items[24].x, 9);
}

static void test_freed(void **state)
{
    struct points points = {0};
    points_free(&points);
    assert_null(points_push(&points, (struct point){1, 2}));
    points_free(&points);
    assert_null(points.items);
    assert_int_equal(points.count, 0);
    assert_int_equal(points.capacity, 0);
}

/* A failure leaves everything as it was, and the room that was reserved is still there. */
static void test_without_memory(void **state)
{
    BW_SCOPED(points) struct points points = {0};
    static const struct point more[16];
    memory_is_exhausted = true;
    assert_ptr_equal(points_push(&points, (struct point){1, 2}), bw_error_no_memory());
    assert_null(points.items);
    memory_is_exhausted = false;
    assert_null(points_push(&points, (struct point){1, 2}));
    assert_null(points_reserve(&points, 40));
    memory_is_exhausted = true;
    struct point *items = points.items;
    for (uint32_t i = 0; i < 40; i++)
        assert_null(points_push(&points, (struct point){i, i}));
    assert_int_equal(points.count, points.capacity);
    assert_ptr_equal(points_push(&points, (struct point){1, 2}), bw_error_no_memory());
    assert_ptr_equal(points_insert(&points, 0, (struct point){1, 2}), bw_error_no_memory());
    assert_ptr_equal(points_append(&points, more, 16), bw_error_no_memory());
    memory_is_exhausted = false;
    assert_ptr_equal(points.items, items);
    assert_int_equal(points.count, 41);
    assert_int_equal(points.capacity, 41);
    assert_int_equal(points.items[0].y, 2);
    assert_int_equal(points.items[40].y, 39);
}

/* Numbers of items, and of bytes, that do not fit into a size. */
static void test_overflow(void **state)
{
    BW_SCOPED(points) struct points points = {0};
    assert_null(points_push(&points, (struct point){1, 2}));
    assert_ptr_equal(points_reserve(&points, SIZE_MAX), bw_error_no_memory());
    assert_ptr_equal(points_reserve(&points, SIZE_MAX - 1), bw_error_no_memory());
    assert_ptr_equal(points_reserve(&points, SIZE_MAX / sizeof(struct point)),
                     bw_error_no_memory());
    assert_int_equal(points.count, 1);
    assert_int_equal(points.capacity, 16);
    assert_int_equal(points.items[0].x, 1);
}
