/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Points in time, as users write them. */
#ifndef BW_WALK_TIME_PARSE_H
#define BW_WALK_TIME_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Nanoseconds since 1970 of "YYYY-MM-DD", with " HH:MM", ":SS" and ".N" behind it or not ('T'
 * stands for the space, too), then "Z", "+HH:MM", "+HHMM", "+HH" or nothing, which is UTC; or of
 * "@SECONDS[.N]". False if it is none of them, or not between the years 1678 and 2262, which is
 * what 64 bits hold.
 */
bool bw_time_parse(const char *text, int64_t *nanoseconds);

#endif
