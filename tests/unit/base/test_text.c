/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/base: bytes and cells as text, words of a shell, suggestions, bitmaps, proportions. */
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hex_dump.h"
#include "base/nearest.h"
#include "base/scale.h"
#include "base/table.h"
#include "support/walk_helpers.h"

static void expect_text(struct bw_buffer *text, const char *expected)
{
    assert_string_equal(bw_buffer_text(text), expected);
    text->length = 0;
}

static void test_hex_dump(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    uint8_t bytes[6 * 16] = "\x1f ~\x7f";
    bw_hex_dump(&text, "", 0, bytes, 0);
    expect_text(&text, "");
    bw_hex_dump(&text, "  ", 0x7fffffff0, bytes, 5);
    expect_text(&text, "  7fffffff0  1f 20 7e 7f 00                                    |. ~..|\n");
    bw_hex_dump(&text, "", UINT64_MAX - 15, bytes, 16);
    expect_text(&text, "fffffffffffffff0  1f 20 7e 7f 00 00 00 00  00 00 00 00 00 00 00 00  "
                       "|. ~.............|\n");
    /* A star replaces repeated lines, but never the last line. */
    bytes[4 * 16] = 'x';
    bw_hex_dump(&text, "", 0, bytes, sizeof bytes);
    expect_text(&text,
                "00000000  1f 20 7e 7f 00 00 00 00  00 00 00 00 00 00 00 00  |. ~.............|\n"
                "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
                "*\n"
                "00000040  78 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |x...............|\n"
                "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
    bw_hex_dump(&text, "", 0, bytes + 16, 32);
    expect_text(&text,
                "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
                "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
}

/* Widths are those of characters, and the last line needs no line feed. */
static void test_tables(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer cells = {0}, text = {0};
    struct bw_table_column columns[3] = {{0, false}, {0, true}, {0, false}};
    bw_table_append(&text, &cells, columns);
    assert_int_equal(text.length, 0);
    static const char lines[] = "name\tsize\tlast\n\xc3\xa4\t7\t\nshort\n\t12345\tx";
    bw_buffer_append(&cells, lines, sizeof lines - 1);
    bw_table_append(&text, &cells, columns);
    expect_text(&text, "name    size  last\n"
                       "\xc3\xa4          7  \n"
                       "short\n"
                       "       12345  x\n");
    cells.failed = true; /* parts of the cells are missing */
    bw_table_append(&text, &cells, columns);
    assert_true(text.failed);
}

static void test_shell_words(void **state)
{
    static const struct {
        const char *word, *quoted;
    } cases[] = {
        {"/mnt/a-b_c.img", "/mnt/a-b_c.img"},
        {"", "''"},
        {"a b", "'a b'"},
        {"$(reboot)", "'$(reboot)'"},
        {"it's", "'it'\"'\"'s'"},
        {"back\\slash", "'back\\slash'"},
        {"\xc3\xa4", "'\xc3\xa4'"},
        {"a\nb", "$'a\\012b'"},
        {"\x7f", "$'\\177'"},
        {"\xc2\x9b", "$'\\302\\233'"}, /* a control character of two bytes */
        {"\xc2\xa9", "'\xc2\xa9'"},    /* a character that begins like one */
        {"\xff", "$'\\377'"},          /* not UTF-8 */
        {"\x1b'\\ ", "$'\\033\\'\\\\ '"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        bw_append_shell_word(&text, cases[i].word);
        expect_text(&text, cases[i].quoted);
    }
}

static void test_suggestions(void **state)
{
    assert_true(bw_is_suggestion("chekc", "check"));
    assert_true(bw_is_suggestion("extr", "extract"));
    assert_false(bw_is_suggestion("", "check"));
    assert_false(bw_is_suggestion("mount", "check"));
    /* Only words of up to 64 letters are compared. */
    char wanted[80], candidate[80];
    memset(wanted, 'a', sizeof wanted);
    memset(candidate, 'a', sizeof candidate);
    candidate[0] = 'b';
    wanted[64] = candidate[64] = '\0';
    assert_true(bw_is_suggestion(wanted, candidate));
    wanted[64] = 'a';
    wanted[65] = '\0';
    assert_false(bw_is_suggestion(wanted, candidate));
    assert_true(bw_is_suggestion(candidate, wanted + 1));
    assert_true(bw_is_suggestion("a", wanted)); /* its beginning */
}

static void test_bitmaps(void **state)
{
    static const uint8_t bytes[] = {0x0e, 0x80, 0x01, 0xff};
    uint32_t bit = 0, first;
    assert_true(bw_bits_next(bytes, 32, &bit, &first));
    assert_true(first == 1 && bit == 4);
    assert_true(bw_bits_next(bytes, 32, &bit, &first)); /* across bytes */
    assert_true(first == 15 && bit == 17);
    assert_true(bw_bits_next(bytes, 28, &bit, &first)); /* up to the end */
    assert_true(first == 24 && bit == 28);
    assert_false(bw_bits_next(bytes, 28, &bit, &first));
    bit = 0;
    assert_false(bw_bits_next(bytes, 1, &bit, &first));
}

static void test_proportions(void **state)
{
    static const uint64_t large = UINT64_MAX, half = UINT64_C(1) << 63;
    static const struct {
        uint64_t value, factor, divisor, result;
    } cases[] = {
        {10, 3, 4, 7},
        {1, 1, 0, UINT64_MAX},
        {0, large, large, 0},
        {large, large, large, large},
        {large, large - 1, large, large - 1},
        {large - 1, large - 1, large, large - 2},
        {large, 2, 4, half - 1},
        {large, 2, 1, UINT64_MAX}, /* too large while the value is added */
        {half, 4, 1, UINT64_MAX},  /* while the result is doubled */
        {half, half, half, half},
        {large, large, 2, UINT64_MAX},
        {3, large, 3, large},
        {3, large, 2, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_true(bw_scale(cases[i].value, cases[i].factor, cases[i].divisor) == cases[i].result);
    /* Small numbers, where the machine can compute it. */
    for (uint64_t value = 0; value < 40; value++)
        for (uint64_t factor = 0; factor < 40; factor++)
            for (uint64_t divisor = 1; divisor < 40; divisor++)
                assert_int_equal(bw_scale(value, factor, divisor), value * factor / divisor);
}
