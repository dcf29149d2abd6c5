/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decimal numbers for text that is written millions of times: two digits at a time, from a table.
 * The caller provides the room.
 */
#ifndef BW_BASE_DECIMAL_H
#define BW_BASE_DECIMAL_H

#include "base/buffer.h"

/** Bytes of the longest number: 2^64 - 1, or a sign and 2^63. */
enum { BW_DECIMAL_ROOM = 20 };

/** Writes exactly two digits of a value below 100; returns the end. */
static inline char *bw_decimal_two(char *at, uint32_t value)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    memcpy(at, pairs + (size_t)2 * value, 2);
    return at + 2;
}

/** Exactly four, of a value below 10^4. */
static inline char *bw_decimal_four(char *at, uint32_t value)
{
    return bw_decimal_two(bw_decimal_two(at, value / 100), value % 100);
}

/** Exactly eight, of a value below 10^8. */
static inline char *bw_decimal_eight(char *at, uint32_t value)
{
    return bw_decimal_four(bw_decimal_four(at, value / 10000), value % 10000);
}

/** The number of digits of a value from 1 to 10^8 - 1. */
static inline unsigned bw_decimal_digits(uint32_t value)
{
    static const uint32_t powers[] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};
    const unsigned bits = 32 - (unsigned)__builtin_clz(value);
    const unsigned at_least = bits * 1233 / 4096; /* log10(2) is 1233/4096, rounded down */
    return at_least + (value >= powers[at_least]);
}

/** A value below 10^8 without leading zeros. */
static inline char *bw_decimal_short(char *at, uint32_t value)
{
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    char *end = at + bw_decimal_digits(value), *next = end;
    for (; value >= 100; value /= 100)
        bw_decimal_two(next -= 2, value % 100);
    if (next - at == 2)
        bw_decimal_two(at, value);
    else
        *at = (char)('0' + value);
    return end;
}

/** Any value, at most BW_DECIMAL_ROOM bytes. */
static inline char *bw_decimal(char *at, uint64_t value)
{
    const uint64_t part = 100000000;
    if (value < part)
        return bw_decimal_short(at, (uint32_t)value);
    uint64_t rest = value / part;
    if (rest < part)
        at = bw_decimal_short(at, (uint32_t)rest);
    else
        at = bw_decimal_eight(bw_decimal_short(at, (uint32_t)(rest / part)),
                              (uint32_t)(rest % part));
    return bw_decimal_eight(at, (uint32_t)(value % part));
}

/** The same with a sign if it is negative. */
static inline char *bw_decimal_signed(char *at, int64_t value)
{
    if (value >= 0)
        return bw_decimal(at, (uint64_t)value);
    *at = '-';
    return bw_decimal(at + 1, 0 - (uint64_t)value);
}

/** Appends a value to a buffer. */
static inline void bw_decimal_append(struct bw_buffer *buffer, uint64_t value)
{
    if (bw_buffer_reserve(buffer, BW_DECIMAL_ROOM))
        buffer->length = (size_t)(bw_decimal(buffer->data + buffer->length, value) - buffer->data);
}

#endif
