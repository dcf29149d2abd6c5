/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cold half of the growable buffer: growing, formatting, reading and freeing. */
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

bool bw_buffer_grow(struct bw_buffer *buffer, size_t more)
{
    size_t wanted = buffer->length + more;
    size_t capacity = buffer->capacity < 256 ? 256 : buffer->capacity + buffer->capacity / 2;
    /* A length beyond the capacity was set despite a failed append. */
    if (wanted < more || buffer->fixed || buffer->length > buffer->capacity)
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

const char *bw_buffer_text(struct bw_buffer *buffer)
{
    if (bw_buffer_reserve(buffer, 1))
        buffer->data[buffer->length] = '\0';
    else if (buffer->capacity)
        buffer->data[buffer->capacity - 1] = '\0';
    return buffer->capacity ? buffer->data : "";
}

/* Most texts fit in the existing room; otherwise the second attempt does. */
void bw_buffer_format(struct bw_buffer *buffer, const char *format, ...)
{
    for (;;) {
        const size_t room = buffer->capacity - buffer->length;
        va_list arguments;
        va_start(arguments, format);
        int length =
            vsnprintf(room ? buffer->data + buffer->length : NULL, room, format, arguments);
        va_end(arguments);
        if (length < 0) {
            buffer->failed = true;
            return;
        }
        if ((size_t)length < room) {
            buffer->length += (size_t)length;
            return;
        }
        if (!bw_buffer_reserve(buffer, (size_t)length + 1))
            return;
    }
}

void bw_buffer_append_hex(struct bw_buffer *buffer, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    if (!bw_buffer_reserve(buffer, 2 * length))
        return;
    for (size_t i = 0; i < length; i++) {
        buffer->data[buffer->length++] = digits[bytes[i] >> 4];
        buffer->data[buffer->length++] = digits[bytes[i] & 15];
    }
}

struct bw_error *bw_buffer_read(struct bw_buffer *buffer, int descriptor, size_t wanted)
{
    while (buffer->length < wanted) {
        const size_t left = wanted - buffer->length;
        if (!bw_buffer_reserve(buffer, left))
            return bw_error_no_memory();
        ssize_t got = read(descriptor, buffer->data + buffer->length, left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bw_error_from_errno(errno, "cannot read");
        if (got == 0)
            break;
        buffer->length += (size_t)got;
    }
    return NULL;
}

struct bw_error *bw_buffer_read_all(struct bw_buffer *buffer, int descriptor)
{
    enum { STEP = 1 << 20 };
    size_t before;
    do {
        before = buffer->length;
        BW_TRY(bw_buffer_read(buffer, descriptor, before + STEP));
    } while (buffer->length > before);
    return NULL;
}

struct bw_error *bw_buffer_read_file(struct bw_buffer *buffer, const char *file)
{
    const int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s", file);
    struct bw_error *error = bw_buffer_read_all(buffer, descriptor);
    close(descriptor);
    return error ? bw_error_prefix(error, "%s", file) : NULL;
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
