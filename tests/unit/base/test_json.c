/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base/json: names, commas, lines, what must be escaped, and bytes that are no UTF-8. */
#include "support/walk_helpers.h"

#include "base/json.h"
#include "base/json_string.h"

static struct bw_buffer text;

static struct bw_json start(bool indent)
{
    bw_buffer_free(&text);
    return bw_json_start(&text, indent);
}

static void expect_text(const char *expected)
{
    assert_string_equal(bw_buffer_text(&text), expected);
    bw_buffer_free(&text);
}

static void test_structure(void **state)
{
    struct bw_json json = start(false);
    bw_json_begin_object(&json, NULL);
    bw_json_number(&json, "least", 0);
    bw_json_number(&json, "most", UINT64_MAX);
    bw_json_begin_array(&json, "list");
    bw_json_bool(&json, NULL, true);
    bw_json_bool(&json, NULL, false);
    bw_json_text(&json, NULL, NULL);
    bw_json_begin_object(&json, NULL);
    bw_json_end(&json);
    bw_json_begin_array(&json, NULL);
    bw_json_end(&json);
    bw_json_end(&json);
    bw_json_text(&json, "after", "x");
    bw_json_end(&json);
    bw_json_end(&json); /* one too many does nothing */
    expect_text("{\"least\":0,\"most\":18446744073709551615,\"list\":[true,false,null,{},[]],"
                "\"after\":\"x\"}");
}

/* Members written by hand can be mixed with others. */
static void test_members(void **state)
{
    static const char lead[BW_JSON_LEAD_ROOM] = ",\"hand\":";
    struct bw_json json = start(false);
    bw_json_begin_object(&json, NULL);
    for (unsigned i = 0; i < 2; i++) {
        char *at = bw_json_member(&json, lead, strlen(lead), 1);
        assert_non_null(at);
        *at = '1';
        bw_json_member_end(&json, at + 1);
    }
    bw_json_number(&json, "after", 2);
    bw_json_name(&json, lead, strlen(lead));
    bw_json_begin_array(&json, NULL);
    bw_json_end(&json);
    bw_json_end(&json);
    expect_text("{\"hand\":1,\"hand\":1,\"after\":2,\"hand\":[]}");
}

static void test_lines(void **state)
{
    struct bw_json json = start(true);
    bw_json_begin_object(&json, NULL);
    bw_json_begin_array(&json, "list");
    bw_json_number(&json, NULL, 1);
    bw_json_number(&json, NULL, 2);
    bw_json_end(&json);
    bw_json_begin_object(&json, "empty");
    bw_json_end(&json);
    bw_json_end(&json);
    expect_text("{\n  \"list\": [\n    1,\n    2\n  ],\n  \"empty\": {}\n}");
}

static void test_text(void **state)
{
    static const struct {
        const char *bytes, *expected;
    } cases[] = {
        {"", "{\"a\":\"\"}"},
        {"plain", "{\"a\":\"plain\"}"},
        {"\"\\/", "{\"a\":\"\\\"\\\\/\"}"},
        {"\n\t\x01\x1f\x7f", "{\"a\":\"\\u000a\\u0009\\u0001\\u001f\\u007f\"}"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "{\"a\":\"\\u0080\\u009f\xc2\xa0\"}"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
         "{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"}"},
        {"\xf4\x8f\xbf\xbf", "{\"a\":\"\xf4\x8f\xbf\xbf\"}"},
        /* Beyond the first eight bytes. */
        {"plain bytes", "{\"a\":\"plain bytes\"}"},
        {"0123456\"89", "{\"a\":\"0123456\\\"89\"}"},
        {"01234567\n9", "{\"a\":\"01234567\\u000a9\"}"},
        {"0123456\xc2\x85", "{\"a\":\"0123456\\u0085\"}"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "{\"a\":\"\\u2028\\u2029\"}"},
        {"\xe2\x80\xa7\xe2\x80\xaa", "{\"a\":\"\xe2\x80\xa7\xe2\x80\xaa\"}"},
        {"01234567\xff", "{\"a_bytes\":\"MDEyMzQ1Njf/\"}"},
        /* No UTF-8: a byte alone, one cut off, too long a form, a surrogate, behind the last
           character. */
        {"\xff", "{\"a_bytes\":\"/w==\"}"},
        {"ab\xc3", "{\"a_bytes\":\"YWLD\"}"},
        {"\xc0\x80", "{\"a_bytes\":\"wIA=\"}"},
        {"\xe0\x80\x80", "{\"a_bytes\":\"4ICA\"}"},
        {"\xed\xa0\x80", "{\"a_bytes\":\"7aCA\"}"},
        {"\xf0\x80\x80\x80", "{\"a_bytes\":\"8ICAgA==\"}"},
        {"\xf4\x90\x80\x80", "{\"a_bytes\":\"9JCAgA==\"}"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bw_json json = start(false);
        bw_json_begin_object(&json, NULL);
        bw_json_text(&json, "a", cases[i].bytes);
        bw_json_end(&json);
        expect_text(cases[i].expected);
    }
    struct bw_json json = start(false);
    bw_json_begin_array(&json, NULL);
    bw_json_bytes(&json, NULL, "a\0b", 3);
    bw_json_bytes(&json, NULL, "\xff\xfe", 2);
    bw_json_raw_bytes(&json, NULL, "\n\xff\xc2\xff\xc2z\xc2", 7);
    bw_json_end(&json);
    expect_text("[\"a\\u0000b\",{\"bytes\":\"//4=\"},\"\\u000a\xff\xc2\xff\xc2z\xc2\"]");
}

/* Texts of any length, with a byte that needs an escape at any place, or with none. */
static void test_plain(void **state)
{
    static const char special[] = {'\0', 0x1f, '"', '\\', 0x7f, (char)0x80, (char)0xff};
    enum { LONGEST = 50 };
    char copy[LONGEST + 1], name[LONGEST];
    for (size_t length = 0; length <= LONGEST; length++) {
        for (size_t place = 0; place <= length; place++) {
            for (size_t i = 0; i < LONGEST; i++)
                name[i] = (char)(i % 2 ? '~' - i : '#' + i);
            if (place < length)
                name[place] = special[(place + length) % sizeof special];
            memset(copy, '\n', sizeof copy);
            assert_int_equal(bw_json_copy_plain(copy, name, length), place);
            assert_memory_equal(copy, name, place);
            assert_int_equal(copy[length], '\n');
        }
    }
}

static void test_too_deep(void **state)
{
    struct bw_json json = start(false);
    for (unsigned i = 0; i < BW_JSON_DEPTH; i++)
        bw_json_begin_array(&json, NULL);
    assert_false(text.failed);
    bw_json_begin_array(&json, NULL);
    assert_true(text.failed);
    bw_buffer_free(&text);
}

static void test_signed_numbers(void **state)
{
    struct bw_json json = start(false);
    bw_json_begin_array(&json, NULL);
    bw_json_signed(&json, NULL, 0);
    bw_json_signed(&json, NULL, -1);
    bw_json_signed(&json, NULL, INT64_MAX);
    bw_json_signed(&json, NULL, INT64_MIN);
    bw_json_end(&json);
    expect_text("[0,-1,9223372036854775807,-9223372036854775808]");
}
