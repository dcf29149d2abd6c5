/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decimal numbers for text that is written millions of times: two digits at a time, from a table,
 * or eight at once. The caller provides the room.
 */
#ifndef BW_BASE_DECIMAL_H
#define BW_BASE_DECIMAL_H

#include "base/buffer.h"
#include "base/endian.h"

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

/* The eight digits of a value below 10^8 as numbers, one in each byte, the first in the lowest.
 * Divides two numbers below 10^4 by 100 at once, then four below 100 by 10. For these, multiplying
 * by 10486/2^20 and 103/2^10 has the same results. */
static inline uint64_t bw_decimal_split(uint32_t value)
{
    const uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    const uint64_t hundreds = fours * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    const uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return tens | (twos - 10 * tens) << 8;
}

/** Writes a value below 10^8 without leading zeros; returns the end. Two or more digits are written
 * as eight bytes, some of them after the end: processors cannot predict a branch on the number of
 * digits, for example of file sizes. */
static inline char *bw_decimal_short(char *at, uint32_t value)
{
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    const uint64_t digits = bw_decimal_split(value);
    const uint64_t last = UINT64_C(1) << 56; /* the last digit is written, even if it is 0 */
    const unsigned zeros = (unsigned)__builtin_ctzll(digits | last) / 8;
    const uint64_t text = digits | UINT64_C(0x0101010101010101) * '0';
    const bw_le64 word = bw_put64(text >> 8 * zeros);
    memcpy(at, &word, sizeof word);
    return at + sizeof word - zeros;
}

/** Any value. Bytes behind a short one are set to zero: there must be room for BW_DECIMAL_ROOM. */
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
