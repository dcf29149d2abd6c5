/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing times by strftime(3), which does not support nanoseconds: %N is written here. */
#include "base/time_style.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/human.h"

enum { HALF_YEAR = 31556952 / 2, LONGEST_PIECE = 256 };

bool bw_time_style_parse(const char *text, struct bw_time_style *style)
{
    static const struct {
        const char *name, *recent, *older;
    } styles[] = {
        {"full-iso", NULL, NULL},
        {"long-iso", "%04Y-%m-%d %H:%M", "%04Y-%m-%d %H:%M"},
        {"iso", "%m-%d %H:%M", "%04Y-%m-%d "},
    };
    *style = (struct bw_time_style){.now = time(NULL)};
    if (*text == '+') {
        const char *newline = strchr(text, '\n');
        style->older = text + 1;
        style->recent = newline ? newline + 1 : text + 1;
        return true;
    }
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        if (strcmp(styles[i].name, text) == 0) {
            style->recent = styles[i].recent;
            style->older = styles[i].older;
            return true;
        }
    return false;
}

/* How long a format is up to the next %N. */
static size_t piece_length(const char *format, size_t length)
{
    size_t i = 0;
    while (i + 1 < length && !(format[i] == '%' && format[i + 1] == 'N'))
        i += format[i] == '%' ? 2 : 1;
    return i + 1 < length ? i : length;
}

void bw_time_style_append(const struct bw_time_style *style, const struct timespec *time,
                          struct bw_buffer *text)
{
    const bool recent = time->tv_sec <= style->now && time->tv_sec > style->now - HALF_YEAR;
    const char *format = recent ? style->recent : style->older;
    struct tm parts;
    if (!format) {
        char date[BW_DATE_LENGTH];
        int64_t nanoseconds;
        if (!__builtin_mul_overflow((int64_t)time->tv_sec, INT64_C(1000000000), &nanoseconds) &&
            !__builtin_add_overflow(nanoseconds, (int64_t)time->tv_nsec, &nanoseconds)) {
            bw_write_date(date, nanoseconds, ' ');
            bw_buffer_format(text, "%.*s +0000", BW_DATE_LENGTH, date);
            return;
        }
        format = "%04Y-%m-%d %H:%M:%S.%N +0000"; /* slower, but for all years */
    }
    /* strftime() takes later years for negative ones. */
    if (!gmtime_r(&time->tv_sec, &parts) || parts.tm_year > INT_MAX - 1900) {
        bw_buffer_format(text, "%lld", (long long)time->tv_sec);
        return;
    }
    for (size_t length = strcspn(format, "\n"); length;) {
        const size_t piece = piece_length(format, length);
        char copy[LONGEST_PIECE], output[LONGEST_PIECE * 4];
        if (piece < sizeof copy) { /* longer formats produce nothing */
            memcpy(copy, format, piece);
            copy[piece] = '\0';
            bw_buffer_append(text, output, strftime(output, sizeof output, copy, &parts));
        }
        if (piece < length)
            bw_buffer_format(text, "%09ld", time->tv_nsec);
        const size_t done = piece < length ? piece + 2 : piece;
        format += done;
        length -= done;
    }
}
