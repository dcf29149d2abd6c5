/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the bytes of a volfile to words: white space, comments, quotes, escapes. */
#include "graph/lexer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define WHITE_SPACE " \t\n\r\v\f"

static bool is_space(char byte)
{
    return byte && strchr(WHITE_SPACE, byte);
}

static struct bw_place place(const struct bw_lexer *lexer, const char *at)
{
    return (struct bw_place){lexer->source, lexer->line, (unsigned)(at - lexer->line_start) + 1};
}

/* Takes one byte and counts lines. */
static char take(struct bw_lexer *lexer)
{
    char byte = *lexer->next++;
    if (byte == '\n') {
        lexer->line++;
        lexer->line_start = lexer->next;
    }
    return byte;
}

struct bw_error *bw_lexer_open(const char *source, const char *text, size_t length,
                               struct bw_lexer *lexer)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some editors begin a file with it; it cannot be
                                                  seen */
    size_t skipped = length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    *lexer =
        (struct bw_lexer){source, text + skipped, text + length, text + skipped, 1, NULL, NULL};
    const char *zero = length ? memchr(text, '\0', length) : NULL;
    if (zero) {
        while (lexer->next < zero)
            take(lexer);
        return BW_REFUSE(place(lexer, zero), "a NUL byte: this is no volfile");
    }
    /* No word is longer than what it is written as, and white space leaves room for the NUL behind
     * it. */
    lexer->words = lexer->free = malloc(length + 1);
    return lexer->words ? NULL : bw_error_no_memory();
}

void bw_lexer_close(struct bw_lexer *lexer)
{
    free(lexer->words);
    lexer->words = lexer->free = NULL;
}

/* White space and comments. A word has ended wherever this is called, so a `#` found here begins
 * one. */
static void skip(struct bw_lexer *lexer)
{
    while (lexer->next < lexer->end && (is_space(*lexer->next) || *lexer->next == '#')) {
        if (*lexer->next == '#')
            while (lexer->next < lexer->end && *lexer->next != '\n')
                lexer->next++;
        else
            take(lexer);
    }
}

static struct bw_error *read_plain(struct bw_lexer *lexer)
{
    for (; lexer->next < lexer->end && !is_space(*lexer->next); lexer->next++) {
        if (*lexer->next == '"')
            return BW_REFUSE(
                place(lexer, lexer->next),
                "a quote inside a word: quotes go around the whole word, and a quote in them is "
                "written \\\"");
        *lexer->free++ = *lexer->next;
    }
    return NULL;
}

/* The value of a hexadecimal digit; -1: it is none. */
static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* What stands behind \x. `begin` is the backslash. */
static struct bw_error *read_hexadecimal(struct bw_lexer *lexer, const char *begin)
{
    int value = 0;
    for (int i = 0; i < 2; i++) {
        int digit = lexer->next < lexer->end ? digit_value(*lexer->next) : -1;
        if (digit < 0)
            return BW_REFUSE(place(lexer, begin), "\\x needs two hexadecimal digits behind it");
        value = value * 16 + digit;
        lexer->next++;
    }
    if (!value)
        return BW_REFUSE(place(lexer, begin), "\\x00: a word cannot hold a NUL byte");
    *lexer->free++ = (char)value;
    return NULL;
}

/* What stands behind a backslash. */
static struct bw_error *read_escape(struct bw_lexer *lexer)
{
    const char *begin = lexer->next - 1;
    char byte = lexer->next < lexer->end ? *lexer->next++ : '\n';
    switch (byte) {
    case '"':
    case '\\':
        *lexer->free++ = byte;
        return NULL;
    case 'n':
        *lexer->free++ = '\n';
        return NULL;
    case 't':
        *lexer->free++ = '\t';
        return NULL;
    case 'x':
        return read_hexadecimal(lexer, begin);
    default:
        return BW_REFUSE(
            place(lexer, begin),
            "a backslash in quotes begins one of \\\" \\\\ \\n \\t \\xHH, and nothing else");
    }
}

/* A quoted word ends in the line it begins in: otherwise a forgotten quote would be noticed far
 * away. */
static struct bw_error *read_quoted(struct bw_lexer *lexer)
{
    const char *begin = lexer->next++;
    while (lexer->next < lexer->end && *lexer->next != '"' && *lexer->next != '\n') {
        char byte = *lexer->next++;
        if (byte == '\\')
            BW_TRY(read_escape(lexer));
        else
            *lexer->free++ = byte;
    }
    if (lexer->next == lexer->end || *lexer->next == '\n')
        return BW_REFUSE(
            place(lexer, begin),
            "the quote is not closed in its line (a newline in quotes is written \\n)");
    lexer->next++;
    if (lexer->next < lexer->end && !is_space(*lexer->next))
        return BW_REFUSE(place(lexer, lexer->next), "white space must follow the closing quote");
    return NULL;
}

struct bw_error *bw_lexer_next(struct bw_lexer *lexer, struct bw_token *token)
{
    skip(lexer);
    *token = (struct bw_token){BW_TOKEN_END, "", place(lexer, lexer->next)};
    if (lexer->next == lexer->end)
        return NULL;
    token->kind = *lexer->next == '"' ? BW_TOKEN_QUOTED : BW_TOKEN_WORD;
    token->text = lexer->free;
    BW_TRY(token->kind == BW_TOKEN_QUOTED ? read_quoted(lexer) : read_plain(lexer));
    *lexer->free++ = '\0';
    return NULL;
}
