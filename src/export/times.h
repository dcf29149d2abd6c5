/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of an inode (nanoseconds since 1970) as system calls and archives want them. */
#ifndef BW_EXPORT_TIMES_H
#define BW_EXPORT_TIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** Splits a time; the part below a second is never negative. */
static inline struct timespec bw_timespec_of(int64_t nanoseconds)
{
    const int64_t second = 1000000000;
    int64_t rest = nanoseconds % second, seconds = nanoseconds / second;
    if (rest < 0) {
        rest += second;
        seconds--;
    }
    return (struct timespec){(time_t)seconds, (long)rest};
}

/** Whether a time was cut to what 64 bits hold: the year was before 1678 or after 2262. */
static inline bool bw_time_is_cut(int64_t nanoseconds)
{
    return nanoseconds == INT64_MAX || nanoseconds == INT64_MIN;
}

#endif
