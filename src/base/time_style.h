/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times as `ls --time-style` writes them; always in UTC. */
#ifndef BW_BASE_TIME_STYLE_H
#define BW_BASE_TIME_STYLE_H

#include <time.h>

#include "base/buffer.h"

/** A style, as bw_time_style_parse() makes it. All zeros is full-iso. */
struct bw_time_style {
    const char *recent, *older; /**< formats of strftime(3), and %N for nanoseconds; a view on the
                                   text, where it ends with a newline or NUL */
    time_t now;                 /**< times in the half year before it are recent */
};

/** The valid styles, for messages. */
#define BW_TIME_STYLES "full-iso, long-iso, iso, or +FORMAT as of date(1)"

/** Parses full-iso, long-iso, iso or +FORMAT. A newline in a format divides it: the first part is
 * for older times. The text must outlive the style. False if it is invalid. */
bool bw_time_style_parse(const char *text, struct bw_time_style *style);

/** Appends a time. */
void bw_time_style_append(const struct bw_time_style *style, const struct timespec *time,
                          struct bw_buffer *text);

#endif
