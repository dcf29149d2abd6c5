/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/hash_table.h: maps and sets of numbers and of byte strings, and without memory. */
#include <stdlib.h>

static void *failing_calloc(size_t count, size_t size);

/* The allocation of the tables of this test fails on demand. */
#define calloc failing_calloc
#include "base/hash_table.h"

BW_MAP(bytes_map, struct bw_bytes, uint64_t, bw_bytes);

/* All keys collide. */
#define colliding_hash(key, seed) ((void)(key), (void)(seed), (size_t)15)
#define colliding_equal           bw_key_equal
#define colliding_is_zero         bw_key_is_zero
BW_MAP(colliding_map, uint64_t, uint32_t, colliding);
#undef calloc

#include "support/walk_helpers.h"

static bool memory_is_exhausted;

static void *failing_calloc(size_t count, size_t size)
{
    return memory_is_exhausted ? NULL : calloc(count, size);
}

static void test_map(void **state)
{
    struct bw_key_map map = {0};
    assert_false(bw_key_map_has(&map, 5));
    bw_key_map_clear(&map);
    for (uint64_t round = 0; round < 2; round++) {
        for (uint64_t i = 1; i <= 5000; i++)
            assert_null(bw_key_map_put(&map, i * UINT64_C(0x100000001) + round, (uint32_t)i));
        assert_int_equal(map.count, 5000);
        assert_true(map.capacity <= 4 * 5000);
        assert_null(bw_key_map_put(&map, UINT64_MAX, 9));
        assert_null(bw_key_map_put(&map, UINT64_MAX, 10));
        assert_int_equal(map.count, 5001);
        for (uint64_t i = 1; i <= 5000; i++)
            assert_int_equal(bw_key_map_get(&map, i * UINT64_C(0x100000001) + round, 0), i);
        assert_int_equal(bw_key_map_get(&map, UINT64_MAX, 0), 10);
        assert_int_equal(bw_key_map_get(&map, 2, 77), 77);
        bw_key_map_clear(&map);
        assert_false(bw_key_map_has(&map, UINT64_MAX));
        assert_non_null(map.entries);
    }
    bw_key_map_free(&map);
    assert_null(map.entries);
}

/* An entry takes twelve bytes: large maps must not become larger. */
_Static_assert(sizeof(struct bw_key_map_entry) == 12, "a key and a value");
_Static_assert(sizeof(struct bw_key_set_entry) == 8, "a key");

/* A key of zeros marks free entries, and yet is a key like any other. */
static void test_zero(void **state)
{
    BW_SCOPED(bw_key_map) struct bw_key_map map = {0};
    assert_false(bw_key_map_has(&map, 0));
    assert_null(bw_key_map_put(&map, 1, 2));
    assert_false(bw_key_map_has(&map, 0));
    assert_null(bw_key_map_put(&map, 0, 3));
    assert_null(bw_key_map_put(&map, 0, 4));
    assert_int_equal(map.count, 2);
    assert_false(bw_key_map_has(&map, UINT64_MAX));
    for (uint32_t i = 2; i < 100; i++)
        assert_null(bw_key_map_put(&map, i, i));
    assert_int_equal(bw_key_map_get(&map, 0, 0), 4);
    bw_key_map_clear(&map);
    assert_false(bw_key_map_has(&map, 0));
    assert_null(bw_key_map_put(&map, 0, 5));
    assert_int_equal(bw_key_map_get(&map, 0, 0), 5);
}

/* Each entry comes once, also the one with the key of zeros. */
static void test_next(void **state)
{
    BW_SCOPED(bw_key_map) struct bw_key_map map = {0};
    uint64_t key, sum;
    uint32_t value;
    size_t position = 0, count = 0;
    assert_false(bw_key_map_next(&map, &position, &key, &value));
    for (uint32_t i = 0; i < 1000; i++)
        assert_null(bw_key_map_put(&map, i * UINT64_C(4096), i));
    for (sum = 0, position = 0; bw_key_map_next(&map, &position, &key, &value); count++) {
        assert_int_equal(key, value * UINT64_C(4096));
        sum += value;
    }
    assert_int_equal(count, 1000);
    assert_int_equal(sum, 499500);
    assert_false(bw_key_map_next(&map, &position, &key, &value));
}

