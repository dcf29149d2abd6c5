/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/crc32c.h, base/galois.h, base/scale.h, base/decimal.h: known answers, the definitions, and
 * the builds without libisal against those with it. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/decimal.h"
#include "base/galois.h"
#include "base/scale.h"

enum { LENGTH = 1024, VECTORS = 7 };

static void fill(uint8_t *bytes, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* The check value of CRC-32C, and lengths that leave something over. */
static void test_crc32c(void **state)
{
    uint8_t bytes[LENGTH];
    assert_int_equal(~bw_crc32c(~UINT32_C(0), "123456789", 9), 0xe3069283);
    assert_int_equal(~bw_crc32c_tables(~UINT32_C(0), "123456789", 9), 0xe3069283);
    fill(bytes, sizeof bytes, 1);
    for (size_t length = 0; length < 70; length++) {
        const uint32_t sum = bw_crc32c(7, bytes + length % 5, length);
        assert_int_equal(sum, bw_crc32c_plain(7, bytes + length % 5, length));
        assert_int_equal(sum, bw_crc32c_tables(7, bytes + length % 5, length));
    }
    assert_int_equal(bw_crc32c(1, bytes, sizeof bytes), bw_crc32c_tables(1, bytes, sizeof bytes));
}

static void test_field(void **state)
{
    assert_int_equal(bw_field_product(2, 0x80), 0x1d);
    assert_int_equal(bw_field_product(0, 7), 0);
    for (unsigned a = 1; a < 256; a++) {
        assert_int_equal(bw_field_product((uint8_t)a, bw_field_inverse((uint8_t)a)), 1);
        for (unsigned b = 0; b < 256; b += 15)
            assert_int_equal(bw_field_product((uint8_t)a, (uint8_t)b),
                             bw_field_product((uint8_t)b, (uint8_t)a));
    }
}

/* A row of a RAID6: the parity of both ways, and each lost vector from the others and Q. */
static void test_parity(void **state)
{
    static _Alignas(64) uint8_t memory[VECTORS + 4][LENGTH];
    void *vectors[VECTORS + 2], *plain[VECTORS + 2];
    for (unsigned i = 0; i < VECTORS + 2; i++) {
        fill(memory[i], LENGTH, i);
        vectors[i] = plain[i] = memory[i];
    }
    plain[VECTORS] = memory[VECTORS + 2];
    plain[VECTORS + 1] = memory[VECTORS + 3];
    for (unsigned parity = 1; parity <= 2; parity++) {
        bw_field_parity(VECTORS, parity, LENGTH, vectors);
        bw_field_parity_plain(VECTORS, parity, LENGTH, plain);
        for (unsigned i = VECTORS; i < VECTORS + parity; i++)
            assert_memory_equal(vectors[i], plain[i], LENGTH);
    }
    for (size_t at = 0; at < LENGTH; at++) {
        uint8_t p = 0, q = 0, power = 1;
        for (unsigned i = 0; i < VECTORS; i++, power = bw_field_product(power, 2)) {
            p ^= memory[i][at];
            q ^= bw_field_product(power, memory[i][at]);
        }
        assert_int_equal(memory[VECTORS][at], p);
        assert_int_equal(memory[VECTORS + 1][at], q);
    }
}

static void test_combine(void **state)
{
    uint8_t memory[VECTORS][LENGTH], sum[LENGTH], plain[LENGTH];
    uint8_t *vectors[VECTORS];
    const uint8_t coefficients[VECTORS] = {0, 1, 2, 3, 0x1d, 0x80, 0xff};
    for (unsigned i = 0; i < VECTORS; i++) {
        fill(memory[i], LENGTH, i + 20);
        vectors[i] = memory[i];
    }
    for (unsigned count = 1; count <= VECTORS; count++) {
        bw_field_combine(count, LENGTH - count, coefficients, vectors, sum);
        bw_field_combine_plain(count, LENGTH - count, coefficients, vectors, plain);
        assert_memory_equal(sum, plain, LENGTH - count);
    }
    uint8_t wanted = 0;
    for (unsigned i = 0; i < VECTORS; i++)
        wanted ^= bw_field_product(coefficients[i], memory[i][5]);
    assert_int_equal(sum[5], wanted);
}

static void test_scale(void **state)
{
    static const uint64_t cases[][4] = {
        {0, 0, 7, 0},
        {10, 3, 4, 7},
        {7, 0, 3, 0},
        {1, 1, 0, UINT64_MAX},
        {UINT64_MAX, 100, UINT64_MAX, 100},
        {UINT64_MAX, 3, 4, UINT64_C(13835058055282163711)},
        {UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, UINT64_MAX - 1},
        {UINT64_C(1) << 63, 2, 1, UINT64_MAX},
        {UINT64_C(1) << 63, 3, 2, UINT64_C(3) << 62},
        {UINT64_C(6700417) << 32, UINT64_C(641) << 20, UINT64_C(4294967297) << 10,
         UINT64_C(1) << 42},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(bw_scale(cases[i][0], cases[i][1], cases[i][2]), cases[i][3]);
}

static void check_decimal(uint64_t value)
{
    char written[BW_DECIMAL_ROOM + 1], expected[BW_DECIMAL_ROOM + 1];
    written[BW_DECIMAL_ROOM] = '#';
    const size_t length = (size_t)(bw_decimal(written, value) - written);
    assert_int_equal(written[BW_DECIMAL_ROOM], '#');
    written[length] = '\0';
    snprintf(expected, sizeof expected, "%" PRIu64, value);
    assert_string_equal(written, expected);
}

/* All quotients of four digits, and both sides of all powers of ten. */
static void test_decimal(void **state)
{
    for (uint32_t i = 0; i < 10000; i++)
        check_decimal(i * 10000 + 9999 - i);
    for (uint64_t power = 1, next; power; power = next) {
        check_decimal(power - 1);
        check_decimal(power);
        if (__builtin_mul_overflow(power, 10, &next))
            break;
    }
    check_decimal(UINT64_MAX);
}
