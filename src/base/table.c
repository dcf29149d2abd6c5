/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Aligning cells. The width of a cell is its number of characters. */
#include "base/table.h"

#include "base/compare.h"
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

void bw_table_append(struct bw_buffer *text, const struct bw_buffer *cells,
                     struct bw_table_column *columns)
{
    const char *next = cells->data, *end = next ? next + cells->length : NULL, *cell;
    size_t number = 0;
    text->failed |= cells->failed;
    for (bool last; next < end; number = last ? 0 : number + 1) {
        const size_t length = next_cell(&next, end, &cell, &last);
        columns[number].width = (size_t)bw_max(columns[number].width, bw_utf8_count(cell, length));
    }
    next = cells->data;
    number = 0;
    for (bool last; next < end; number = last ? 0 : number + 1) {
        const size_t length = next_cell(&next, end, &cell, &last);
        const struct bw_table_column *column = &columns[number];
        const int padding = (int)(column->width - bw_utf8_count(cell, length));
        if (column->right)
            bw_buffer_format(text, "%*s", padding, "");
        bw_buffer_append(text, cell, length);
        if (last)
            bw_buffer_append_byte(text, '\n');
        else
            bw_buffer_format(text, "%*s", column->right ? 2 : 2 + padding, "");
    }
}
