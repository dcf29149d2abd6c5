/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/probe/filter.c: the exact words of each refusal, the limits, and texts that mean harm. */
#include "probe/probe.h"
#include "support/filter_matches.h"
#include "support/walk_helpers.h"

static struct bw_error *create(const char *probes, const char *text, struct bw_filter **filter)
{
    bool selected[BW_PROBES_MAX] = {false};
    expect_success(bw_probes_select(probes, selected));
    return bw_filter_create(text, selected, filter);
}

struct refusal {
    const char *probes, *text, *message;
};

static void expect_refusals(const struct refusal *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bw_filter *filter = NULL;
        struct bw_error *error = create(cases[i].probes, cases[i].text, &filter);
        if (!error)
            fail_msg("accepted: %s", cases[i].text);
        assert_null(filter);
        assert_int_equal(error->code, BW_ERROR_USAGE);
        assert_string_equal(error->message, cases[i].message);
        bw_error_free(error);
    }
}

static void test_grammar(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"error", "", "the filter is empty"},
        {"error", " \t\n", "the filter is empty"},
        {"error", "code ==", "column 8: expected a value, not the end"},
        {"error", "code == &&", "column 9: expected a value, not '&&'"},
        {"error", "code == == 1", "column 9: expected a value, not '=='"},
        {"error", "code = 1", "column 6: expected '==', not '=' alone"},
        {"error", "code & 1", "column 6: expected '&&', not '&' alone"},
        {"error", "code | 1", "column 6: expected '||', not '|' alone"},
        {"error", "code 1", "column 6: expected an operator, '&&', '||' or the end, not '1'"},
        {"error", "code and code",
         "column 6: expected an operator, '&&', '||' or the end, not 'and'"},
        {"error", "code == 1 2", "column 11: expected '&&', '||' or the end, not '2'"},
        {"error", "code == 1 == 1", "column 11: expected '&&', '||' or the end, not '=='"},
        {"error", "code == 1)", "column 10: expected '&&', '||' or the end, not ')'"},
        {"error", "code \"x\"",
         "column 6: expected an operator, '&&', '||' or the end, not a text in quotes"},
        {"error", "code ! code", "column 6: expected an operator, '&&', '||' or the end, not '!'"},
        {"error", "(code", "column 6: expected an operator, '&&', '||' or ')', not the end"},
        {"error", "((code) ", "column 9: expected '&&', '||' or ')', not the end"},
        {"error", "(code == 1 x)", "column 12: expected '&&', '||' or ')', not 'x'"},
        {"error", "(code) code", "column 8: expected '&&', '||' or the end, not 'code'"},
        {"error", "(code) == 1", "column 8: expected '&&', '||' or the end, not '=='"},
        {"error", "()", "column 2: expected a member, '!' or '(', not ')'"},
        {"error", ")", "column 1: expected a member, '!' or '(', not ')'"},
        {"error", "!", "column 2: expected a member, '!' or '(', not the end"},
        {"error", "&& code", "column 1: expected a member, '!' or '(', not '&&'"},
        {"error", "code ||", "column 8: expected a member, '!' or '(', not the end"},
        {"error", "code && && code", "column 9: expected a member, '!' or '(', not '&&'"},
        {"error", "1 == code", "column 1: expected a member, '!' or '(', not '1'"},
        {"error", "\"code\" == 1", "column 1: expected a member, '!' or '(', not a text in quotes"},
        {"error", "!= 1", "column 1: expected a member, '!' or '(', not '!='"},
        {"error", "message == a=b", "column 13: expected '==', not '=' alone"},
        {"error", "message == a(b)", "column 13: expected '&&', '||' or the end, not '('"},
        {"error", "message == \"a", "column 12: the quote that begins here does not end"},
        {"error", "message == \"a\\\"", "column 12: the quote that begins here does not end"},
        {"error", "message == \"", "column 12: the quote that begins here does not end"},
        {"error", "message == \"a\\q\"",
         "column 14: expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes"},
        {"error", "message == \"\\x1g\"",
         "column 13: expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes"},
        {"error", "message == \"\\x",
         "column 13: expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes"},
        {"error", "message == \"\\",
         "column 13: expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes"},
        {"error", "message ~ a[b", "column 11: in the pattern: a '[' without its ']'"},
        {"error", "message !~ \"[[:digits:]]\"",
         "column 12: in the pattern: no class has that name: they are like [:alpha:]"},
        {"error", "message ~ a\\", "column 11: in the pattern: a '\\' with nothing after it"},
        {"error", "code aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg",
         "column 6: expected an operator, '&&', '||' or the end, not "
         "'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg'"},
    };
    expect_refusals(cases, COUNT(cases));
}

