/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Proportions of numbers of 64 bits. Not every machine has larger ones. */
#ifndef BW_BASE_SCALE_H
#define BW_BASE_SCALE_H

#include <stdint.h>

/** value * factor / divisor, rounded down; UINT64_MAX if that is too large, or if the divisor is
 * 0. */
static inline uint64_t bw_scale(uint64_t value, uint64_t factor, uint64_t divisor)
{
    if (!divisor)
        return UINT64_MAX;
    /* Bit by bit of the factor, with the invariant: (processed bits of the factor) * value = result
     * * divisor + rest. */
    const uint64_t whole = value / divisor, part = value % divisor;
    uint64_t result = 0, rest = 0;
    for (uint64_t bit = UINT64_C(1) << 63; bit; bit >>= 1) {
        uint64_t carry = rest >= divisor - rest;
        rest = carry ? rest - (divisor - rest) : 2 * rest;
        if (__builtin_mul_overflow(result, 2, &result) ||
            __builtin_add_overflow(result, carry, &result))
            return UINT64_MAX;
        if (!(factor & bit))
            continue;
        carry = rest >= divisor - part;
        rest = carry ? rest - (divisor - part) : rest + part;
        if (__builtin_add_overflow(result, whole, &result) ||
            __builtin_add_overflow(result, carry, &result))
            return UINT64_MAX;
    }
    return result;
}

#endif
