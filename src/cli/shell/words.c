/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Splitting a text into commands and words. */
#include "cli/shell/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"

bool shell_words_insert(struct shell_words *words, size_t number, const char *word)
{
    if (!BW_ARRAY_RESERVE(words->items, words->count + 1, words->capacity))
        return false;
    char *copy = strdup(word);
    if (!copy)
        return false;
    memmove(words->items + number + 1, words->items + number,
            (words->count - number) * sizeof *words->items);
    words->items[number] = copy;
    words->items[++words->count] = NULL;
    return true;
}

void shell_words_free(struct shell_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
    *words = (struct shell_words){.count = 0};
}

static const char *unquoted_problem(char byte)
{
    return byte == '>'   ? "the shell cannot write to files; quote '>', or run the command outside"
           : byte == '<' ? "the shell cannot read from files; quote '<', or run the command outside"
           : byte == '|' ? "the shell has no pipes; quote '|', or run the command outside"
           : byte == '&' ? "the shell has no background commands; quote '&'"
           : byte == '`' ? "the shell has no command substitution; quote '`'"
                         : NULL;
}

/* Up to three octal digits. */
static char read_octal(const char **text)
{
    unsigned value = 0;
    for (int i = 0; i < 3 && **text >= '0' && **text <= '7'; i++)
        value = value * 8 + (unsigned)(*(*text)++ - '0');
    return (char)value;
}

/* The byte after a backslash within $'...'. */
static char read_escaped(const char **text)
{
    static const char letters[] = "abefnrtv", bytes[] = "\a\b\033\f\n\r\t\v";
    const char *letter = **text ? strchr(letters, **text) : NULL;
    if (**text >= '0' && **text <= '7')
        return read_octal(text);
    (*text)++;
    return letter ? bytes[letter - letters] : (*text)[-1];
}

/* Reads up to the closing quote. In single quotes, all bytes are literal. In double quotes, a
 * backslash quotes the bytes that sh treats specially. In $'...' ('$'), it begins an escape. */
static bool read_quoted(const char **text, char kind, struct bw_buffer *word)
{
    const char end = kind == '"' ? '"' : '\'';
    while (**text && **text != end) {
        const char *at = *text;
        if (kind == '$' && *at == '\\' && at[1]) {
            *text = at + 1;
            bw_buffer_append_byte(word, read_escaped(text));
            continue;
        }
        if (kind == '"' && *at == '\\' && at[1] && strchr("\"\\$`\n", at[1]))
            at++;
        if (at == *text || *at != '\n')
            bw_buffer_append_byte(word, *at);
        *text = at + 1;
    }
    return *(*text)++ == end;
}

static bool read_part(struct shell_words *words, const char **text, struct bw_buffer *word)
{
    const char *at = *text;
    const char kind = *at == '$' && at[1] == '\'' ? '$' : *at;
    if (kind == '\'' || kind == '"' || kind == '$') {
        if (kind == '$' && at[1] != '\'') {
            bw_buffer_append_byte(word, *(*text)++);
            return true;
        }
        *text = at + 1 + (kind == '$');
        if (read_quoted(text, kind, word))
            return true;
        words->is_unfinished = true;
        words->problem = "a quote is not closed";
        *text = *text - 1; /* the end */
        return false;
    }
    words->problem = unquoted_problem(*at);
    if (kind == '\\' && at[1] == '\n')
        *text = at + 2;
    else if (kind == '\\' && at[1])
        bw_buffer_append_byte(word, at[1]), *text = at + 2;
    else
        bw_buffer_append_byte(word, *(*text)++);
    return !words->problem;
}

static bool is_end(char byte)
{
    return !byte || byte == '\n' || byte == ';';
}

static bool read_word(struct shell_words *words, const char **text)
{
    BW_AUTO_BUFFER struct bw_buffer word = {0};
    bool good = true;
    words->last = *text;
    while (good && !is_end(**text) && **text != ' ' && **text != '\t')
        good = read_part(words, text, &word);
    if (!good && !words->is_unfinished)
        return false;
    bw_buffer_append_byte(&word, '\0');
    if (word.failed || !shell_words_insert(words, words->count, word.data)) {
        words->problem = "out of memory";
        return false;
    }
    words->is_open = !**text;
    return good;
}

bool shell_words_read(struct shell_words *words, const char **text)
{
    bool good = true;
    while (good) {
        *text += strspn(*text, " \t");
        if (**text == '#')
            *text += strcspn(*text, "\n");
        if (is_end(**text))
            break;
        good = read_word(words, text);
    }
    *text += good && **text;
    return good;
}
