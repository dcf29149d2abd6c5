/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligning cells. The width of a cell is its number of characters. */
#include "base/table.h"

#include "base/utf8.h"

/* Finds the next cell and advances `text` beyond it; `*last`: it is the last of its line. */
static size_t next_cell(const char **text, const char *end, const char **cell, bool *last)
{
    *cell = *text;
    while (*text < end && **text != '\t' && **text != '\n')
        ++*text;
    size_t length = (size_t)(*text - *cell);
    *last = *text == end || **text == '\n';
    *text += *text < end;
    return length;
}

static void measure_columns(const struct bw_buffer *cells, struct bw_table_column *columns)
{
    const char *text = cells->data, *end = text + cells->length, *cell;
    size_t number = 0;
    for (bool last; text < end; number = last ? 0 : number + 1) {
        size_t length = next_cell(&text, end, &cell, &last);
        size_t width = bw_utf8_count(cell, length);
        if (width > columns[number].width)
            columns[number].width = width;
    }
}

static void append_cell(struct bw_buffer *text, const char *cell, size_t length,
                        const struct bw_table_column *column, bool last)
{
    int padding = (int)(column->width - bw_utf8_count(cell, length));
    bw_buffer_format(text, "%*s", column->right ? padding : 0, "");
    bw_buffer_append(text, cell, length);
    bw_buffer_format(text, "%*s", last ? 0 : 2 + (column->right ? 0 : padding), "");
    if (last)
        bw_buffer_append_byte(text, '\n');
}

void bw_table_append(struct bw_buffer *text, const struct bw_buffer *cells,
                     struct bw_table_column *columns)
{
    const char *next = cells->data, *end = next + cells->length, *cell;
    size_t number = 0;
    measure_columns(cells, columns);
    for (bool last; next < end; number = last ? 0 : number + 1) {
        size_t length = next_cell(&next, end, &cell, &last);
        append_cell(text, cell, length, &columns[number], last);
    }
    text->failed |= cells->failed;
}