static void test_members(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"block-*", "foo == 1", "blockinfo has no member 'foo'"},
        {"block-*", "lvel == 1", "blockinfo has no member 'lvel'; did you mean 'level'?"},
        {"block-*", "levell", "blockinfo has no member 'levell'; did you mean 'level'?"},
        {"block-*", "levle", "blockinfo has no member 'levle'; did you mean 'level'?"},
        {"block-*", "levex", "blockinfo has no member 'levex'; did you mean 'level'?"},
        {"block-*", "gen > 1", "blockinfo has no member 'gen'"},
        {"block-*", "prob == x", "blockinfo has no member 'prob'; did you mean 'probe'?"},
        {"block-*", "c == 1", "blockinfo has no member 'c'"},
        {"block-*", "Level == 1", "blockinfo has no member 'Level'; did you mean 'level'?"},
        {"block-*", "blockinfo.level", "blockinfo has no member 'blockinfo.level'"},
        {"block-verify,cache-hit", "level == 0 && generation > 1",
         "cacheinfo has no member 'generation'"},
        {"image-open", "level == 0", "imageinfo has no member 'level'"},
        {"cache-hit,path-emit", "level == 0", "pathinfo has no member 'level'"},
        {"block-read-start", "items > 3",
         "blockinfo.items has no translation from block_start (probe block-read-start)"},
        {"block-read-*", "items > 3",
         "blockinfo.items has no translation from block_start (probe block-read-start)"},
        {"block-read-done,block-retry", "error && ns > 1ms",
         "blockinfo.ns has no translation from block_copy (probe block-retry)"},
        {"cache-*", "tree == 5",
         "cacheinfo.tree has no translation from cache_evict (probe cache-evict)"},
        {"path-emit", "ns", "pathinfo.ns has no translation from path (probe path-emit)"},
    };
    expect_refusals(cases, COUNT(cases));
}

static void test_types(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"block-read-done", "level ~ 3",
         "column 7: '~' is for texts, but blockinfo.level is a number"},
        {"block-read-done", "level !~ a*",
         "column 7: '!~' is for texts, but blockinfo.level is a number"},
        {"dirent", "name < 3", "column 6: '<' is for numbers, but direntinfo.name is a text"},
        {"dirent", "name <= a", "column 6: '<=' is for numbers, but direntinfo.name is a text"},
        {"dirent", "type > a", "column 6: '>' is for numbers, but direntinfo.type is a text"},
        {"dirent", "type >= a", "column 6: '>=' is for numbers, but direntinfo.type is a text"},
        {"dirent", "probe < a", "column 7: '<' is for numbers, but probe is a text"},
        {"dirent", "probe == 5",
         "column 10: probe is a text, and 5 is a number; in quotes it is a text"},
        {"dirent", "name == 5K",
         "column 9: direntinfo.name is a text, and 5K is a number; in quotes it is a text"},
        {"dirent", "name ~ -1",
         "column 8: direntinfo.name is a text, and -1 is a number; in quotes it is a text"},
        {"dirent", "parent_inode == abc",
         "column 17: direntinfo.parent_inode is a number, and 'abc' is none"},
        {"dirent", "parent_inode == \"5\"",
         "column 17: direntinfo.parent_inode is a number, and '5' is a text"},
        {"dirent", "parent_inode == 5x",
         "column 17: direntinfo.parent_inode is a number, and '5x' is none"},
        {"dirent", "parent_inode == 08",
         "column 17: direntinfo.parent_inode is a number, and '08' is none"},
        {"dirent", "parent_inode == 0x",
         "column 17: direntinfo.parent_inode is a number, and '0x' is none"},
        {"dirent", "parent_inode == 0xg",
         "column 17: direntinfo.parent_inode is a number, and '0xg' is none"},
        {"dirent", "parent_inode == -",
         "column 17: direntinfo.parent_inode is a number, and '-' is none"},
        {"dirent", "parent_inode == K",
         "column 17: direntinfo.parent_inode is a number, and 'K' is none"},
        {"dirent", "parent_inode == --1",
         "column 17: direntinfo.parent_inode is a number, and '--1' is none"},
        {"dirent", "parent_inode == 1KK",
         "column 17: direntinfo.parent_inode is a number, and '1KK' is none"},
        {"dirent", "parent_inode == 1.5",
         "column 17: direntinfo.parent_inode is a number, and '1.5' is none"},
        {"dirent", "parent_inode == 1e",
         "column 17: direntinfo.parent_inode is a number, and '1e' is none"},
        {"dirent", "parent_inode == 1ms",
         "column 17: 1ms is a time, and direntinfo.parent_inode is none"},
        {"block-read-done", "ns == 1K", "column 7: 1K is a size, and blockinfo.ns is none"},
        {"chunk-add", "flags == 1K", "column 10: 1K is a size, and chunkinfo.flags is none"},
        {"dirent", "parent_inode == -1",
         "column 17: -1 does not fit direntinfo.parent_inode: it goes from 0 to "
         "18446744073709551615"},
        {"dirent", "parent_inode == 18446744073709551616",
         "column 17: 18446744073709551616 does not fit direntinfo.parent_inode: it goes from 0 to "
         "18446744073709551615"},
        {"dirent", "parent_inode < 16E",
         "column 16: 16E does not fit direntinfo.parent_inode: it goes from 0 to "
         "18446744073709551615"},
        {"dirent", "parent_inode < 0x10000000000000000",
         "column 16: 0x10000000000000000 does not fit direntinfo.parent_inode: it goes from 0 to "
         "18446744073709551615"},
        {"error", "error < 9223372036854775808",
         "column 9: 9223372036854775808 does not fit errinfo.error: it goes from "
         "-9223372036854775808 to "
         "9223372036854775807"},
        {"error", "error < -9223372036854775809",
         "column 9: -9223372036854775809 does not fit errinfo.error: it goes from "
         "-9223372036854775808 to "
         "9223372036854775807"},
        {"error", "error < -18446744073709551616",
         "column 9: -18446744073709551616 does not fit errinfo.error: it goes from "
         "-9223372036854775808 to "
         "9223372036854775807"},
        {"error", "error < -16E",
         "column 9: -16E does not fit errinfo.error: it goes from -9223372036854775808 to "
         "9223372036854775807"},
    };
    expect_refusals(cases, COUNT(cases));
}

