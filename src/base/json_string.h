/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of JSON, written at a pointer: most are plain and are copied sixteen bytes at a time. The
 * caller makes room. */
#ifndef BW_BASE_JSON_STRING_H
#define BW_BASE_JSON_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/short_copy.h"

static inline bool bw_json_is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* Sets all bits of bytes that are not plain. Bytes of 0x80 and more are negative. */
static inline bw_chunk bw_json_needs_escape(bw_chunk chunk)
{
    typedef int8_t signed_chunk __attribute__((vector_size(sizeof(bw_chunk))));
    return (bw_chunk)((signed_chunk)chunk < 0x20) | (bw_chunk)(chunk == 0x7f) |
           (bw_chunk)(chunk == '"') | (bw_chunk)(chunk == '\\');
}

/* Copies the first and the last bytes of a text of 4 to 16 bytes, in halves that overlap, and
 * returns them. */
static inline bw_chunk bw_json_copy_halves(char *at, const char *text, size_t length)
{
    uint64_t halves[2];
    uint32_t first, last;
    if (length >= sizeof *halves) {
        memcpy(&halves[0], text, sizeof *halves);
        memcpy(&halves[1], text + length - sizeof *halves, sizeof *halves);
        memcpy(at, &halves[0], sizeof *halves);
        memcpy(at + length - sizeof *halves, &halves[1], sizeof *halves);
    } else {
        memcpy(&first, text, sizeof first);
        memcpy(&last, text + length - sizeof last, sizeof last);
        memcpy(at, &first, sizeof first);
        memcpy(at + length - sizeof last, &last, sizeof last);
        halves[0] = halves[1] = first | (uint64_t)last << 32;
    }
    bw_chunk both;
    memcpy(&both, halves, sizeof both);
    return both;
}

/* Copies at least 4 bytes, and returns whether they are plain. */
static inline bool bw_json_copy_if_plain(char *at, const char *text, size_t length)
{
    if (length <= sizeof(bw_chunk))
        return !bw_chunk_is_set(bw_json_needs_escape(bw_json_copy_halves(at, text, length)));
    const size_t last = length - sizeof(bw_chunk);
    bw_chunk special = bw_json_needs_escape(bw_copy_chunk(at + last, text + last));
    for (size_t done = 0; done < last; done += sizeof(bw_chunk))
        special |= bw_json_needs_escape(bw_copy_chunk(at + done, text + done));
    return !bw_chunk_is_set(special);
}

/** Copies the plain bytes at the beginning and returns their number. May copy others as well, up to
 * the length. */
static inline size_t bw_json_copy_plain(char *at, const void *text, size_t length)
{
    const char *bytes = text;
    size_t done = 0;
    if (length >= sizeof(uint32_t) && bw_json_copy_if_plain(at, bytes, length))
        return length;
    for (; done < length && bw_json_is_plain((uint8_t)bytes[done]); done++)
        at[done] = bytes[done];
    return done;
}

/** Writes UTF-8, or other bytes unchanged, as part of a string; at most six times as long. Returns
 * the end. */
char *bw_json_escape(char *at, const void *text, size_t length);

#endif
