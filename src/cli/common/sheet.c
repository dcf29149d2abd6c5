/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers as lines or as one JSON object. */
#include "cli/common/sheet.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/escape.h"

/* Columns of the labels. */
enum { WIDTH = 15 };

void sheet_begin(struct sheet *sheet, bool json)
{
    sheet->is_json = json;
    sheet->json = bw_json_start(&sheet->text, false);
    sheet_object(sheet, NULL);
}

void sheet_end(struct sheet *sheet)
{
    sheet_close(sheet);
    if (sheet->is_json)
        bw_buffer_append_byte(&sheet->text, '\n');
}

void sheet_line(struct sheet *sheet, const char *label, const char *format, ...)
{
    char *value = NULL;
    va_list arguments;
    if (sheet->is_json)
        return;
    va_start(arguments, format);
    sheet->text.failed |= vasprintf(&value, format, arguments) < 0;
    va_end(arguments);
    if (!sheet->text.failed)
        bw_buffer_format(&sheet->text, "%-*s%s\n", WIDTH, label, value);
    free(value);
}

void sheet_object(struct sheet *sheet, const char *name)
{
    if (sheet->is_json)
        bw_json_begin_object(&sheet->json, name);
}

void sheet_array(struct sheet *sheet, const char *name)
{
    if (sheet->is_json)
        bw_json_begin_array(&sheet->json, name);
}

void sheet_close(struct sheet *sheet)
{
    if (sheet->is_json)
        bw_json_end(&sheet->json);
}

void sheet_number(struct sheet *sheet, const char *name, uint64_t number)
{
    if (sheet->is_json)
        bw_json_number(&sheet->json, name, number);
}

void sheet_text(struct sheet *sheet, const char *name, const char *text)
{
    if (sheet->is_json)
        bw_json_text(&sheet->json, name, text);
}

void sheet_bytes(struct sheet *sheet, const char *label, const char *name, const char *text)
{
    sheet_text(sheet, name, text);
    if (sheet->is_json)
        return;
    bw_buffer_format(&sheet->text, "%-*s", WIDTH, label);
    bw_escape_line(&sheet->text, text, strlen(text));
    bw_buffer_append_byte(&sheet->text, '\n');
}

const char *sheet_size(char room[BW_SIZE_ROOM + 1], uint64_t size)
{
    *bw_write_size(room, size, false) = '\0';
    return room;
}
