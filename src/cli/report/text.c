/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for a terminal: the text of the HTML that the other files make, which has no other
 * source. Names from images are safe to print in it, and only their markup was escaped.
 */
#include "cli/report/report.h"

/* Whether a tag, without its '<', has the name of an element. */
static bool is_tag(const char *tag, size_t length, const char *name)
{
    const size_t end = strlen(name);
    return length > end && strncmp(tag, name, end) == 0 && (tag[end] == '>' || tag[end] == ' ');
}

static void append_entity(struct bw_buffer *text, const char *entity, size_t length)
{
    static const struct {
        const char *name, character;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (strlen(entities[i].name) == length && memcmp(entity, entities[i].name, length) == 0)
            bw_buffer_append_byte(text, entities[i].character);
}

void report_text(struct bw_buffer *text, const struct bw_buffer *page)
{
    static const char *const skipped[] = {"svg", "details", "table"};
    static const char *const lines[] = {"p", "h1", "h2", "div", "li", "header", "section"};
    const char *ending = NULL; /* the element that is skipped */
    for (size_t at = 0; at < page->length;) {
        const char *next = page->data + at, *stop = NULL;
        if (*next == '<')
            stop = memchr(next, '>', page->length - at);
        else if (*next == '&')
            stop = memchr(next, ';', page->length - at);
        const size_t length = stop ? (size_t)(stop - next) + 1 : 1;
        at += length;
        const bool is_end = *next == '<' && next[1] == '/';
        if (ending) {
            if (is_end && is_tag(next + 2, length - 2, ending))
                ending = NULL;
        } else if (*next == '&') {
            append_entity(text, next, length);
        } else if (*next == '<') {
            for (size_t i = 0; !is_end && i < sizeof skipped / sizeof *skipped; i++)
                if (is_tag(next + 1, length - 1, skipped[i]))
                    ending = skipped[i];
            if (is_tag(next + 1, length - 1, "li"))
                bw_buffer_format(text, "- ");
            else if (is_tag(next + 1, length - 1, "h2"))
                bw_buffer_format(text, "\n");
            else if (is_end && is_tag(next + 2, length - 2, "dt"))
                bw_buffer_format(text, ": ");
            const char last = text->length ? text->data[text->length - 1] : '\n';
            for (size_t i = 0; is_end && last != '\n' && i < sizeof lines / sizeof *lines; i++)
                if (is_tag(next + 2, length - 2, lines[i]))
                    bw_buffer_append_byte(text, '\n');
        } else if (*next != '\n') {
            bw_buffer_append_byte(text, *next);
        }
    }
}
