/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bitmaps on disk: the lowest bit of the first byte comes first. */
#ifndef BW_BASE_BITS_H
#define BW_BASE_BITS_H

#include <stdbool.h>
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

#endif
