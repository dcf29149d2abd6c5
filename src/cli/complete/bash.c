/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses a command line of bash into words without quotes, and quotes the completions. Source: the
 * chapters "Quoting" and "Programmable Completion" of the manual of bash.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/complete/complete.h"

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
    char *end = bytes; /* of the current word */
    bool begun = false;
    for (const char *at = text; *at; at++) {
        const char quote = line->quote;
        bool cuts = false; /* bash will replace the part of the last word after this position */
        if (quote && *at == quote) {
            line->quote = '\0';
            cuts = true;
        } else if (!quote && (*at == '\'' || *at == '"')) {
            line->quote = *at;
            begun = cuts = true;
        } else if (!quote && strchr(" \t\n", *at)) {
            if (begun)
                line->words[++line->count] = ++end;
            begun = false;
            line->cut = 0;
        } else if (quote || *at != '\\' || at[1]) {
            /* Within double quotes, a backslash is removed only before characters that it quotes.
             */
            const bool escapes =
                *at == '\\' && (!quote || (quote == '"' && at[1] && strchr("\\\"$`", at[1])));
            at += escapes;
            *end++ = *at;
            *end = '\0';
            begun = true;
            cuts = !quote && !escapes && strchr(breaks, *at);
        }
        if (cuts)
            line->cut = (size_t)(end - line->words[line->count]);
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

void bash_append_quoted(struct bw_buffer *text, const char *word, size_t length, char quote)
{
    static const char special[] = " \\'\"`$&|;()<>*?[]{}!#~";
    bool has_control = false;
    for (size_t i = 0; i < length; i++)
        has_control |= (unsigned char)word[i] < ' ' || word[i] == 127;
    if (has_control && !quote) {
        /* The only form for control characters that readline does not interpret. */
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
        return;
    }
    for (size_t i = 0; i < length; i++) {
        const char byte = word[i];
        if (quote == '\'' && byte == '\'')
            bw_buffer_format(text, "'\\''");
        else if (quote == '"' && byte == '!') /* it would recall a line even in double quotes */
            bw_buffer_format(text, "\"'!'\"");
        else if ((quote == '"' && strchr("\\\"$`", byte)) || (!quote && strchr(special, byte)))
            bw_buffer_format(text, "\\%c", byte);
        else
            bw_buffer_append_byte(text, byte);
    }
}
