/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/human: numbers with units, sizes, dates and modes, in both directions. */
#include <time.h>

#include "support/walk_helpers.h"

#include "base/human.h"

static void test_units(void **state)
{
    static const struct {
        const char *text;
        bool time;
        uint64_t number; /* UINT64_MAX: it is refused */
    } cases[] = {
        {"0", false, 0},
        {"0", true, 0},
        {"00", true, 0},
        {"1", false, 1},
        {"1", true, UINT64_MAX},
        {"64K", false, 65536},
        {"15E", false, UINT64_C(15) << 60},
        {"16E", false, UINT64_MAX},
        {"64k", false, 65536},
        {"64kB", false, 64000},
        {"64KiB", false, 65536},
        {"3mib", false, 3 << 20},
        {"2TB", false, UINT64_C(2000000000000)},
        {"18EB", false, UINT64_C(18000000000000000000)},
        {"19EB", false, UINT64_MAX},
        {"1B", false, UINT64_MAX},
        {"1iB", false, UINT64_MAX},
        {"1KK", false, UINT64_MAX},
        {"1KBx", false, UINT64_MAX},
        {"18446744073709551614", false, UINT64_MAX - 1},
        {"18446744073709551616", false, UINT64_MAX},
        {"2h", true, UINT64_C(7200000000000)},
        {"3m", true, UINT64_C(180000000000)},
        {"3ms", true, 3000000},
        {"7ns", true, 7},
        {"", false, UINT64_MAX},
        {"K", false, UINT64_MAX},
        {"-1", false, UINT64_MAX},
        {"+1", false, UINT64_MAX},
        {" 1", false, UINT64_MAX},
        {"1 ", false, UINT64_MAX},
        {"0x10", false, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t number = UINT64_MAX;
        bool good = bw_parse_with_unit(cases[i].text, cases[i].time ? bw_time_units : bw_size_units,
                                       &number);
        assert_int_equal(good, cases[i].number != UINT64_MAX);
        if (good)
            assert_int_equal(number, cases[i].number);
    }
}

static void expect(char *text, const char *end, const char *expected)
{
    assert_int_equal(end - text, strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
}

static void test_sizes(void **state)
{
    static const struct {
        uint64_t size;
        const char *iec, *si, *as_ls;
    } cases[] = {
        {0, "0B", "0B", "0"},
        {999, "999B", "999B", "999"},
        {1000, "1000B", "1.00kB", "1000"},
        {1023, "1023B", "1.02kB", "1023"},
        {1024, "1.00KiB", "1.02kB", "1.0K"},
        {1025, "1.00KiB", "1.02kB", "1.1K"},
        {1152, "1.12KiB", "1.15kB", "1.2K"}, /* 112.5 hundredths */
        {1408, "1.38KiB", "1.41kB", "1.4K"}, /* 137.5 */
        {1572864, "1.50MiB", "1.57MB", "1.5M"},
        {10239, "10.00KiB", "10.24kB", "10K"},
        {10241, "10.00KiB", "10.24kB", "11K"},
        {1048575, "1024.00KiB", "1.05MB", "1.0M"},
        {UINT64_MAX, "16.00EiB", "18.45EB", "16E"},
    };
    char text[BW_SIZE_ROOM];
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect(text, bw_write_size(text, cases[i].size, false), cases[i].iec);
        expect(text, bw_write_size(text, cases[i].size, true), cases[i].si);
        expect(text, bw_write_short_size(text, cases[i].size), cases[i].as_ls);
    }
}

static void test_dates(void **state)
{
    static const struct {
        int64_t time;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000000"},
        {-1, "1969-12-31T23:59:59.999999999"},
        {-1500000000, "1969-12-31T23:59:58.500000000"},
        {INT64_MIN, "1677-09-21T00:12:43.145224192"},
        {INT64_MAX, "2262-04-11T23:47:16.854775807"},
    };
    char text[BW_DATE_LENGTH + 1] = {0};
    for (size_t i = 0; i < COUNT(cases); i++)
        expect(text, bw_write_date(text, cases[i].time, 'T'), cases[i].text);
    /* There and back again, and as gmtime(3) has it. */
    int64_t time = INT64_MIN, read;
    for (; time < INT64_MAX - 36525000123456789; time += 36525000123456789 / 7) {
        char same[32];
        time_t seconds = time / 1000000000 - (time % 1000000000 < 0);
        bw_write_date(text, time, ' ');
        assert_true(bw_parse_date(text, &read));
        assert_int_equal(read, time);
        strftime(same, sizeof same, "%Y-%m-%d %H:%M:%S", gmtime(&seconds));
        assert_memory_equal(text, same, strlen(same));
    }
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t seconds, nanoseconds;
    } cases[] = {
        {"1970-01-01", 0, 0},
        {"1970-01-01T00:00Z", 0, 0},
        {"1969-12-31 23:59:59", -1, 0},
        {"2000-02-29", 951782400, 0},
        {"2000-03-01", 951868800, 0},
        {"1900-03-01", -2203891200, 0},
        {"2024-12-31 23:59:60", 1735689600, 0},
        {"2001-02-03 04:05:06.789", 981173106, 789000000},
        {"2001-02-03 04:05:06.1234567891", 981173106, 123456789},
        {"2001-02-03 04:05+02:30", 981164100, 0},
        {"2001-02-03 04:05-0230", 981182100, 0},
        {"2001-02-03T04+02", 0, -1},
        {"2001-02-03 04:05 +02:30", 981164100, 0},
        {"2001-02-03+02", 981151200, 0},
        {"1678-01-01", -9214560000, 0},
        {"@0", 0, 0},
        {"@-0.5", 0, -500000000},
        {"@1.000000001", 1, 1},
        {"@9223372036", 9223372036, 0},
        {"@-9223372036.854775808", -9223372036, -854775808},
        {"1677-09-21 00:12:43.145224192", -9223372036, -854775808},
        {"2262-04-11 23:47:16.854775807", 9223372036, 854775807},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t time;
        if (cases[i].nanoseconds == -1) {
            assert_false(bw_parse_date(cases[i].text, &time));
            continue;
        }
        assert_true(bw_parse_date(cases[i].text, &time));
        assert_int_equal(time, cases[i].seconds * 1000000000 + cases[i].nanoseconds);
    }
}

