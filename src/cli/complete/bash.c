/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses a command line of bash into words without quotes, and quotes the completions. Source: the
 * chapters "Quoting" and "Programmable Completion" of the manual of bash.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/complete/complete.h"

/* The parser of a line. */
struct reading {
    struct bash_line *line;
    const char *breaks;
    char *end; /* end of the current word */
    bool begun;
};

static void add_byte(struct reading *reading, char byte)
{
    *reading->end++ = byte;
    *reading->end = '\0';
    reading->begun = true;
}

/* bash will replace the part of the last word after this position. */
static void cut_here(struct reading *reading)
{
    const struct bash_line *line = reading->line;
    reading->line->cut = (size_t)(reading->end - line->words[line->count]);
}

/* Within double quotes, a backslash is removed only before characters that it quotes. */
static const char *read_quoted(struct reading *reading, const char *at)
{
    const char quote = reading->line->quote;
    if (*at == quote) {
        reading->line->quote = '\0';
        cut_here(reading);
    } else if (quote == '"' && *at == '\\' && at[1] && strchr("\\\"$`", at[1])) {
        add_byte(reading, *++at);
    } else {
        add_byte(reading, *at);
    }
    return at + 1;
}

static const char *read_plain(struct reading *reading, const char *at)
{
    if (*at == '\'' || *at == '"') {
        reading->line->quote = *at;
        reading->begun = true;
        cut_here(reading);
    } else if (*at == '\\') {
        if (at[1])
            add_byte(reading, *++at);
    } else if (strchr(" \t\n", *at)) {
        if (reading->begun)
            reading->line->words[++reading->line->count] = ++reading->end;
        reading->begun = false;
        reading->line->cut = 0;
    } else {
        add_byte(reading, *at);
        if (strchr(reading->breaks, *at))
            cut_here(reading);
    }
    return at + 1;
}

bool bash_line_read(struct bash_line *line, const char *text, const char *breaks)
{
    size_t length = strlen(text);
    /* The words together are no longer than the line; each ends with a NUL. */
    char *bytes = calloc(2 * length + 2, 1);
    *line = (struct bash_line){.words = calloc(length + 3, sizeof *line->words)};
    if (!bytes || !line->words) {
        free(bytes);
        free(line->words);
        *line = (struct bash_line){0};
        return false;
    }
    line->words[0] = bytes;
    struct reading reading = {line, breaks, bytes, false};
    while (*text) {
        if (line->quote)
            text = read_quoted(&reading, text);
        else
            text = read_plain(&reading, text);
    }
    line->count++;
    return true;
}

void bash_line_free(struct bash_line *line)
{
    if (line->words)
        free(line->words[0]);
    free(line->words);
}

/* Writes a word as $'...', the only form for control characters that readline does not
 * interpret. */
static void append_escaped(struct bw_buffer *text, const char *word, size_t length)
{
    bw_buffer_format(text, "$'");
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)word[i] < ' ' || word[i] == 127)
            bw_buffer_format(text, "\\%03o", (unsigned char)word[i]);
        else if (strchr("\\'", word[i]))
            bw_buffer_format(text, "\\%c", word[i]);
        else
            bw_buffer_append_byte(text, word[i]);
    }
    bw_buffer_append_byte(text, '\'');
}

static bool has_control(const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)word[i] < ' ' || word[i] == 127)
            return true;
    return false;
}

/* Closes double quotes around a '!', which would recall a line from the history even there. */
static void append_byte(struct bw_buffer *text, char byte, char quote)
{
    static const char special[] = " \\'\"`$&|;()<>*?[]{}!#~";
    if (quote == '\'' && byte == '\'')
        bw_buffer_format(text, "'\\''");
    else if (quote == '"' && byte == '!')
        bw_buffer_format(text, "\"'!'\"");
    else if ((quote == '"' && strchr("\\\"$`", byte)) || (!quote && strchr(special, byte)))
        bw_buffer_format(text, "\\%c", byte);
    else
        bw_buffer_append_byte(text, byte);
}

void bash_append_quoted(struct bw_buffer *text, const char *word, size_t length, char quote)
{
    if (!quote && has_control(word, length)) {
        append_escaped(text, word, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        append_byte(text, word[i], quote);
}
