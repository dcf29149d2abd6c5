/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8 as defined by the Unicode standard. Names of files are bytes, and need not be valid. */
#ifndef BW_BASE_UTF8_H
#define BW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Length of the valid UTF-8 sequence at `bytes`, with `left` bytes, at least one; 0 if it is
 * invalid. Overlong forms, surrogates and anything beyond U+10FFFF are invalid. */
static inline size_t bw_utf8_length(const uint8_t *bytes, size_t left)
{
    uint8_t first = bytes[0];
    if (first < 0x80)
        return 1;
    size_t length = 4;
    if (first < 0xe0)
        length = 2;
    else if (first < 0xf0)
        length = 3;
    if (first < 0xc2 || first >= 0xf5 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
        return 0;
    return length;
}

/** The character of a valid sequence. */
static inline uint32_t bw_utf8_decode(const uint8_t *bytes, size_t length)
{
    static const uint8_t bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07}; /* of the first byte */
    uint32_t code = bytes[0] & bits[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (bytes[i] & 0x3f);
    return code;
}

/** Whether all bytes are valid. Most are ASCII: eight at a time. */
static inline bool bw_utf8_is_valid(const void *bytes, size_t length)
{
    const uint8_t *next = bytes;
    for (uint64_t word; length >= sizeof word; next += sizeof word, length -= sizeof word) {
        memcpy(&word, next, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
    }
    for (size_t step; length; next += step, length -= step) {
        step = bw_utf8_length(next, length);
        if (!step)
            return false;
    }
    return true;
}

/** How many characters text has: its columns, but for scripts whose characters take two or none. */
static inline size_t bw_utf8_count(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (text[i] & 0xc0) != 0x80;
    return count;
}

#endif