/* Keys that differ in a single bit, or that are multiples of a page, all find their place. */
static void test_similar_keys(void **state)
{
    BW_SCOPED(bw_key_map) struct bw_key_map map = {0};
    for (unsigned bit = 0; bit < 64; bit++)
        assert_null(bw_key_map_put(&map, UINT64_C(1) << bit, bit));
    for (uint32_t i = 1; i < 3000; i++)
        assert_null(bw_key_map_put(&map, ((uint64_t)i << 14) + 1, i));
    for (unsigned bit = 0; bit < 64; bit++)
        assert_int_equal(bw_key_map_get(&map, UINT64_C(1) << bit, 99), bit);
    for (uint32_t i = 1; i < 3000; i++)
        assert_int_equal(bw_key_map_get(&map, ((uint64_t)i << 14) + 1, 0), i);
}

/* Keys that all have the same place: the search goes on behind the end of the table. */
static void test_collisions(void **state)
{
    BW_SCOPED(colliding_map) struct colliding_map map = {0};
    for (uint32_t i = 0; i < 50; i++)
        assert_null(colliding_map_put(&map, i, 2 * i));
    assert_int_equal(map.count, 50);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(colliding_map_get(&map, i, 1), 2 * i);
    assert_false(colliding_map_has(&map, 50));
}

static void test_set(void **state)
{
    BW_SCOPED(bw_key_set) struct bw_key_set set = {0};
    bool is_new = false;
    uint64_t key, sum = 0;
    for (uint64_t i = 0; i < 300; i++) {
        assert_null(bw_key_set_add(&set, i << 32, &is_new));
        assert_true(is_new);
        assert_null(bw_key_set_add(&set, i << 32, &is_new));
        assert_false(is_new);
    }
    assert_int_equal(set.count, 300);
    assert_true(bw_key_set_has(&set, UINT64_C(299) << 32));
    assert_false(bw_key_set_has(&set, UINT64_C(300) << 32));
    for (size_t position = 0; bw_key_set_next(&set, &position, &key);)
        sum += key >> 32;
    assert_int_equal(sum, 44850);
}

static struct bw_bytes bytes(const char *text)
{
    return (struct bw_bytes){text, strlen(text)};
}

/* Strings are compared by their contents; the empty one is a key, too. */
static void test_bytes(void **state)
{
    BW_SCOPED(bytes_map) struct bytes_map map = {0};
    char names[100][8];
    for (unsigned i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "name%u", i);
        assert_null(bytes_map_put(&map, bytes(names[i]), UINT64_C(1) << 40 | i));
    }
    assert_null(bytes_map_put(&map, bytes(""), 5));
    assert_int_equal(map.count, 101);
    assert_int_equal(bytes_map_get(&map, bytes("name42"), 0), UINT64_C(1) << 40 | 42);
    assert_int_equal(bytes_map_get(&map, bytes(""), 0), 5);
    assert_int_equal(bytes_map_get(&map, (struct bw_bytes){"name42", 5}, 0), UINT64_C(1) << 40 | 4);
    assert_false(bytes_map_has(&map, bytes("name")));
    assert_false(bytes_map_has(&map, bytes("name100")));
}

/* A large table that is nearly empty gives its memory back; a full one keeps it. */
static void test_clear(void **state)
{
    BW_SCOPED(bw_key_set) struct bw_key_set set = {0};
    bool is_new;
    for (uint64_t i = 0; i < 2000; i++)
        assert_null(bw_key_set_add(&set, i, &is_new));
    bw_key_set_clear(&set);
    assert_non_null(set.entries);
    assert_int_equal(set.count, 0);
    assert_null(bw_key_set_add(&set, 0, &is_new));
    assert_true(is_new);
    bw_key_set_clear(&set);
    assert_null(set.entries);
    assert_int_equal(set.capacity, 0);
    assert_false(bw_key_set_has(&set, 0));
    assert_null(bw_key_set_add(&set, 7, &is_new));
    assert_true(bw_key_set_has(&set, 7));
}

/* A failure leaves everything as it was. */
static void test_without_memory(void **state)
{
    BW_SCOPED(bytes_map) struct bytes_map map = {0};
    char names[12][8];
    memory_is_exhausted = true;
    assert_ptr_equal(bytes_map_put(&map, bytes("a"), 1), bw_error_no_memory());
    assert_int_equal(map.count, 0);
    memory_is_exhausted = false;
    for (unsigned i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        assert_null(bytes_map_put(&map, bytes(names[i]), i));
    }
    memory_is_exhausted = true;
    assert_ptr_equal(bytes_map_put(&map, bytes("more"), 1), bw_error_no_memory());
    memory_is_exhausted = false;
    assert_int_equal(map.count, 12);
    assert_false(bytes_map_has(&map, bytes("more")));
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(bytes_map_get(&map, bytes(names[i]), 99), i);
}
