/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON as text, written front to back: no tree of values is ever built. */
#include "base/json.h"

#include <string.h>

#include "base/base64.h"
#include "base/decimal.h"
#include "base/json_string.h"
#include "base/utf8.h"

struct bw_json bw_json_start(struct bw_buffer *buffer, bool indent)
{
    return (struct bw_json){.buffer = buffer, .indent = indent};
}

static void new_line(struct bw_json *json)
{
    if (!json->indent)
        return;
    bw_buffer_append_byte(json->buffer, '\n');
    for (unsigned i = 0; i < 2 * json->depth; i++)
        bw_buffer_append_byte(json->buffer, ' ');
}

static void append_text(struct bw_json *json, const char *text)
{
    bw_buffer_append(json->buffer, text, strlen(text));
}

/* The escape of a character: "\u00" or "\u20", and two digits. */
static char *write_code(char *at, const char *begin, uint8_t code)
{
    memcpy(at, begin, 4);
    at[4] = "0123456789abcdef"[code >> 4];
    at[5] = "0123456789abcdef"[code & 15];
    return at + 6;
}

/* Terminals obey the control characters U+0080 to U+009F, too, which have two bytes. U+2028 and
 * U+2029, with three bytes, end a line for splitlines() of Python. */
char *bw_json_escape(char *at, const void *text, size_t length)
{
    const uint8_t *bytes = text;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') {
            *at++ = '\\';
            *at++ = (char)bytes[i];
        } else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            at = write_code(at, "\\u00", bytes[i]);
        } else if (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] >= 0x80 &&
                   bytes[i + 1] < 0xa0) {
            at = write_code(at, "\\u00", bytes[++i]);
        } else if (i + 2 < length && memcmp(bytes + i, "\xe2\x80", 2) == 0 &&
                   (bytes[i + 2] == 0xa8 || bytes[i + 2] == 0xa9)) {
            at = write_code(at, "\\u20", bytes[i + 2] & 0x2f);
            i += 2;
        } else {
            *at++ = (char)bytes[i];
        }
    }
    return at;
}

static void append_string(struct bw_json *json, const char *text, size_t length)
{
    struct bw_buffer *buffer = json->buffer;
    if (!bw_buffer_reserve(buffer, 6 * length + sizeof "\"1234567\""))
        return;
    if (!length) /* an empty buffer has no bytes to point to */
        text = "";
    char *at = buffer->data + buffer->length;
    *at++ = '"';
    size_t plain = bw_json_copy_plain(at, text, length);
    at = bw_json_escape(at + plain, text + plain, length - plain);
    *at++ = '"';
    buffer->length = (size_t)(at - buffer->data);
}

/* Writes the part before a value: comma, newline, name. */
static void begin_value(struct bw_json *json, const char *name, const char *suffix)
{
    if (!json->depth)
        return;
    if (!json->empty[json->depth - 1])
        bw_buffer_append_byte(json->buffer, ',');
    json->empty[json->depth - 1] = false;
    new_line(json);
    if (!name)
        return;
    append_string(json, name, strlen(name));
    if (*suffix) {
        json->buffer->length -= !json->buffer->failed;
        append_text(json, suffix);
        bw_buffer_append_byte(json->buffer, '"');
    }
    append_text(json, json->indent ? ": " : ":");
}

static void begin_container(struct bw_json *json, const char *name, char opening, char closing)
{
    begin_value(json, name, "");
    bw_buffer_append_byte(json->buffer, opening);
    if (json->depth == BW_JSON_DEPTH) {
        json->buffer->failed = true;
        return;
    }
    json->closing[json->depth] = closing;
    json->empty[json->depth++] = true;
}

void bw_json_begin_object(struct bw_json *json, const char *name)
{
    begin_container(json, name, '{', '}');
}

void bw_json_begin_array(struct bw_json *json, const char *name)
{
    begin_container(json, name, '[', ']');
}

void bw_json_end(struct bw_json *json)
{
    if (!json->depth)
        return;
    json->depth--;
    if (!json->empty[json->depth])
        new_line(json);
    bw_buffer_append_byte(json->buffer, json->closing[json->depth]);
}

void bw_json_number(struct bw_json *json, const char *name, uint64_t value)
{
    begin_value(json, name, "");
    bw_decimal_append(json->buffer, value);
}

void bw_json_digits(struct bw_json *json, const char *name, const char *digits)
{
    begin_value(json, name, "");
    bw_buffer_append(json->buffer, digits, strlen(digits));
}

void bw_json_signed(struct bw_json *json, const char *name, int64_t value)
{
    begin_value(json, name, "");
    if (value < 0)
        bw_buffer_append_byte(json->buffer, '-');
    bw_decimal_append(json->buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void bw_json_bool(struct bw_json *json, const char *name, bool value)
{
    begin_value(json, name, "");
    append_text(json, value ? "true" : "false");
}

void bw_json_text(struct bw_json *json, const char *name, const char *text)
{
    if (text) {
        bw_json_bytes(json, name, text, strlen(text));
        return;
    }
    begin_value(json, name, "");
    append_text(json, "null");
}

static void append_base64(struct bw_json *json, const void *bytes, size_t length)
{
    struct bw_buffer *buffer = json->buffer;
    bw_buffer_append_byte(buffer, '"');
    if (bw_buffer_reserve(buffer, bw_base64_length(length)))
        buffer->length =
            (size_t)(bw_base64(buffer->data + buffer->length, bytes, length) - buffer->data);
    bw_buffer_append_byte(buffer, '"');
}

void bw_json_bytes(struct bw_json *json, const char *name, const void *bytes, size_t length)
{
    if (bw_utf8_is_valid(bytes, length)) {
        begin_value(json, name, "");
        append_string(json, bytes, length);
    } else if (name) {
        begin_value(json, name, "_bytes");
        append_base64(json, bytes, length);
    } else {
        begin_value(json, NULL, "");
        append_text(json, "{\"bytes\":");
        append_base64(json, bytes, length);
        bw_buffer_append_byte(json->buffer, '}');
    }
}

void bw_json_raw_bytes(struct bw_json *json, const char *name, const void *bytes, size_t length)
{
    begin_value(json, name, "");
    append_string(json, bytes, length);
}

void bw_json_hex(struct bw_json *json, const char *name, const void *bytes, size_t length)
{
    begin_value(json, name, "");
    bw_buffer_append_byte(json->buffer, '"');
    bw_buffer_append_hex(json->buffer, bytes, length);
    bw_buffer_append_byte(json->buffer, '"');
}
