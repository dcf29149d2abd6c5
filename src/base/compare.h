/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The smaller and larger of two numbers, and comparisons for qsort(): negative, 0 or positive. */
#ifndef BW_BASE_COMPARE_H
#define BW_BASE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static inline uint64_t bw_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t bw_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/** Two numbers. */
static inline int bw_compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/** Whether two times are equal, down to the nanosecond. */
static inline bool bw_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static inline bool bw_is_earlier(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/** Two lists of `count` numbers: the first that differ decide. */
static inline int bw_compare_lists(const uint64_t *a, const uint64_t *b, size_t count)
{
    size_t i = 0;
    while (i + 1 < count && a[i] == b[i])
        i++;
    return bw_compare(a[i], b[i]);
}

/** Two arrays of numbers, of the same length. */
#define BW_COMPARE_ALL(a, b) bw_compare_lists((a), (b), sizeof(a) / sizeof *(a))

/** Two elements by the number, an uint64_t, that they begin with. */
static inline int bw_compare_first(const void *first, const void *second)
{
    return bw_compare(*(const uint64_t *)first, *(const uint64_t *)second);
}

/** Two strings of bytes; a beginning of another one comes before it. */
static inline int bw_compare_bytes(const void *a, size_t a_length, const void *b, size_t b_length)
{
    const int order = memcmp(a, b, (size_t)bw_min(a_length, b_length));
    return order ? order : bw_compare(a_length, b_length);
}

/** The order of paths in which the contents of a directory follow it: a '/' comes before all other
 * bytes. */
static inline int bw_compare_paths(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t shorter = (size_t)bw_min(a_length, b_length);
    size_t at = 0;
    while (at < shorter && a[at] == b[at])
        at++;
    if (at == shorter)
        return bw_compare(a_length, b_length);
    if (a[at] == '/' || b[at] == '/')
        return a[at] == '/' ? -1 : 1;
    return (uint8_t)a[at] < (uint8_t)b[at] ? -1 : 1;
}

#endif
