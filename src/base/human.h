/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers in human form: sizes with units, durations, dates, modes. All parsing and printing of
 * these uses this file, so that a size means the same in an option of a layer, in a filter and on
 * the command line.
 *
 * Functions that write expect enough room and return the end of the text.
 */
#ifndef BW_BASE_HUMAN_H
#define BW_BASE_HUMAN_H

#include <stdbool.h>
#include <stdint.h>

/** A unit: the suffix of a number, and its factor. */
struct bw_unit {
    const char *name; /**< may be empty */
    uint64_t factor;
};

/** Units of sizes: E, P, T, G, M, K (powers of 1024) and none, which is bytes, largest first, as in
 * the other tables; then EiB to KiB, which are the same, and EB to KB (powers of 1000). The last
 * one has no name (NULL). */
extern const struct bw_unit bw_size_units[];
/** Units of durations: h, m, s, ms, us, ns. A number needs one of them. */
extern const struct bw_unit bw_time_units[];

/** The plural ending of a regular noun: "" for 1, otherwise "s". */
static inline const char *bw_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/** Reads digits of a base up to 10 from `*text` and moves past them. False without digits, or with
 * too many for 64 bits. */
bool bw_parse_digits(const char **text, unsigned base, uint64_t *number);

/** Reads digits and a unit of bw_size_units, in upper or lower case, from `*text` and moves past
 * them. False if this is not a number below 16E. */
bool bw_parse_size(const char **text, uint64_t *bytes);

/** Reads a whole text as digits and a unit; 0 needs no unit. False if it is anything else. */
bool bw_parse_with_unit(const char *text, const struct bw_unit *units, uint64_t *number);

enum {
    BW_SIZE_ROOM = 24,   /**< bytes that a size needs at most */
    BW_DATE_LENGTH = 29, /**< bytes of a date with time of day and nanoseconds */
    BW_MODE_LENGTH = 10, /**< bytes of a mode in letters */
};

/** Writes nanoseconds as seconds with nine digits behind the point. */
char *bw_write_seconds(char *at, int64_t nanoseconds);

/** Writes a size with two decimals and the largest unit that leaves at least 1 before them, as
 * btrfs-progs do: "1.50MiB"; bytes have no decimals. Units are multiples of 1000 with `si`. */
char *bw_write_size(char *at, uint64_t size, bool si);

/** Writes a size as `ls -h` does: "1.5K", rounded up. */
char *bw_write_short_size(char *at, uint64_t size);

/** Writes nanoseconds since 1970 as date and time of day in UTC, with `between` (usually 'T' or a
 * space) between both: "2026-11-21T07:57:58.123456789", always BW_DATE_LENGTH bytes. */
char *bw_write_date(char *at, int64_t nanoseconds, char between);

/** The same with a 'T' and the zone: in UTC with a 'Z', or in the local zone with its offset
 * ("+01:00"). 40 bytes at most. */
char *bw_write_zoned_date(char *at, int64_t nanoseconds, bool local);

/**
 * Reads "YYYY-MM-DD", optionally followed by " HH:MM", ":SS" and ".N" (with a 'T' or a space), then
 * by "Z", "+HH:MM", "+HHMM" or "+HH" (UTC is the default); or "@SECONDS[.N]". The result is in
 * nanoseconds since 1970. False for any other text, or if the result does not fit 64 bits (the
 * years 1678 to 2262 and parts of the years next to them).
 */
bool bw_parse_date(const char *text, int64_t *nanoseconds);

enum { BW_UUID_LENGTH = 36 /**< characters of a UUID */ };

/** Writes the 16 bytes of a UUID in lower case. */
char *bw_write_uuid(char *at, const void *uuid);

/** Writes a mode, as in struct stat, in the letters of ls(1): "-rwsr-xr-t". */
char *bw_write_mode(char *at, uint32_t mode);

/** Parses a mode as chmod(1) and find -perm do: 644, u=rw,go=r, a+X, u+s. The result is the
 * permissions that the mode makes of none at all; those of directories may differ, because of X. No
 * umask is applied. False if the text is not a mode. */
bool bw_parse_mode(const char *text, bool directory, uint32_t *mode);

#endif
