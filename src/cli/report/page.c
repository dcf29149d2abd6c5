/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of HTML: sections, tables, lists. These functions escape all text. */
#include "cli/report/report.h"

#include <inttypes.h>

#include "base/human.h"
#include "btrfs-walk/record.h"
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

void report_size(struct bw_buffer *page, uint64_t size)
{
    char text[BW_SIZE_ROOM];
    bw_buffer_append(page, text, (size_t)(bw_write_size(text, size, false) - text));
}

/* The member of a column. The names in plan->columns are valid. */
static const struct bw_member *member_of(const struct cmd_format_plan *plan, unsigned column)
{
    const struct bw_record *record = bw_record_find(plan->record);
    const char *name = plan->columns;
    for (; column; column--)
        name += strcspn(name, ",") + 1;
    return &record->members[bw_record_member(record, name, strcspn(name, ","))];
}

static void append_row(struct bw_buffer *page, const struct cmd_format_plan *plan, const char *line,
                       size_t length, bool heading)
{
    const char *const tag = heading ? "th" : "td";
    const size_t seconds = strlen("T12:34:56");
    bw_buffer_format(page, "<tr>");
    for (unsigned column = 0;; column++) {
        const char *end = memchr(line, '\t', length);
        const size_t cell = end ? (size_t)(end - line) : length;
        const struct bw_member *member = member_of(plan, column);
        const bool is_time = member->format == BW_FORMAT_TIME;
        const bool is_integer = member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64;
        bw_buffer_format(page, "<%s%s>", tag, is_integer && !is_time ? " class=\"n\"" : "");
        /* a date is shown without fractions of a second */
        const char *clock = is_time ? memchr(line, 'T', cell) : NULL;
        if (clock && (size_t)(line + cell - clock) > seconds && clock[seconds] == '.') {
            bw_markup_text(page, line, (size_t)(clock - line));
            bw_buffer_format(page, " ");
            bw_markup_text(page, clock + 1, seconds - 1);
            bw_buffer_format(page, " UTC");
        } else {
            bw_markup_text(page, line, cell);
        }
        bw_buffer_format(page, "</%s>", tag);
        if (!end)
            break;
        line = end + 1;
        length -= cell + 1;
    }
    bw_buffer_format(page, "</tr>\n");
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

void report_table(struct bw_buffer *page, const struct cmd_format_plan *plan,
                  const struct bw_buffer *table, const char *command)
{
    const char *line;
    size_t at = 0, length, rows = 0;
    if (!next_line(table, &at, &line, &length))
        return;
    bw_buffer_format(page, "<div class=\"wide\"><table>\n<thead>");
    append_row(page, plan, line, length, true);
    bw_buffer_format(page, "</thead>\n<tbody>\n");
    for (; next_line(table, &at, &line, &length); rows++)
        if (rows < REPORT_ROWS)
            append_row(page, plan, line, length, false);
    bw_buffer_format(page, "</tbody></table></div>\n");
    if (rows > REPORT_ROWS)
        bw_buffer_format(page,
                         "<p class=\"remark\">The first %d of %zu; all of them: "
                         "<code>btrfs-walk %s</code></p>\n",
                         REPORT_ROWS, rows, command);
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
