/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sizes with units and times as dates, in whole numbers only: no locale, no time zone, no rounding
 * surprise.
 */
#include "record/units.h"

#include <string.h>

#include "base/decimal.h"

/* The numbers of whole and hundredths: rounded to the nearest, to the even one of two. */
static uint64_t hundredths_of(uint64_t number, uint64_t unit)
{
    uint64_t hundredths = number * 100 / unit, rest = number * 100 % unit;
    return hundredths + (2 * rest > unit || (2 * rest == unit && hundredths % 2));
}

char *bw_units_size(char *at, uint64_t size, bool si)
{
    static const char prefixes[2][7] = {" KMGTPE", " kMGTPE"};
    uint64_t step = si ? 1000 : 1024, above = size; /* `above`: in the unit below the one of `size`
                                                     */
    unsigned unit = 0;
    for (; size >= step; size /= step, unit++)
        above = size;
    if (unit == 0) {
        at = bw_decimal(at, size);
    } else {
        uint64_t hundredths = hundredths_of(above, step);
        at = bw_decimal(at, hundredths / 100);
        *at++ = '.';
        at = bw_decimal_two(at, (uint32_t)(hundredths % 100));
        *at++ = prefixes[si][unit];
        if (!si)
            *at++ = 'i';
    }
    *at++ = 'B';
    return at;
}

/* Division that rounds down, also below zero. */
static int64_t divide(int64_t number, int64_t by, int64_t *rest)
{
    int64_t result = number / by;
    *rest = number % by;
    if (*rest < 0) {
        *rest += by;
        result--;
    }
    return result;
}

/* Year, month and day of a day counted from 1970-01-01. The year is made to begin in March, so that
 * a leap day is its last one; 400 years are an era of 146097 days. */
static char *write_date(char *at, int64_t days)
{
    int64_t rest, era = divide(days + 719468, 146097, &rest);
    uint32_t day = (uint32_t)rest;
    uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint32_t day_of_year = day - (365 * year + year / 4 - year / 100);
    uint32_t month = (5 * day_of_year + 2) / 153;
    uint32_t day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    year += (uint32_t)(era * 400) + (month >= 10);
    at = bw_decimal_four(at, year);
    *at++ = '-';
    at = bw_decimal_two(at, month < 10 ? month + 3 : month - 9);
    *at++ = '-';
    return bw_decimal_two(at, day_of_month);
}

char *bw_units_time(char *at, int64_t nanoseconds)
{
    int64_t fraction, second;
    int64_t days = divide(divide(nanoseconds, INT64_C(1000000000), &fraction), 86400, &second);
    uint32_t seconds = (uint32_t)second, nanosecond = (uint32_t)fraction;
    at = write_date(at, days);
    *at++ = 'T';
    at = bw_decimal_two(at, seconds / 3600);
    *at++ = ':';
    at = bw_decimal_two(at, seconds / 60 % 60);
    *at++ = ':';
    at = bw_decimal_two(at, seconds % 60);
    *at++ = '.';
    *at++ = (char)('0' + nanosecond / 100000000);
    at = bw_decimal_eight(at, nanosecond % 100000000);
    *at++ = 'Z';
    return at;
}
