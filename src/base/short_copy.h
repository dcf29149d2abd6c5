/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of a few bytes, for the names of millions of files. Where compilers can derive that a
 * length is less than 256, they replace memcpy() by an instruction that takes thirty cycles to
 * start.
 */
#ifndef BW_BASE_SHORT_COPY_H
#define BW_BASE_SHORT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Sixteen bytes, which compilers keep in one register where processors have such registers. */
typedef uint8_t bw_chunk __attribute__((vector_size(16)));

/** Copies sixteen bytes, and returns them. */
static inline bw_chunk bw_copy_chunk(char *to, const void *from)
{
    bw_chunk chunk;
    memcpy(&chunk, from, sizeof chunk);
    memcpy(to, &chunk, sizeof chunk);
    return chunk;
}

/** Whether any bit is set. */
static inline bool bw_chunk_is_set(bw_chunk chunk)
{
    uint64_t halves[2];
    memcpy(halves, &chunk, sizeof halves);
    return halves[0] | halves[1];
}

/** Copies bytes eight at a time; the last eight overlap those before them. */
static inline void bw_copy_short(void *to, const void *from, size_t length)
{
    enum { STEP = sizeof(uint64_t) };
    uint8_t *target = to;
    const uint8_t *source = from;
    if (length < STEP) {
        for (size_t i = 0; i < length; i++)
            target[i] = source[i];
        return;
    }
    for (size_t i = 0; i < length - STEP; i += STEP)
        memcpy(target + i, source + i, STEP);
    memcpy(target + length - STEP, source + length - STEP, STEP);
}

#endif