static void test_bad_times(void **state)
{
    static const char *const texts[] = {
        "2001-02-29",
        "1900-02-29",
        "2001-00-01",
        "2001-13-01",
        "2001-04-31",
        "2001-04-00",
        "2001-4-1",
        "20010401",
        "2001-04-01 24:00",
        "2001-04-01 12:60",
        "2001-04-01 12:00:61",
        "2001-04-01 12:00:00.",
        "2001-04-01 12:00Zulu",
        "2001-04-01 12:00+1",
        "2001-04-01 12:00+01:",
        "2001-04-01 12:00+24",
        "2001-04-01 ",
        "2001-04-01 12:00 ",
        "@9223372036854775808",
        "2001-04-01  12:00",
        "2001-04-01 1:00",
        "2001-04-01 12:00:5",
        " 2001-04-01",
        "2001- 4-01",
        "2001-04-01 12:00+1:00",
        "2001-04-01 12:00+01:60",
        "1677-09-21 00:12:43.145224191",
        "2262-04-11 23:47:16.854775808",
        "@",
        "@x",
        "@1.",
        "@-",
        "@9223372037",
        "@99999999999999999999",
        "1600-01-01",
        "2300-01-01",
        "0000-01-01",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        int64_t time;
        if (bw_parse_date(texts[i], &time))
            fail_msg("%s is a time", texts[i]);
    }
}

