/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bitmaps on disk: the lowest bit of the first byte comes first. And how many bits differ. */
#ifndef BW_BASE_BITS_H
#define BW_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The next range of set bits from `*bit` on, which moves to its end: from `*first` to before
 * `*bit`. False if no bit is set. */
static inline bool bw_bits_next(const uint8_t *bytes, uint64_t bits, uint32_t *bit, uint32_t *first)
{
    while (*bit < bits && !(bytes[*bit / 8] >> *bit % 8 & 1))
        ++*bit;
    *first = *bit;
    while (*bit < bits && bytes[*bit / 8] >> *bit % 8 & 1)
        ++*bit;
    return *first < *bit;
}

/** How many bits of two arrays differ. */
static inline unsigned bw_bits_different(const uint8_t *a, const uint8_t *b, size_t size)
{
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++)
        bits += (unsigned)__builtin_popcount(a[i] ^ b[i]);
    return bits;
}

#endif
