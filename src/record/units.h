/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes and times for people: 1.50MiB, 2026-11-21T07:57:58.123456789Z. The caller has made room. */
#ifndef BW_RECORD_UNITS_H
#define BW_RECORD_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/** At most this many bytes are written. */
enum { BW_UNITS_ROOM = 30 };

/** Writes a size with two decimals and the greatest unit that leaves at least 1 in front of them,
 * as btrfs-progs do; bytes without decimals. Multiples of 1000 with `si`, else of 1024. Returns the
 * end. */
char *bw_units_size(char *at, uint64_t size, bool si);

/** Writes nanoseconds since 1970 as date and time of day in UTC (ISO 8601). Returns the end. */
char *bw_units_time(char *at, int64_t nanoseconds);

#endif
