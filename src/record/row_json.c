/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as JSON objects. The lead of a member is a comma, its name, a colon and, before a string, a
 * quote.
 */
#include "record/row.h"

#include "base/base64.h"
#include "base/decimal.h"
#include "base/human.h"
#include "base/json.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "btrfs-walk/graph.h"

/* Lead, base64, quote. */
static char *write_as_base64(const struct bw_row *row, const struct bw_lead *lead,
                             const struct bw_bytes *bytes, char *at)
{
    at = bw_row_room(row, at, bw_base64_length(bytes->length));
    if (!at)
        return NULL;
    at = bw_base64(bw_lead_write(at, lead), bytes->data, bytes->length);
    *at++ = '"';
    return at;
}

static char *write_string(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    if (!bytes->data)
        return at;
    at = bw_row_room(row, at, bytes->length);
    if (!at)
        return NULL;
    char *text = bw_row_lead(row, at);
    if (bw_json_copy_plain(text, bytes->data, bytes->length) == bytes->length) {
        text += bytes->length;
        *text++ = '"';
        return text;
    }
    if (!bw_utf8_is_valid(bytes->data, bytes->length))
        return write_as_base64(row, &row->column->bytes_lead, bytes, at);
    at = bw_row_room(row, at, 6 * bytes->length);
    if (!at)
        return NULL;
    at = bw_json_escape(bw_row_lead(row, at), bytes->data, bytes->length);
    *at++ = '"';
    return at;
}

/* The same for a text, which has become bytes before: write_string() writes the path of every file,
 * so it does not ask for the type of the member. */
static char *write_text(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes bytes = bw_row_bytes(row, value);
    return write_string(row, &bytes, at);
}

/* Words separated by commas, none of which needs escapes. */
static char *write_list(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes list = bw_row_bytes(row, value);
    if (!list.data)
        return at;
    const char *word = list.data, *end = list.data + list.length;
    at = bw_row_room(row, at, 3 * list.length + 2);
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
    *at++ = '[';
    for (size_t length; word < end; word += length + 1) {
        length = strcspn(word, ",");
        const size_t quote = strspn(word, "0123456789") != length; /* numbers have none */
        if (word > list.data)
            *at++ = ',';
        at = mempcpy(at, "\"", quote);
        at = mempcpy(at, word, length);
        at = mempcpy(at, "\"", quote);
    }
    *at++ = ']';
    return at;
}

static char *write_base64(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    return bytes->data ? write_as_base64(row, &row->column->lead, bytes, at) : at;
}

static char *write_uuid(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *uuid = value;
    if (!uuid->data || uuid->length != BW_UUID_SIZE)
        return at;
    at = bw_row_lead(row, at);
    at = bw_write_uuid(at, uuid->data);
    *at++ = '"';
    return at;
}

static char *write_bool(const struct bw_row *row, const void *value, char *at)
{
    return stpcpy(bw_row_lead(row, at), *(const uint64_t *)value ? "true" : "false");
}

static char *write_date(const struct bw_row *row, const void *value, char *at)
{
    at = bw_row_lead(row, at);
    *at++ = '"';
    at = bw_write_zoned_date(at, *(const int64_t *)value, row->rows->times == BW_ROWS_LOCAL);
    *at++ = '"';
    return at;
}

static char *write_hex(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    if (!bytes->data)
        return at;
    struct bw_buffer *buffer = bw_row_buffer(row, bw_row_lead(row, at));
    bw_buffer_append_hex(buffer, (const uint8_t *)bytes->data, bytes->length);
    bw_buffer_append_byte(buffer, '"');
    return bw_row_end(row, 0);
}

/* Values with names, which need no escapes. Nothing that an image contains is lost: numbers and
 * bits without a name are written as such. */

static char *write_word(const struct bw_row *row, const void *value, char *at)
{
    at = bw_row_lead(row, at);
    *at++ = '"';
    at = bw_write_word(at, row->column->member->values, *(const uint64_t *)value);
    *at++ = '"';
    return at;
}

