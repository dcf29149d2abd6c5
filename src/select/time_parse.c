/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading dates. The calendar is the one of today, for all years, as in ISO 8601. */
#include "select/time_parse.h"

/* Exactly `digits` digits, as a number from `least` to `most`. */
static bool take(const char **text, unsigned digits, int least, int most, int *number)
{
    *number = 0;
    for (; digits; digits--, (*text)++) {
        if (**text < '0' || **text > '9')
            return false;
        *number = 10 * *number + (**text - '0');
    }
    return *number >= least && *number <= most;
}

static bool skip(const char **text, char byte)
{
    bool there = **text == byte;
    *text += there;
    return there;
}

/* Digits behind a point, of which the first nine count. */
static bool take_fraction(const char **text, int64_t *nanoseconds)
{
    int64_t unit = 100000000;
    if (!skip(text, '.'))
        return true;
    if (**text < '0' || **text > '9')
        return false;
    for (; **text >= '0' && **text <= '9'; (*text)++, unit /= 10)
        *nanoseconds += (**text - '0') * unit;
    return true;
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* Days from 1970-01-01 on. The year is made to begin in March, so that a leap day is its last. */
static int64_t days_since_1970(int year, int month, int day)
{
    year -= month < 3;
    int day_of_year = (153 * (month < 3 ? month + 9 : month - 3) + 2) / 5 + day - 1;
    return INT64_C(365) * year + year / 4 - year / 100 + year / 400 + day_of_year - 719468;
}

static bool take_date(const char **text, int64_t *seconds)
{
    int year, month, day;
    if (!take(text, 4, 1, 9999, &year) || !skip(text, '-') || !take(text, 2, 1, 12, &month) ||
        !skip(text, '-') || !take(text, 2, 1, days_of_month(year, month), &day))
        return false;
    *seconds = days_since_1970(year, month, day) * 86400;
    return true;
}

static bool take_time_of_day(const char **text, int64_t *seconds, int64_t *nanoseconds)
{
    int hour, minute, second = 0;
    if (!skip(text, ' ') && !skip(text, 'T'))
        return true;
    if (!take(text, 2, 0, 23, &hour) || !skip(text, ':') || !take(text, 2, 0, 59, &minute))
        return false;
    if (skip(text, ':') && (!take(text, 2, 0, 60, &second) || !take_fraction(text, nanoseconds)))
        return false;
    *seconds += 3600 * hour + 60 * minute + second;
    return true;
}

static bool take_zone(const char **text, int64_t *seconds)
{
    int hour, minute = 0;
    bool west = **text == '-';
    if (skip(text, 'Z'))
        return true;
    if (!west && **text != '+')
        return true;
    ++*text;
    if (!take(text, 2, 0, 23, &hour))
        return false;
    if ((skip(text, ':') || **text) && !take(text, 2, 0, 59, &minute))
        return false;
    *seconds += (west ? 1 : -1) * (3600 * hour + 60 * minute);
    return true;
}

static bool take_seconds(const char **text, int64_t *seconds, int64_t *nanoseconds)
{
    bool negative = skip(text, '-');
    if (**text < '0' || **text > '9')
        return false;
    for (*seconds = 0; **text >= '0' && **text <= '9'; (*text)++)
        if (__builtin_mul_overflow(*seconds, 10, seconds) ||
            __builtin_add_overflow(*seconds, **text - '0', seconds))
            return false;
    if (!take_fraction(text, nanoseconds))
        return false;
    if (negative) {
        *seconds = -*seconds;
        *nanoseconds = -*nanoseconds;
    }
    return true;
}

bool bw_time_parse(const char *text, int64_t *result)
{
    int64_t seconds = 0, nanoseconds = 0;
    bool good = skip(&text, '@') ? take_seconds(&text, &seconds, &nanoseconds)
                                 : take_date(&text, &seconds) &&
                                       take_time_of_day(&text, &seconds, &nanoseconds) &&
                                       take_zone(&text, &seconds);
    return good && !*text && !__builtin_mul_overflow(seconds, INT64_C(1000000000), result) &&
           !__builtin_add_overflow(*result, nanoseconds, result);
}
