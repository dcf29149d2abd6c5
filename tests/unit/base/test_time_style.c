/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/time_style: the styles of ls, recent and older times, formats with %N, odd times. */
#include "support/walk_helpers.h"

#include "base/time_style.h"

static void expect_time(const char *name, struct timespec time, const char *want)
{
    struct bw_time_style style;
    struct bw_buffer text = {0};
    assert_true(bw_time_style_parse(name, &style));
    style.now = 1700000000;
    bw_time_style_append(&style, &time, &text);
    assert_string_equal(bw_buffer_text(&text), want);
    bw_buffer_free(&text);
}

static void test_styles(void **state)
{
    const struct timespec recent = {1699999999, 5}, older = {1600000000, 123456789};
    const struct timespec future = {1700000001, 0};
    expect_time("full-iso", older, "2020-09-13 12:26:40.123456789 +0000");
    expect_time("long-iso", older, "2020-09-13 12:26");
    expect_time("iso", older, "2020-09-13 ");
    expect_time("iso", recent, "11-14 22:13");
    expect_time("iso", future, "2023-11-14 ");
    expect_time("+%s.%N", older, "1600000000.123456789");
    expect_time("+%s.%N", recent, "1699999999.000000005");
    expect_time("+%%N%N%", recent, "%N000000005%");
    expect_time("+old\nnew", older, "old");
    expect_time("+old\nnew", recent, "new");
    expect_time("+", recent, "");
}

/* 255 bytes without %N are the most that count. */
static void test_long_formats(void **state)
{
    char format[300] = "+";
    memset(format + 1, 'x', 255);
    expect_time(format, (struct timespec){0, 5}, format + 1);
    memcpy(format + 256, "x%N", sizeof "x%N");
    expect_time(format, (struct timespec){0, 5}, "000000005");
}

static void test_odd_times(void **state)
{
    expect_time("+%Y", (struct timespec){-1, 0}, "1969");
    expect_time("+%Y", (struct timespec){INT64_MAX, 0}, "9223372036854775807");
    expect_time("full-iso", (struct timespec){INT64_MAX, 0}, "9223372036854775807");
    expect_time("full-iso", (struct timespec){INT64_MIN, 0}, "-9223372036854775808");
    expect_time("full-iso", (struct timespec){9223372036, 999999999},
                "2262-04-11 23:47:16.999999999 +0000");
    expect_time("full-iso", (struct timespec){-9223372037, 5},
                "1677-09-21 00:12:43.000000005 +0000");
    expect_time("full-iso", (struct timespec){17179869183, 123456789},
                "2514-05-30 01:53:03.123456789 +0000");
    expect_time("full-iso", (struct timespec){-62135596800, 1},
                "0001-01-01 00:00:00.000000001 +0000");
    expect_time("long-iso", (struct timespec){-62135596800, 1}, "0001-01-01 00:00");
    expect_time("full-iso", (struct timespec){253402300800, 1},
                "10000-01-01 00:00:00.000000001 +0000");
    expect_time("full-iso", (struct timespec){67767976233532799, 1},
                "2147483647-12-31 23:59:59.000000001 +0000");
    expect_time("full-iso", (struct timespec){67767976233532800, 1}, "67767976233532800");
    expect_time("full-iso", (struct timespec){-1, 500000000},
                "1969-12-31 23:59:59.500000000 +0000");
}

static void test_refusals(void **state)
{
    struct bw_time_style style;
    assert_false(bw_time_style_parse("", &style));
    assert_false(bw_time_style_parse("ISO", &style));
    assert_false(bw_time_style_parse("locale", &style));
}