static char *write_flags(const struct bw_row *row, const void *value, char *at)
{
    uint64_t flags = *(const uint64_t *)value, unknown = flags;
    if (!flags && row->column->member->values->none) /* most files: no bits, no names */
        return stpcpy(bw_row_lead(row, at), "[]");
    at = bw_row_room(row, at, BW_FLAGS_ROOM);
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
    *at++ = '[';
    for (const struct bw_value_name *word = row->column->member->values->words; word->name;
         word++) {
        unknown &= ~word->value;
        if (bw_flag_applies(word, flags))
            at = stpcpy(stpcpy(stpcpy(at, "\""), word->name), "\",");
    }
    if (unknown)
        at = stpcpy(bw_write_digits(stpcpy(at, "\"0x"), unknown, 4), "\",");
    at -= at[-1] == ',';
    *at++ = ']';
    return at;
}

static char *write_key(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_key *key = value;
    const char *type = bw_key_type_find(key->type);
    at = bw_row_room(row, at, BW_KEY_ROOM);
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
    at = bw_decimal(stpcpy(at, "{\"objectid\":"), key->objectid);
    at = stpcpy(stpcpy(at, ",\"type\":\""), type ? type : "UNKNOWN.");
    if (!type)
        at = bw_decimal(at, key->type);
    at = bw_decimal(stpcpy(at, "\",\"offset\":"), key->offset);
    *at++ = '}';
    return at;
}

/* The same in columns of text. */
static char *write_json(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_json_value *written = value;
    if (!written->write)
        return row->column->optional ? at : bw_row_absent(row, at);
    struct bw_buffer *buffer = bw_row_buffer(row, bw_row_lead(row, at));
    struct bw_json json = bw_json_start(buffer, false);
    written->write(written->context, &json);
    return bw_row_end(row, 0);
}

/* The longest is {"devid":N,"offset":N}, */
enum { STRIPE_ROOM = sizeof "{\"devid\":,\"offset\":}," + (size_t)2 * BW_DECIMAL_ROOM };

static char *write_stripes(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_stripes *stripes = value;
    if (!stripes->data)
        return at;
    at = bw_row_room(row, at, (stripes->length + 1) * STRIPE_ROOM);
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
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
static char *write_names(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_names *names = value;
    if (!names->data)
        return at;
    at = bw_row_lead(row, at);
    struct bw_buffer *buffer = bw_row_buffer(row, at);
    struct bw_json json = bw_json_start(buffer, false);
    bw_json_begin_array(&json, NULL);
    for (uint64_t i = 0; i < names->length; i++)
        bw_json_bytes(&json, NULL, names->data[i].data, names->data[i].length);
    bw_json_end(&json);
    return bw_row_end(row, 0);
}

bw_column_writer *bw_json_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options)
{
    if (member->format == BW_FORMAT_TIME && options->times)
        return options->times == BW_ROWS_SECONDS ? bw_write_time_in_seconds : write_date;
    switch (member->type) {
    case BW_TYPE_U64:
        if (member->format == BW_FORMAT_BOOL)
            return write_bool;
        if (member->format == BW_FORMAT_WORD)
            return write_word;
        return member->format == BW_FORMAT_FLAGS ? write_flags : bw_write_unsigned;
    case BW_TYPE_I64:
        return bw_write_signed;
    case BW_TYPE_TEXT:
        return member->format == BW_FORMAT_LIST ? write_list : write_text;
    case BW_TYPE_STRIPES:
        return write_stripes;
    case BW_TYPE_NAMES:
        return write_names;
    case BW_TYPE_KEY:
        return write_key;
    case BW_TYPE_JSON:
        return write_json;
    default:
        if (member->format == BW_FORMAT_UUID)
            return write_uuid;
        if (member->format == BW_FORMAT_BASE64)
            return write_base64;
        return member->format == BW_FORMAT_HEX ? write_hex : write_string;
    }
}
