/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Escaping for terminals: no name may move the cursor or change a colour. */
#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

/* Control characters that are encoded in two bytes: U+0080 to U+009F. */
static bool is_control(const uint8_t *bytes, size_t length)
{
    return length == 1 ? bytes[0] < 0x20 || bytes[0] == 0x7f : bytes[0] == 0xc2 && bytes[1] < 0xa0;
}

void bw_escape_append(struct bw_buffer *buffer, const void *bytes, size_t length)
{
    static const char names[] = "abtnvfr"; /* of the bytes from 7 on */
    for (const uint8_t *next = bytes; length;) {
        const size_t sequence = bw_utf8_length(next, length);
        if (sequence && !is_control(next, sequence) && *next != ' ' && *next != '\\') {
            bw_buffer_append(buffer, next, sequence);
            next += sequence;
            length -= sequence;
            continue;
        }
        const uint8_t byte = *next++;
        length--;
        char text[4] = {'\\'};
        if (byte == ' ' || byte == '\\') {
            text[1] = (char)byte;
        } else if (byte >= 7 && byte <= 13) {
            text[1] = names[byte - 7];
        } else {
            text[1] = (char)('0' + (byte >> 6));
            text[2] = (char)('0' + (byte >> 3 & 7));
            text[3] = (char)('0' + (byte & 7));
        }
        bw_buffer_append(buffer, text, text[2] ? 4 : 2);
    }
}

void bw_escape_line(struct bw_buffer *buffer, const void *bytes, size_t length)
{
    const uint8_t *next = bytes;
    while (length && bw_buffer_reserve(buffer, length)) {
        const uint8_t *end = next + length;
        char *at = buffer->data + buffer->length;
        while (next < end && *next >= ' ' && *next < 0x7f && *next != '\\')
            *at++ = (char)*next++;
        buffer->length = (size_t)(at - buffer->data);
        const uint8_t *rest = next;
        while (next < end && (*next < ' ' || *next >= 0x7f || *next == '\\'))
            next++;
        bw_escape_append(buffer, rest, (size_t)(next - rest));
        length = (size_t)(end - next);
    }
}

void bw_escape_words(struct bw_buffer *buffer, const char *message)
{
    bw_escape_line(buffer, message, strlen(message));
}

/* Whether a terminal could obey, or could not show, the bytes of a word. */
static bool needs_escapes(const char *word)
{
    bool control = !bw_utf8_is_valid(word, strlen(word));
    for (; *word && !control; word++)
        control = (uint8_t)*word < ' ' || *word == 0x7f ||
                  ((uint8_t)*word == 0xc2 && (uint8_t)word[1] < 0xa0);
    return control;
}

void bw_append_shell_word(struct bw_buffer *buffer, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789/._-+:=@%,";
    const bool quoted = word[strspn(word, plain)] != '\0' || !*word, control = needs_escapes(word);
    bw_buffer_append(buffer, "$", control);
    bw_buffer_append(buffer, "'", quoted);
    for (; *word; word++)
        if (control && ((uint8_t)*word < ' ' || (uint8_t)*word >= 0x7f))
            bw_buffer_format(buffer, "\\%03o", (uint8_t)*word);
        else if (control && (*word == '\'' || *word == '\\'))
            bw_buffer_format(buffer, "\\%c", *word);
        else if (*word == '\'')
            bw_buffer_append(buffer, "'\"'\"'", 5);
        else
            bw_buffer_append_byte(buffer, *word);
    bw_buffer_append(buffer, "'", quoted);
}