static void test_modes(void **state)
{
    static const struct {
        uint32_t mode;
        const char *letters;
    } cases[] = {
        {0100644, "-rw-r--r--"}, {0040755, "drwxr-xr-x"},    {0120777, "lrwxrwxrwx"},
        {0020600, "crw-------"}, {0060660, "brw-rw----"},    {0010000, "p---------"},
        {0140001, "s--------x"}, {0000000, "?---------"},    {0104755, "-rwsr-xr-x"},
        {0104644, "-rwSr--r--"}, {0102755, "-rwxr-sr-x"},    {0102644, "-rw-r-Sr--"},
        {0041777, "drwxrwxrwt"}, {0041776, "drwxrwxrwT"},    {0107777, "-rwsrwsrwt"},
        {0107000, "---S--S--T"}, {UINT32_MAX, "?rwsrwsrwt"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[BW_MODE_LENGTH + 1] = {0};
        assert_ptr_equal(bw_write_mode(text, cases[i].mode), text + BW_MODE_LENGTH);
        assert_string_equal(text, cases[i].letters);
    }
}

/* The zone of this machine is not UTC. */
static void test_zones(void **state)
{
    static const struct {
        const char *zone, *text;
        int64_t time;
    } cases[] = {
        {"UTC0", "1970-01-01T00:00:00.000000000Z", 0},
        {"XXX-5:30", "1970-01-01T05:30:00.000000000+05:30", 0},
        {"XXX9:45", "1969-12-31T14:14:59.999999999-09:45", -1},
        /* before and at the beginning of summer time */
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2021-03-28T01:59:59.999999999+01:00",
         INT64_C(1616893199999999999)},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "2021-03-28T03:00:00.000000000+02:00",
         INT64_C(1616893200000000000)},
        /* no time of this zone, because it would not fit */
        {"XXX-1", "2262-04-11T23:47:16.854775807Z", INT64_MAX},
        {"XXX1", "1677-09-21T00:12:43.145224192Z", INT64_MIN},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64] = "";
        setenv("TZ", cases[i].zone, 1);
        tzset();
        *bw_write_zoned_date(text, cases[i].time, true) = '\0';
        assert_string_equal(text, cases[i].text);
    }
    unsetenv("TZ");
    tzset();
}

static void test_seconds(void **state)
{
    char text[64];
    *bw_write_seconds(text, -1) = '\0';
    assert_string_equal(text, "-0.000000001");
    *bw_write_seconds(text, INT64_MIN) = '\0';
    assert_string_equal(text, "-9223372036.854775808");
    *bw_write_seconds(text, INT64_MAX) = '\0';
    assert_string_equal(text, "9223372036.854775807");
}

/* Modes as chmod(1) reads them. */
static void test_parsed_modes(void **state)
{
    static const struct {
        const char *text;
        bool directory;
        uint32_t mode; /* UINT32_MAX: it is refused */
    } cases[] = {
        {"644", false, 0644},          {"7777", false, 07777},
        {"10000", false, UINT32_MAX},  {"6x", false, UINT32_MAX},
        {"8", false, UINT32_MAX},      {"", false, UINT32_MAX},
        {"u=rw,g=u", false, 0660},     {"u=rwx,o=u-w", false, 0705},
        {"g=x,u=g", false, 0110},      {"o=r,g=o", false, 0044},
        {"u=rw,u=x", false, 0100},     {"a=rwx,g=r,=w", false, 0222},
        {"=755", false, 0755},         {"=755,o-r", false, 0751},
        {"u=7", false, UINT32_MAX},    {"=755x", false, UINT32_MAX},
        {"=10000", false, UINT32_MAX}, {"=77777777777777777777777777", false, UINT32_MAX},
        {"u", false, UINT32_MAX},      {"77777777777777777777777777", false, UINT32_MAX},
        {"u=r,", false, UINT32_MAX},   {"a+rX", false, 0444},
        {"a+rX", true, 0555},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t mode = 0;
        const bool is_mode = bw_parse_mode(cases[i].text, cases[i].directory, &mode);
        if (is_mode != (cases[i].mode != UINT32_MAX))
            fail_msg("%s", cases[i].text);
        if (is_mode)
            assert_int_equal(mode, cases[i].mode);
    }
}
