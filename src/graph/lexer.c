/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lexer of volfiles and probe filters: white space, comments, words, quotes, escapes. */
#include "graph/lexer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct bw_error *bw_place_error(struct bw_text_place at, struct bw_error *error)
{
    if (at.source && at.line)
        return bw_error_prefix(error, "%s:%u:%u", at.source, at.line, at.column);
    if (at.source)
        return bw_error_prefix(error, "%s", at.source);
    return at.column ? bw_error_prefix(error, "column %u", at.column) : error;
}

static bool is_space(char byte)
{
    return byte && strchr(" \t\n\r\v\f", byte);
}

static struct bw_text_place place_at(const struct bw_lexer *lexer, const char *at)
{
    return (struct bw_text_place){lexer->source, lexer->line,
                                  (unsigned)(at - lexer->line_begin) + 1};
}

struct bw_error *bw_lexer_open(const struct bw_lexer_rules *rules, struct bw_text_place start,
                               const char *text, size_t length, struct bw_lexer *lexer)
{
    *lexer = (struct bw_lexer){.rules = rules,
                               .source = start.source,
                               .line = start.line,
                               .next = text,
                               .end = text + length,
                               .line_begin = text};
    /* No word is longer than what it is written as, and each needs a NUL byte after it. */
    lexer->words = lexer->free = malloc(2 * length + 1);
    return lexer->words ? NULL : bw_error_no_memory();
}

void bw_lexer_close(struct bw_lexer *lexer)
{
    free(lexer->words);
    lexer->words = lexer->free = NULL;
}

static void skip_space(struct bw_lexer *lexer)
{
    while (lexer->next < lexer->end && is_space(*lexer->next)) {
        bool newline = *lexer->next++ == '\n';
        if (newline && lexer->line) {
            lexer->line++;
            lexer->line_begin = lexer->next;
        }
    }
}

/* The value of a hexadecimal digit; -1 if it is none. */
static int digit_value(char digit)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = digit ? strchr(digits, digit) : NULL;
    return found ? (int)((found - digits) % 16) : -1;
}

/* Reads an escape sequence after its backslash; false if it is invalid. */
static bool read_escape(struct bw_lexer *lexer)
{
    static const char names[] = "\"\\nrt", meant[] = "\"\\\n\r\t";
    const char *next = lexer->next, *found = next < lexer->end && *next ? strchr(names, *next) : 0;
    if (found) {
        *lexer->free++ = meant[found - names];
        lexer->next++;
        return true;
    }
    if (lexer->end - next < 3 || *next != 'x')
        return false;
    int high = digit_value(next[1]), low = digit_value(next[2]);
    if (high < 0 || low < 0)
        return false;
    *lexer->free++ = (char)(high << 4 | low);
    lexer->next += 3;
    return true;
}

/* Whether the next byte can continue a quoted word. */
static bool is_open(const struct bw_lexer *lexer)
{
    return lexer->next < lexer->end && !(lexer->rules->one_line && *lexer->next == '\n');
}

static struct bw_error *read_quoted(struct bw_lexer *lexer)
{
    const char *begin = lexer->next++;
    for (; is_open(lexer) && *lexer->next != '"';) {
        const char *at = lexer->next++;
        if (*at != '\\')
            *lexer->free++ = *at;
        else if (!read_escape(lexer))
            return BW_REFUSE(
                place_at(lexer, at),
                "expected \\\", \\\\, \\n, \\r, \\t or \\xHH after a backslash in quotes");
    }
    if (!is_open(lexer))
        return BW_REFUSE(
            place_at(lexer, begin), "the quote that begins here does not end%s",
            lexer->rules->one_line ? " in its line (a newline in quotes is written \\n)" : "");
    lexer->next++;
    return NULL;
}

static bool read_symbol(struct bw_lexer *lexer, struct bw_token *token)
{
    const char *const *symbols = lexer->rules->symbols;
    for (size_t i = 0; symbols && symbols[i]; i++) {
        size_t length = strlen(symbols[i]);
        if (length > (size_t)(lexer->end - lexer->next) ||
            memcmp(lexer->next, symbols[i], length) != 0)
            continue;
        token->kind = BW_TOKEN_SYMBOL;
        token->symbol = i;
        lexer->free = mempcpy(lexer->free, symbols[i], length);
        lexer->next += length;
        return true;
    }
    return false;
}

struct bw_error *bw_lexer_next(struct bw_lexer *lexer, const char *ends, struct bw_token *token)
{
    const char *before = lexer->next;
    skip_space(lexer);
    while (lexer->rules->comment && lexer->next < lexer->end &&
           *lexer->next == lexer->rules->comment) {
        while (lexer->next < lexer->end && *lexer->next != '\n')
            lexer->next++;
        skip_space(lexer);
    }
    *token = (struct bw_token){.text = "",
                               .at = place_at(lexer, lexer->next),
                               .adjacent = lexer->next == before && lexer->started};
    if (lexer->next == lexer->end)
        return NULL;
    lexer->started = true;
    token->text = lexer->free;
    if (*lexer->next == '"') {
        token->kind = BW_TOKEN_QUOTED;
        BW_TRY(read_quoted(lexer));
    } else if (!read_symbol(lexer, token)) {
        /* The first byte always belongs to the word, so that reading makes progress. */
        token->kind = BW_TOKEN_WORD;
        do
            *lexer->free++ = *lexer->next++;
        while (lexer->next < lexer->end && !is_space(*lexer->next) &&
               !(*lexer->next && strchr(ends, *lexer->next)));
    }
    token->length = (size_t)(lexer->free - token->text);
    *lexer->free++ = '\0';
    return NULL;
}
