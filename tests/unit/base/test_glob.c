/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/glob.c: single patterns, bytes that are not UTF-8, case, time; the same without a locale
 * that has UTF-8. */
#include "support/walk_helpers.h"

#include <fnmatch.h>

#include "base/glob.h"

#define GROUP_SETUP    open_glob
#define GROUP_TEARDOWN close_glob

static struct bw_glob glob;

static bool matches(const char *pattern, const char *text)
{
    return bw_glob_matches(&glob, pattern, text, strlen(text), 0);
}

static bool matches_folded(const char *pattern, const char *text)
{
    return bw_glob_matches(&glob, pattern, text, strlen(text), FNM_CASEFOLD);
}

static void test_patterns(void **state)
{
    static const struct {
        const char *pattern, *fits, *fits_not;
    } cases[] = {
        {"", "", "a"},
        {"abc", "abc", "abcd"},
        {"abc", "abc", "ab"},
        {"*", "", NULL},
        {"*", "a/.b", NULL},
        {"**", "", NULL},
        {"a*b*c", "a-b-b-c", "a-c-b"},
        {"*.c", ".c", "c"},
        {"*aab", "aaaab", "aaba"},
        {"?", "a", ""},
        {"a?c", "a/c", "ac"},
        {"?", "\xc3\xa4", "\xc3\xa4\xc3\xa4"},
        {"??", "\xff\xfe", "\xff"},
        {"??", "\xc3\xa4\xc3\xa4", "\xc3\xa4"}, /* glibc alone takes it as two bytes */
        {"???", "\xe2\x82\xac\xc3\xa4x", "\xe2\x82\xac"},
        {"[\xc3\xa0-\xc3\xbc]*", "\xc3\xa4", "\xc3\x84"},
        {"[\xc3\xa4?", "[\xc3\xa4x", "\xc3\xa4x"},
        {"\xff*", "\xff", "\xc3\xbf"},
        {"[abc]", "b", "d"},
        {"[a-c]x", "bx", "dx"},
        {"[!a-c]", "d", "a"},
        {"[^a-c]", "-", "c"},
        {"[]]", "]", "["},
        {"[!]]", "[", "]"},
        {"[a-]", "-", "b"},
        {"[-a]", "-", "b"},
        {"[\\]]", "]", "\\"},
        {"[\\a-\\c]", "b", "\\"},
        {"[\xc3\xa4-\xc3\xb6]", "\xc3\xa5", "\xc3\xbc"},
        {"[\x80-\xff]", "\x90", "\xc2\x90"},
        {"[!a]", "\xc3\xa4", "a"},
        {"[[:alpha:]]", "q", "5"},
        {"[![:alpha:]]", "5", "q"},
        {"x[[:digit:]_]y", "x_y", "x-y"},
        {"[[:space:]]", "\v", "x"},
        {"[[:alpha:]]", "\xc3\xa4", "\xc2\xbf"},
        {"[", "[", "a"},
        {"[abc", "[abc", "a"},
        {"[[:upper:][:digit:]]*", "7x", "x7"},
        {"[[:]", ":", "a"},
        {"[[:x]]", "x]", "x"},
        {"[a[:ALPHA:]]", "H]", "h"},
        {"\\*", "*", "a"},
        {"\\a\\[", "a[", "a"},
        {"a]", "a]", "a"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (!matches(cases[i].pattern, cases[i].fits))
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].fits);
        if (cases[i].fits_not && matches(cases[i].pattern, cases[i].fits_not))
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].fits_not);
    }
}

static void test_folding(void **state)
{
    assert_true(matches_folded("aBc", "AbC"));
    assert_true(matches_folded("[A-C]", "b"));
    assert_false(matches_folded("[[:upper:]]", "b"));
    assert_true(matches_folded("[[:upper:]]", "B"));
    assert_true(matches_folded("\xc3\xa4*", "\xc3\x84x"));
    assert_false(matches_folded("\xc3\xa4*", "\xc3\x84\xff")); /* bytes have no case */
    assert_true(matches_folded("A\xff*", "a\xff\xfe"));
}

/* A name with one byte that is not UTF-8 consists of bytes, so that `?` is one of them. */
static void test_bytes(void **state)
{
    assert_true(matches("\xc3\xa4?", "\xc3\xa4\xff"));
    assert_false(matches("?\xff", "\xc3\xa4\xff"));
    assert_true(matches("??\xff", "\xc3\xa4\xff"));
    assert_true(matches("*\xa4\xff", "\xc3\xa4\xff"));
    assert_false(matches("\xa4", "\xc3\xa4"));
}

static void test_without_utf8(void **state)
{
    const struct bw_glob opened = glob;
    glob.characters = (locale_t)0;
    assert_true(matches("*.o", "\xc3\xa4.o"));
    assert_true(matches("??.o", "\xc3\xa4.o"));
    assert_false(matches("?.o", "\xc3\xa4.o"));
    assert_true(matches_folded("\xc3\xa4.O", "\xc3\xa4.o"));
    glob = opened;
}

/* The locale of the thread has no influence, and stays. */
static void test_locale_of_the_thread(void **state)
{
    const locale_t previous = uselocale(glob.bytes);
    assert_true(matches("?", "\xc3\xa4"));
    assert_ptr_equal(uselocale(glob.characters), glob.bytes);
    assert_true(matches("??", "\xff\xfe"));
    assert_ptr_equal(uselocale(previous), glob.characters);
}

/* Patterns that make some others take forever, and the longest name. */
static void test_time(void **state)
{
    static const char *const pieces[] = {"*a", "*?", "*[ab]", "*[", "*\xc3\xa4", "*"};
    for (size_t piece = 0; piece < COUNT(pieces); piece++) {
        char pattern[256] = "", text[256];
        while (strlen(pattern) + strlen(pieces[piece]) < sizeof pattern - 2)
            strcat(pattern, pieces[piece]);
        strcat(pattern, "b");
        memset(text, 'a', sizeof text - 1);
        text[sizeof text - 1] = '\0';
        assert_false(matches(pattern, text));
        for (size_t i = 0; i + 1 < sizeof text - 1; i += 2)
            memcpy(text + i, "\xc3\xa4", 2);
        assert_false(matches(pattern, text));
    }
}

static int open_glob(void **state)
{
    bw_glob_open(&glob);
    return 0;
}

static int close_glob(void **state)
{
    bw_glob_close(&glob);
    return 0;
}
