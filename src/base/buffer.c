/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cold half of the growable buffer: growing, formatting and freeing. */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

bool bw_buffer_grow(struct bw_buffer *buffer, size_t more)
{
    size_t wanted = buffer->length + more;
    size_t capacity = buffer->capacity < 256 ? 256 : buffer->capacity + buffer->capacity / 2;
    if (wanted < more || buffer->fixed)
        goto failed;
    if (capacity < wanted)
        capacity = wanted;
    char *data = realloc(buffer->data, capacity);
    if (!data)
        goto failed;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
failed:
    buffer->failed = true;
    return false;
}

void bw_buffer_free(struct bw_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct bw_buffer){0};
}

void bw_buffer_format(struct bw_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    bw_buffer_append(buffer, text, (size_t)length);
    free(text);
}

struct bw_error *bw_give_text(struct bw_buffer *text, struct bw_error *error, char **result,
                              size_t *length)
{
    bw_buffer_append_byte(text, '\0');
    if (!error && text->failed)
        error = bw_error_no_memory();
    if (error) {
        bw_buffer_free(text);
        return error;
    }
    *result = text->data;
    if (length)
        *length = text->length - 1;
    return NULL;
}
