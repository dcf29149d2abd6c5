/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as JSON objects. The lead of a member is a comma, its name, a colon and, before a string, a
 * quote.
 */
#include <uuid/uuid.h>

#include "base/base64.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/human.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "btrfs-walk/xlator.h"
#include "record/row.h"

/* Lead, base64, quote. */
static char *write_as_base64(const struct bw_rows *rows, const struct bw_lead *lead,
                             const struct bw_bytes *bytes, char *at, struct bw_buffer *buffer)
{
    at = bw_row_room(rows, at, bw_base64_length(bytes->length), buffer);
    if (!at)
        return NULL;
    at = bw_base64(bw_lead_write(at, lead), bytes->data, bytes->length);
    *at++ = '"';
    return at;
}

static char *write_slowly(const struct bw_rows *rows, const struct bw_column *column,
                          const struct bw_bytes *bytes, char *at, struct bw_buffer *buffer)
{
    if (!bw_utf8_is_valid(bytes->data, bytes->length))
        return write_as_base64(rows, &column->bytes_lead, bytes, at, buffer);
    at = bw_row_room(rows, at, 6 * bytes->length, buffer);
    if (!at)
        return NULL;
    at = bw_lead_write(at, &column->lead);
    at = bw_json_escape(at, bytes->data, bytes->length);
    *at++ = '"';
    return at;
}

static char *write_string(const struct bw_rows *rows, const struct bw_column *column,
                          const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_bytes *bytes = value;
    if (!bytes->data)
        return at;
    at = bw_row_room(rows, at, bytes->length, buffer);
    if (!at)
        return NULL;
    char *text = bw_lead_write(at, &column->lead);
    if (bw_json_copy_plain(text, bytes->data, bytes->length) < bytes->length)
        return write_slowly(rows, column, bytes, at, buffer);
    text += bytes->length;
    *text++ = '"';
    return text;
}

static char *write_text(const struct bw_rows *rows, const struct bw_column *column,
                        const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_bytes bytes = bw_row_text(value);
    return write_string(rows, column, &bytes, at, buffer);
}

static char *write_base64(const struct bw_rows *rows, const struct bw_column *column,
                          const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_bytes *bytes = value;
    return bytes->data ? write_as_base64(rows, &column->lead, bytes, at, buffer) : at;
}

static char *write_uuid(const struct bw_rows *rows, const struct bw_column *column,
                        const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_bytes *uuid = value;
    (void)rows, (void)buffer;
    if (!uuid->data || uuid->length != sizeof(uuid_t))
        return at;
    at = bw_lead_write(at, &column->lead);
    uuid_unparse_lower((const unsigned char *)uuid->data, at);
    at[UUID_STR_LEN - 1] = '"';
    return at + UUID_STR_LEN;
}

static char *write_unsigned(const struct bw_rows *rows, const struct bw_column *column,
                            const void *value, char *at, struct bw_buffer *buffer)
{
    (void)rows, (void)buffer;
    return bw_decimal(bw_lead_write(at, &column->lead), *(const uint64_t *)value);
}

static char *write_bool(const struct bw_rows *rows, const struct bw_column *column,
                        const void *value, char *at, struct bw_buffer *buffer)
{
    (void)rows, (void)buffer;
    return stpcpy(bw_lead_write(at, &column->lead), *(const uint64_t *)value ? "true" : "false");
}

static char *write_signed(const struct bw_rows *rows, const struct bw_column *column,
                          const void *value, char *at, struct bw_buffer *buffer)
{
    (void)rows, (void)buffer;
    return bw_decimal_signed(bw_lead_write(at, &column->lead), *(const int64_t *)value);
}

static char *write_iso(const struct bw_rows *rows, const struct bw_column *column,
                       const void *value, char *at, struct bw_buffer *buffer)
{
    (void)rows, (void)buffer;
    at = bw_lead_write(at, &column->lead);
    *at++ = '"';
    at = bw_write_date(at, *(const int64_t *)value, 'T');
    *at++ = 'Z';
    *at++ = '"';
    return at;
}

static char *write_seconds(const struct bw_rows *rows, const struct bw_column *column,
                           const void *value, char *at, struct bw_buffer *buffer)
{
    (void)rows, (void)buffer;
    return bw_write_seconds(bw_lead_write(at, &column->lead), *(const int64_t *)value);
}

/* The longest is {"devid":N,"offset":N}, */
enum { STRIPE_ROOM = sizeof "{\"devid\":,\"offset\":}," + (size_t)2 * BW_DECIMAL_ROOM };

static char *write_stripes(const struct bw_rows *rows, const struct bw_column *column,
                           const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_stripes *stripes = value;
    if (!stripes->data)
        return at;
    at = bw_row_room(rows, at, (stripes->length + 1) * STRIPE_ROOM, buffer);
    if (!at)
        return NULL;
    at = bw_lead_write(at, &column->lead);
    *at++ = '[';
    for (uint64_t i = 0; i < stripes->length; i++) {
        at = bw_decimal(stpcpy(at, i ? ",{\"devid\":" : "{\"devid\":"), stripes->data[i].devid);
        at = bw_decimal(stpcpy(at, ",\"offset\":"), stripes->data[i].offset);
        *at++ = '}';
    }
    *at++ = ']';
    return at;
}

/* Lists are short, and written as other JSON is. */
static char *write_names(const struct bw_rows *rows, const struct bw_column *column,
                         const void *value, char *at, struct bw_buffer *buffer)
{
    const struct bw_names *names = value;
    if (!names->data)
        return at;
    at = bw_lead_write(at, &column->lead);
    buffer->length = (size_t)(at - buffer->data);
    struct bw_json json = bw_json_start(buffer, false);
    bw_json_begin_array(&json, NULL);
    for (uint64_t i = 0; i < names->length; i++)
        bw_json_bytes(&json, NULL, names->data[i].data, names->data[i].length);
    bw_json_end(&json);
    return bw_buffer_reserve(buffer, rows->room) ? buffer->data + buffer->length : NULL;
}

bw_column_writer *bw_json_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options)
{
    if (member->format == BW_FORMAT_TIME && options->times)
        return options->times == BW_ROWS_ISO ? write_iso : write_seconds;
    switch (member->type) {
    case BW_TYPE_U64:
        return member->format == BW_FORMAT_BOOL ? write_bool : write_unsigned;
    case BW_TYPE_I64:
        return write_signed;
    case BW_TYPE_TEXT:
        return write_text;
    case BW_TYPE_STRIPES:
        return write_stripes;
    case BW_TYPE_NAMES:
        return write_names;
    default:
        return member->format == BW_FORMAT_UUID     ? write_uuid
               : member->format == BW_FORMAT_BASE64 ? write_base64
                                                    : write_string;
    }
}
