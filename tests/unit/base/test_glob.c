/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/glob.c: single patterns, random ones compared with fnmatch(3), and invalid ones. */
#include "support/walk_helpers.h"

#include <fnmatch.h>

#include "base/glob.h"

static bool matches(const char *pattern, const char *text)
{
    return bw_glob_matches(pattern, strlen(pattern), text, strlen(text));
}

static bool matches_folded(const char *pattern, const char *text)
{
    return bw_glob_matches_folded((locale_t)0, pattern, strlen(pattern), text, strlen(text));
}

static void test_patterns(void **state)
{
    (void)state;
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
        {"[[:alpha:]]", "Z", "\xc3\xa4"},
        {"[[:upper:][:digit:]]*", "7x", "x7"},
        {"[[:]", ":", "a"},
        {"[[:x]]", "x]", "x"},
        {"[a[:ALPHA:]]", "H]", "h"},
        {"\\*", "*", "a"},
        {"\\a\\[", "a[", "a"},
        {"a]", "a]", "a"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_null(bw_glob_problem(cases[i].pattern, strlen(cases[i].pattern)));
        if (!matches(cases[i].pattern, cases[i].fits))
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].fits);
        if (cases[i].fits_not && matches(cases[i].pattern, cases[i].fits_not))
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].fits_not);
    }
}

/* Lengths count: a NUL is an ordinary byte, and nothing after the end is read. */
static void test_lengths(void **state)
{
    (void)state;
    assert_true(bw_glob_matches("a?b", 3, "a\0b", 3));
    assert_true(bw_glob_matches("*b", 2, "a\0b", 3));
    assert_true(bw_glob_matches("a\0*", 3, "a\0b", 3));
    assert_false(bw_glob_matches("a", 1, "a\0", 2));
    assert_true(bw_glob_matches("abc", 1, "abc", 1));
    assert_true(bw_glob_matches("?", 1, "\xc3\xa4", 1));
    assert_true(bw_glob_matches("*", 1, "", 0));
    assert_false(matches("[c-a]", "b"));
}

/* Each pattern and text of a few letters. */
static void test_against_the_library(void **state)
{
    (void)state;
    static const char pattern_letters[] = "ab*?", text_letters[] = "ab";
    char pattern[6] = "", text[6] = "";
    for (unsigned p = 0; p < 4 * 4 * 4 * 4 * 4; p++) {
        for (unsigned i = 0, rest = p; i < 5; i++, rest /= 4)
            pattern[i] = pattern_letters[rest % 4];
        for (unsigned t = 0; t < 6 * 32; t++) {
            memset(text, 0, sizeof text);
            for (unsigned i = 0; i < t / 32; i++)
                text[i] = text_letters[t >> i & 1];
            assert_int_equal(matches(pattern, text), fnmatch(pattern, text, 0) == 0);
        }
    }
}

/* Random patterns and texts with all special characters, in both cases. */
static void test_many_against_the_library(void **state)
{
    static const char *const pieces[] = {
        "*",
        "?",
        "[",
        "]",
        "[!",
        "[^",
        "-",
        "\\",
        "a",
        "b",
        "Z",
        "5",
        " ",
        ".",
        "/",
        "_",
        "[:alpha:]",
        "[:digit:]",
        "[:upper:]",
        "[:lower:]",
        "a-c",
        "A-F",
        "[[:punct:]]",
        "[[:space:]x]",
        "[![:alnum:]]",
        "[:xdigit:]",
        "[:cntrl:]",
        "[:print:]",
        "[:graph:]",
        "[:blank:]",
        ":",
    };
    static const char letters[] = "aAbBzZ59 ._-/]:[\\\t\x01";
    uint32_t random = 1;
    unsigned compared = 0, fitted = 0;
    (void)state;
    for (unsigned round = 0; round < 300000; round++) {
        char pattern[128] = "", text[4] = "";
        for (unsigned i = random >> 16 & 7; i-- > 0;)
            strcat(pattern, pieces[(random = random * 1664525 + 1013904223) % 0x7fffffff / 65536 %
                                   COUNT(pieces)]);
        for (unsigned i = 0; i < round % 4; i++)
            text[i] =
                letters[((random = random * 1664525 + 1013904223) >> 16) % (sizeof letters - 1)];
        random = random * 1664525 + 1013904223;
        if (bw_glob_problem(pattern, strlen(pattern)))
            continue;
        compared++;
        fitted += matches(pattern, text);
        if (matches(pattern, text) != (fnmatch(pattern, text, 0) == 0) ||
            matches_folded(pattern, text) != (fnmatch(pattern, text, FNM_CASEFOLD) == 0))
            fail_msg("'%s' and '%s'", pattern, text);
    }
    assert_true(compared > 100000 && fitted > 10000);
}

static void test_folding(void **state)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    (void)state;
    assert_true(matches_folded("aBc", "AbC"));
    assert_true(matches_folded("[A-C]", "b"));
    assert_false(matches_folded("[[:upper:]]", "b"));
    assert_true(matches_folded("[[:upper:]]", "B"));
    assert_false(matches_folded("\xc3\xa4", "\xc3\x84"));
    if (locale) {
        assert_true(bw_glob_matches_folded(locale, "\xc3\xa4*", 3, "\xc3\x84\xff", 3));
        freelocale(locale);
    }
}

static void test_problems(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *problem;
    } cases[] = {
        {"[", "a '[' without its ']'"},
        {"a[]", "a '[' without its ']'"},
        {"[!]", "a '[' without its ']'"},
        {"[a-", "a '[' without its ']'"},
        {"[a\\]", "a '[' without its ']'"},
        {"[\\", "a '[' without its ']'"},
        {"[[:alpha:]", "a '[' without its ']'"},
        {"[[:", "a '[' without its ']'"},
        {"[[:letter:]]", "no class has that name: they are like [:alpha:]"},
        {"[[::]]", "no class has that name: they are like [:alpha:]"},
        {"[[=a=]]", "[.x.] and [=x=] are not known"},
        {"[[.a.]]", "[.x.] and [=x=] are not known"},
        {"\\", "a '\\' with nothing after it"},
        {"\\\\\\", "a '\\' with nothing after it"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(bw_glob_problem(cases[i].pattern, strlen(cases[i].pattern)),
                            cases[i].problem);
        matches(cases[i].pattern, "abc"); /* reads nothing that is not there */
    }
}

/* Patterns that make others take forever. */
static void test_time(void **state)
{
    (void)state;
    static char pattern[2001], text[20001];
    for (size_t i = 0; i + 1 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    pattern[sizeof pattern - 2] = 'b';
    memset(text, 'a', sizeof text - 1);
    assert_false(matches(pattern, text));
    memset(pattern, 'a', sizeof pattern - 1);
    pattern[0] = '*';
    assert_true(matches(pattern, text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_against_the_library),
        cmocka_unit_test(test_many_against_the_library),
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_problems),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
