/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of JSON, written at a pointer: most are plain and are copied eight bytes at a time. The
 * caller makes room. */
#ifndef BW_BASE_JSON_STRING_H
#define BW_BASE_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool bw_json_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/** Whether eight bytes are plain. May be false for plain bytes, but only next to one that is not: a
 * byte too small for a subtraction borrows from the next. */
static inline bool bw_json_are_plain(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t less = word - ones * 0x20;           /* control characters */
    uint64_t quote = (word ^ ones * '"') - ones;  /* zero becomes 0xff */
    uint64_t slash = (word ^ ones * '\\') - ones; /* and so does this one's */
    uint64_t delete = word + ones;                /* 0x7f becomes 0x80 */
    return !((less | quote | slash | delete | word) & ones * 0x80);
}

/** Copies at most eight bytes, the last ones of a text of this length, and returns whether they are
 * plain. */
static inline bool bw_json_copy_end(char *at, const char *text, size_t length)
{
    uint64_t word = 0;
    uint32_t first, second;
    if (length >= sizeof word) {
        memcpy(&word, text + length - sizeof word, sizeof word);
        memcpy(at + length - sizeof word, &word, sizeof word);
        return bw_json_are_plain(word);
    }
    if (length < sizeof first)
        return false;
    memcpy(&first, text, sizeof first);
    memcpy(&second, text + length - sizeof second, sizeof second);
    memcpy(at, &first, sizeof first);
    memcpy(at + length - sizeof second, &second, sizeof second);
    return bw_json_are_plain(first | (uint64_t)second << 32);
}

/** Copies the plain bytes at the beginning and returns their number. May copy others as well, up to
 * the length. */
static inline size_t bw_json_copy_plain(char *at, const void *text, size_t length)
{
    const char *bytes = text;
    size_t done = 0;
    for (uint64_t word; length - done > sizeof word; done += sizeof word) {
        memcpy(&word, bytes + done, sizeof word);
        memcpy(at + done, &word, sizeof word);
        if (!bw_json_are_plain(word))
            break;
    }
    if (length - done <= sizeof(uint64_t) && bw_json_copy_end(at, bytes, length))
        return length;
    for (; done < length && bw_json_is_plain((uint8_t)bytes[done]); done++)
        at[done] = bytes[done];
    return done;
}

/** Writes UTF-8, or other bytes unchanged, as part of a string; at most six times as long. Returns
 * the end. */
char *bw_json_escape(char *at, const void *text, size_t length);

#endif
