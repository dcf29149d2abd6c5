/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of zeros. */
#ifndef BW_BASE_ZEROS_H
#define BW_BASE_ZEROS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** Whether all bytes are zeros; `length` is not 0. */
static inline bool bw_is_zeros(const uint8_t *bytes, size_t length)
{
    return !*bytes && memcmp(bytes, bytes + 1, length - 1) == 0;
}

#endif
