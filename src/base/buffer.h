/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A growable run of bytes. The workers of a walk write paths into buffers, so the check for room is
 * inline and growing is the cold path. `failed` remembers a failed allocation, so that it need not
 * be checked after every append.
 */
#ifndef BW_BASE_BUFFER_H
#define BW_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "btrfs-walk/error.h"

struct bw_buffer {
    char *data;
    size_t length;
    size_t capacity;
    bool failed; /**< an append was dropped because memory ran out */
    bool fixed; /**< the memory belongs to the owner: text that does not fit is dropped as if memory
                   had run out */
};

/** Makes room for `more` further bytes; false (and `failed` set) if memory runs out. Cold: call
 * bw_buffer_reserve. */
bool bw_buffer_grow(struct bw_buffer *buffer, size_t more);

/** Releases the memory and leaves an empty buffer. */
void bw_buffer_free(struct bw_buffer *buffer);

/** Releases a buffer at the end of its scope. */
#define BW_AUTO_BUFFER __attribute__((cleanup(bw_buffer_free)))

/** Appends printf-style text. */
void bw_buffer_format(struct bw_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Appends two lower-case hexadecimal digits for each byte. */
void bw_buffer_append_hex(struct bw_buffer *buffer, const uint8_t *bytes, size_t length);

/** Reads on from a descriptor until the buffer holds `wanted` bytes, or no more come.
 * BW_ERROR_SYSTEM, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_buffer_read(struct bw_buffer *buffer, int descriptor, size_t wanted);

/** The same to the end. */
struct bw_error *bw_buffer_read_all(struct bw_buffer *buffer, int descriptor);

/** Appends the contents of a file. BW_ERROR_SYSTEM, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_buffer_read_file(struct bw_buffer *buffer, const char *file);

/** The contents as a text, with a NUL after them that does not count. If memory ran out, only their
 * beginning. */
const char *bw_buffer_text(struct bw_buffer *buffer);

/** Gives a text to a caller of the library, with a NUL after it, unless `error` is set; takes both.
 * `length` may be NULL. */
struct bw_error *bw_give_text(struct bw_buffer *text, struct bw_error *error, char **result,
                              size_t *length);

static inline bool bw_buffer_reserve(struct bw_buffer *buffer, size_t more)
{
    return __builtin_expect(buffer->length <= buffer->capacity &&
                                buffer->capacity - buffer->length >= more,
                            1) ||
           bw_buffer_grow(buffer, more);
}

/* A buffer with room has data, which analyzers do not find out. */
static inline void bw_buffer_has_data(const struct bw_buffer *buffer)
{
    if (!buffer->data)
        __builtin_unreachable();
}

static inline void bw_buffer_append(struct bw_buffer *buffer, const void *bytes, size_t length)
{
    if (length == 0 || !bw_buffer_reserve(buffer, length))
        return;
    bw_buffer_has_data(buffer);
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

static inline void bw_buffer_append_byte(struct bw_buffer *buffer, char byte)
{
    if (!bw_buffer_reserve(buffer, 1))
        return;
    bw_buffer_has_data(buffer);
    buffer->data[buffer->length++] = byte;
}

/** The error of a buffer whose memory ran out; NULL if it has everything that was appended. */
static inline struct bw_error *bw_buffer_error(const struct bw_buffer *buffer)
{
    return buffer->failed ? bw_error_no_memory() : NULL;
}

/** Replaces the contents, and returns the same error. */
static inline struct bw_error *bw_buffer_set(struct bw_buffer *buffer, const void *bytes,
                                             size_t length)
{
    buffer->length = 0;
    bw_buffer_append(buffer, bytes, length);
    return bw_buffer_error(buffer);
}

/** Appends the NUL of a text, and returns the same error. */
static inline struct bw_error *bw_buffer_terminate(struct bw_buffer *buffer)
{
    bw_buffer_append_byte(buffer, '\0');
    return bw_buffer_error(buffer);
}

/** The same, but the length of the buffer does not count the NUL. */
static inline struct bw_error *bw_buffer_end_text(struct bw_buffer *buffer)
{
    struct bw_error *error = bw_buffer_terminate(buffer);
    buffer->length -= !error;
    return error;
}

#endif
