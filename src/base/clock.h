/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time in nanoseconds. */
#ifndef BW_BASE_CLOCK_H
#define BW_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { BW_SECOND = 1000000000 /* nanoseconds */ };

/** The time of a clock: CLOCK_MONOTONIC, or CLOCK_REALTIME. */
static inline int64_t bw_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * BW_SECOND + time.tv_nsec;
}

/** The time of nanoseconds since 1970, or before. */
static inline struct timespec bw_clock_time(int64_t nanoseconds)
{
    const int64_t rest = nanoseconds % BW_SECOND, before = rest < 0;
    return (struct timespec){.tv_sec = (time_t)(nanoseconds / BW_SECOND - before),
                             .tv_nsec = (long)(rest + before * BW_SECOND)};
}

/** A point in the future of the monotonic clock, for functions that wait for one. */
static inline struct timespec bw_clock_after(uint64_t nanoseconds)
{
    const uint64_t then = (uint64_t)bw_clock(CLOCK_MONOTONIC) + nanoseconds;
    return bw_clock_time((int64_t)then);
}

#endif