static char *repeated(const char *front, const char *text, size_t times, const char *back)
{
    struct bw_buffer buffer = {0};
    bw_buffer_append(&buffer, front, strlen(front));
    for (size_t i = 0; i < times; i++)
        bw_buffer_append(&buffer, text, strlen(text));
    bw_buffer_append(&buffer, back, strlen(back) + 1);
    assert_false(buffer.failed);
    return buffer.data;
}

static void expect_answer(const char *front, const char *text, size_t times, const char *back,
                          const char *message)
{
    char *whole = repeated(front, text, times, back);
    if (message) {
        expect_refusals(&(struct refusal){"error", whole, message}, 1);
    } else {
        struct bw_filter *filter;
        expect_success(create("error", whole, &filter));
        const struct bw_errinfo record = {.error_code = 0};
        const struct bw_probe *probe = &bw_probe_table(NULL)[BW_PROBE_error];
        filter_matches(filter, &(struct bw_probe_event){.probe = probe,
                                                        .record = &record,
                                                        .members = bw_probe_members(probe)});
        bw_filter_destroy(filter);
    }
    free(whole);
}

static void test_limits(void **state)
{
    (void)state;
    char closing[BW_FILTER_DEPTH + 2] = "";
    memset(closing, ')', BW_FILTER_DEPTH);
    expect_answer("", "!", BW_FILTER_DEPTH, "error", NULL);
    expect_answer("", "!", BW_FILTER_DEPTH + 1, "error",
                  "column 65: more than 64 nested '(' and '!'");
    expect_answer("error ", "", 0, "", NULL);
    char *nested = repeated("", "(", BW_FILTER_DEPTH, "error");
    expect_answer(nested, "", 0, closing, NULL);
    free(nested);
    expect_answer("", "(", BW_FILTER_DEPTH + 1, "error",
                  "column 65: more than 64 nested '(' and '!'");
    expect_answer("", "(", 4000, "", "column 65: more than 64 nested '(' and '!'");
    expect_answer("", "!(", 2000, "", "column 65: more than 64 nested '(' and '!'");
    /* Side by side there may be as many as there is room for. */
    expect_answer("error", "&&!error", 511, "   ", NULL);
    expect_answer("error", "||error", 584, "   ", NULL);
    expect_answer("ns", "||ns", 1023, "|| ", "the filter is longer than 4096 bytes");
    expect_answer("error", " ", BW_FILTER_LENGTH - 5, "", NULL);
    expect_answer("error", " ", BW_FILTER_LENGTH - 4, "", "the filter is longer than 4096 bytes");
    expect_answer("message ~ ", "*a", 2000, "", NULL);
}

/* Random bytes before, after and within a valid filter: the parser always ends. */
static void test_hostile_texts(void **state)
{
    (void)state;
    static const char good[] = "(error_code == 0x1K || message ~ \"a\\x41*\") && !(layer != [!a]*)";
    for (size_t at = 0; at < sizeof good; at++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            char text[sizeof good + 1] = "";
            struct bw_filter *filter = NULL;
            memcpy(text, good, at);
            text[at] = (char)byte;
            memcpy(text + at + (byte & 1), good + at, sizeof good - at);
            text[at] = (char)byte;
            struct bw_error *error = create("error", text, &filter);
            assert_true(!error == !!filter);
            assert_true(!error || error->code == BW_ERROR_USAGE);
            bw_error_free(error);
            bw_filter_destroy(filter);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),       cmocka_unit_test(test_members),
        cmocka_unit_test(test_types),         cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
