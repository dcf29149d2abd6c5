/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of HTML: sections, tables, lists. These functions escape all text. */
#include "cli/report/report.h"

#include "draw/markup.h"

void report_section(struct bw_buffer *page, const char *id, const char *heading)
{
    bw_buffer_format(page, "<section id=\"%s\">\n<h2>%s</h2>\n", id, heading);
}

void report_section_end(struct bw_buffer *page)
{
    bw_buffer_format(page, "</section>\n");
}

void report_remark(struct bw_buffer *page, const char *text)
{
    bw_buffer_format(page, "<p class=\"remark\">");
    bw_markup_text(page, text, strlen(text));
    bw_buffer_format(page, "</p>\n");
}

/* The classes of cells. */
static const char *const classes[] = {
    [REPORT_SHORT] = "", [REPORT_NUMBER] = " class=\"n\"", [REPORT_LONG] = " class=\"w\""};

void report_table_begin(struct bw_buffer *page, const struct report_column *columns)
{
    bw_buffer_format(page, "<div class=\"wide\"><table>\n<thead><tr>");
    for (; columns->heading; columns++) {
        bw_buffer_format(page, "<th%s>%s</th>", classes[columns->form], columns->heading);
    }
    bw_buffer_format(page, "</tr></thead>\n<tbody>\n");
}

void report_table_end(struct bw_buffer *page, size_t rows, const char *command)
{
    bw_buffer_format(page, "</tbody></table></div>\n");
    if (rows > REPORT_ROWS)
        bw_buffer_format(page,
                         "<p class=\"remark\">The first %d of %zu; all of them: "
                         "<code>btrfs-walk %s</code></p>\n",
                         REPORT_ROWS, rows, command);
}

/* Finds the next line of a text, without its newline, and advances `at` beyond it. */
static bool next_line(const struct bw_buffer *text, size_t *at, const char **line, size_t *length)
{
    if (*at >= text->length)
        return false;
    *line = text->data + *at;
    const char *end = memchr(*line, '\n', text->length - *at);
    *length = end ? (size_t)(end - *line) : text->length - *at;
    *at += *length + 1;
    return true;
}

void report_table(struct bw_buffer *page, const struct report_column *columns,
                  const struct bw_buffer *table, const char *command)
{
    const char *line;
    size_t at = 0, length, rows = 0;
    if (!next_line(table, &at, &line, &length)) /* the line of headings */
        return;
    report_table_begin(page, columns);
    for (; next_line(table, &at, &line, &length); rows++) {
        if (rows >= REPORT_ROWS)
            continue;
        bw_buffer_format(page, "<tr>");
        for (unsigned column = 0; line && columns[column].heading; column++) {
            const char *end = memchr(line, '\t', length);
            const size_t cell = end ? (size_t)(end - line) : length;
            bw_buffer_format(page, "<td%s>", classes[columns[column].form]);
            bw_markup_text(page, line, cell);
            bw_buffer_format(page, "</td>");
            line = end ? end + 1 : NULL;
            length -= cell + 1;
        }
        bw_buffer_format(page, "</tr>\n");
    }
    report_table_end(page, rows, command);
}

void report_lines(struct bw_buffer *page, const struct bw_buffer *lines)
{
    const char *line;
    bw_buffer_format(page, "<dl>\n");
    for (size_t at = 0, length; next_line(lines, &at, &line, &length);) {
        const char *colon = memchr(line, ':', length);
        const char *value = colon ? colon + 1 : line + length;
        while (value < line + length && *value == ' ')
            value++;
        if (value == line + length)
            continue;
        bw_buffer_format(page, "<div><dt>");
        bw_markup_text(page, line, (size_t)(colon - line));
        bw_buffer_format(page, "</dt><dd>");
        bw_markup_text(page, value, (size_t)(line + length - value));
        bw_buffer_format(page, "</dd></div>\n");
    }
    bw_buffer_format(page, "</dl>\n");
}
