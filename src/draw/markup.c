/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Escapes text for HTML and SVG. */
#include "draw/markup.h"

#include <inttypes.h>

#include "base/escape.h"
#include "base/utf8.h"

/* Characters that are invisible, or change the display of others, and those that XML excludes.
 * Source: the Unicode standard, characters of the categories Cc, Cf, Zl and Zp. */
static bool is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {{0x00, 0x1f},       {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},
                  {0x115f, 0x1160},   {0x180b, 0x180f},  {0x200b, 0x200f}, {0x2028, 0x202e},
                  {0x2060, 0x206f},   {0x3164, 0x3164},  {0xfdd0, 0xfdef}, {0xfe00, 0xfe0f},
                  {0xfeff, 0xfeff},   {0xfff0, 0xfffb},  {0xfffe, 0xffff}, {0x1bca0, 0x1bca3},
                  {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return (code & 0xfffe) == 0xfffe;
}

/* Entities of XML. If a character has two, the first one is written. */
static const struct {
    const char *name, character;
} entities[] = {{"&amp;", '&'},  {"&lt;", '<'},   {"&gt;", '>'},
                {"&quot;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}};

void bw_markup_text(struct bw_buffer *text, const char *bytes, size_t length)
{
    const uint8_t *next = (const uint8_t *)bytes;
    for (size_t step; length; next += step, length -= step) {
        const size_t sequence = bw_utf8_length(next, length);
        step = sequence ? sequence : 1;
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof *entities && !entity; i++)
            if (entities[i].character == (char)*next)
                entity = entities[i].name;
        const uint32_t code = sequence ? bw_utf8_decode(next, sequence) : 0;
        if (entity)
            bw_buffer_append(text, entity, strlen(entity));
        else if (!sequence)
            bw_buffer_format(text, "\\%03o", *next);
        else if (is_invisible(code))
            bw_buffer_format(text, "\\u{%" PRIx32 "}", code);
        else
            bw_buffer_append(text, next, step);
    }
}

void bw_markup_bytes(struct bw_buffer *text, const char *bytes, size_t length)
{
    struct bw_buffer BW_AUTO_BUFFER escaped = {0};
    bw_escape_line(&escaped, bytes, length);
    text->failed |= escaped.failed;
    bw_markup_text(text, escaped.data, escaped.length);
}

size_t bw_markup_decode(struct bw_buffer *decoded, const char *text)
{
    for (size_t i = 0; *text == '&' && i < sizeof entities / sizeof *entities; i++)
        if (strncmp(text, entities[i].name, strlen(entities[i].name)) == 0) {
            bw_buffer_append_byte(decoded, entities[i].character);
            return strlen(entities[i].name);
        }
    bw_buffer_append_byte(decoded, *text);
    return 1;
}
