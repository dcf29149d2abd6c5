/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Base64 (RFC 4648, with padding): for names in JSON that are not UTF-8. */
#ifndef BW_BASE_BASE64_H
#define BW_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/** The length of `length` bytes in base64. */
static inline size_t bw_base64_length(size_t length)
{
    return (length + 2) / 3 * 4;
}

/** Writes bytes in base64 at `at`, where there is room; returns the end. */
static inline char *bw_base64(char *at, const void *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *next = bytes;
    for (; length >= 3; length -= 3, next += 3) {
        uint32_t group = (uint32_t)next[0] << 16 | (uint32_t)next[1] << 8 | next[2];
        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = digits[group >> 6 & 63];
        *at++ = digits[group & 63];
    }
    if (length) {
        uint32_t group = (uint32_t)next[0] << 16 | (length > 1 ? (uint32_t)next[1] << 8 : 0);
        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = length > 1 ? digits[group >> 6 & 63] : '=';
        *at++ = '=';
    }
    return at;
}

#endif
