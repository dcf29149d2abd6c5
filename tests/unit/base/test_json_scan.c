/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/json_scan.h: tokens, keys and depths, escapes, and texts that are not JSON. */
#include "base/json_scan.h"

#include <string.h>

#include "support/walk_helpers.h"

/* Writes the tokens of a text: each as its kind, depth, key and text. */
static void check_tokens(const char *text, const char *expected)
{
    struct bw_json_scan scan = {.next = text, .end = text + strlen(text)};
    struct bw_buffer tokens = {0};
    while (bw_json_scan_next(&scan)) {
        bw_buffer_format(&tokens, "%c%zu %s", "{}so"[scan.kind], scan.depth, scan.key.data);
        if (scan.kind == BW_JSON_STRING)
            bw_buffer_format(&tokens, "=%s", scan.text.data);
        bw_buffer_append_byte(&tokens, '|');
    }
    assert_false(bw_json_scan_next(&scan));
    assert_string_equal(bw_buffer_text(&tokens), expected);
    bw_buffer_free(&tokens);
    bw_json_scan_free(&scan);
}

static void test_tokens(void **state)
{
    check_tokens("", "");
    check_tokens("\"a\"", "s0 =a|");
    check_tokens("[{\"id\": \"x\", \"names\":[\"a\",\"b\"], \"n\" :1.5e3}]",
                 "{1 |{2 |s2 id=x|{3 names|s3 names=a|s3 names=b|}2 names|o2 n|}1 n|}0 n|");
    check_tokens("{\"a\":null,\"b\":true}", "{1 |o1 a|o1 b|}0 b|");
}

static void test_escapes(void **state)
{
    check_tokens("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s0 =\"\\/\b\f\n\r\t|");
    check_tokens("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
                 "s0 =A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80|");
    check_tokens("\"\\ud83dx\"", "s0 =\xef\xbf\xbdx|");
    check_tokens("\"\\ude00\"", "s0 =\xef\xbf\xbd|");
    check_tokens("\"\\ud83d\\u0041\"", "s0 =\xef\xbf\xbd"
                                       "A|");
    check_tokens("\"\\ud83d\\ud83d\\ude00\"", "s0 =\xef\xbf\xbd\xf0\x9f\x98\x80|");
    check_tokens("\"\\ud83d\\ud83d\"", "s0 =\xef\xbf\xbd\xef\xbf\xbd|");
    check_tokens("\"\\ud83d\\n123456\"", "s0 =\xef\xbf\xbd\n123456|");
    check_tokens("\"\\ud800\\udc00\\udbff\\udfff\"", "s0 =\xf0\x90\x80\x80\xf4\x8f\xbf\xbf|");
    check_tokens("\"\\ud83d\\uffff\"", "s0 =\xef\xbf\xbd\xef\xbf\xbf|");
    check_tokens("\t[\r\n1 ,\t2\n]", "{1 |o1 |o1 |}0 |");
    check_tokens("{\"\\u006b\":\"v\"}", "{1 |s1 k=v|}0 k|");
}

/* The text ends with the first error, and nothing beyond it is read. */
static void test_errors(void **state)
{
    static const char *const texts[] = {"\"",          "\"\\", "\"\\u12", "\"\\x\"",
                                        "\"\\u12g4\"", "}",    "\"a"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_tokens(texts[i], "");
    check_tokens("[1 2", "{1 |o1 |o1 |");
    check_tokens("x:y", "o0 |");
}
