/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands around rows: the names of the columns, the header record, the brackets of an array.
 */
#include "record/row.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* As columns are joined. */
static void append_names(const struct bw_rows *rows, struct bw_buffer *text)
{
    for (unsigned i = 0; i < rows->column_count; i++) {
        const struct bw_column *column = &rows->columns[i];
        const char *name = rows->record->members[__builtin_ctzll(column->bit)].name;
        bw_buffer_append(text, column->lead.text, column->lead.length);
        bw_buffer_append(text, name, strlen(name));
    }
    bw_buffer_append_byte(text, rows->terminator);
}

/* As a line; in an array without its end. */
static void append_header_record(const struct bw_rows *rows, struct bw_buffer *text)
{
    const struct bw_rows_options options = {.style = BW_ROWS_JSON_LINES,
                                            .terminator = rows->terminator};
    const struct bw_header header = {.version = BW_VERSION, .of = rows->record};
    struct bw_rows *header_rows;
    struct bw_error *error = bw_rows_create("headerinfo", &options, &header_rows);
    if (error) {
        text->failed = true;
        bw_error_free(error);
        return;
    }
    bw_rows_append(header_rows, &bw_header_xlate, &header, text);
    bw_rows_destroy(header_rows);
    text->length -= rows->style == BW_ROWS_JSON_ARRAY && !text->failed;
}

void bw_rows_append_front(const struct bw_rows *rows, struct bw_buffer *text)
{
    if (rows->style == BW_ROWS_JSON_ARRAY)
        bw_buffer_append(text, "[\n", 2);
    if (!rows->header)
        return;
    if (rows->style == BW_ROWS_TEXT)
        append_names(rows, text);
    else
        append_header_record(rows, text);
}

static struct bw_error *begin(struct bw_rows_stream *stream)
{
    struct bw_buffer text = {0};
    struct bw_error *error = NULL;
    stream->begun = true;
    bw_rows_append_front(stream->rows, &text);
    if (text.failed)
        error = bw_error_no_memory();
    else if (text.length)
        error = stream->consume(stream->context, text.data, text.length);
    stream->not_first = stream->rows->header;
    bw_buffer_free(&text);
    return error;
}

struct bw_error *bw_rows_take(void *context, const char *rows, size_t length)
{
    struct bw_rows_stream *stream = context;
    struct bw_error *error = stream->begun ? NULL : begin(stream);
    if (error || !length)
        return error;
    size_t comma = stream->not_first ? 0 : stream->rows->begin.length;
    stream->not_first = true;
    return stream->consume(stream->context, rows + comma, length - comma);
}

struct bw_error *bw_rows_end(struct bw_rows_stream *stream)
{
    struct bw_error *error = stream->begun ? NULL : begin(stream);
    if (error || stream->rows->style != BW_ROWS_JSON_ARRAY)
        return error;
    return stream->not_first ? stream->consume(stream->context, "\n]\n", 3)
                             : stream->consume(stream->context, "]\n", 2);
}
