/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for a terminal: the text of the HTML that the other files make, which has no other
 * source. Names from images are safe to print in it, and only their markup was escaped.
 */
#include "cli/report/report.h"

#include <string.h>

#include "draw/markup.h"

/* Whether a tag, without its '<', has the name of an element. */
static bool is_tag(const char *tag, size_t length, const char *name)
{
    const size_t end = strlen(name);
    return length > end && strncmp(tag, name, end) == 0 && (tag[end] == '>' || tag[end] == ' ');
}

void report_text(struct bw_buffer *text, const char *page)
{
    static const char *const skipped[] = {"svg", "details", "table"};
    static const char *const lines[] = {"p", "h1", "h2", "div", "li", "header", "section"};
    const char *ending = NULL; /* the element that is skipped */
    for (size_t length; *page; page += length) {
        const char *stop = *page == '<' ? strchr(page, '>') : NULL;
        const bool is_end = *page == '<' && page[1] == '/';
        length = stop ? (size_t)(stop - page) + 1 : 1;
        if (ending) {
            if (is_end && is_tag(page + 2, length - 2, ending))
                ending = NULL;
        } else if (*page == '<') {
            for (size_t i = 0; !is_end && i < sizeof skipped / sizeof *skipped; i++)
                if (is_tag(page + 1, length - 1, skipped[i]))
                    ending = skipped[i];
            if (is_tag(page + 1, length - 1, "li"))
                bw_buffer_format(text, "- ");
            else if (is_tag(page + 1, length - 1, "h2"))
                bw_buffer_format(text, "\n");
            else if (is_end && is_tag(page + 2, length - 2, "dt"))
                bw_buffer_format(text, ": ");
            const char last = text->length ? text->data[text->length - 1] : '\n';
            for (size_t i = 0; is_end && last != '\n' && i < sizeof lines / sizeof *lines; i++)
                if (is_tag(page + 2, length - 2, lines[i]))
                    bw_buffer_append_byte(text, '\n');
        } else if (*page != '\n') {
            length = bw_markup_decode(text, page);
        }
    }
}
