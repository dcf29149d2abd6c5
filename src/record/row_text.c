/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows as columns of text, and as words for events: a writer for each format. */
#include "record/row.h"

#include "base/base64.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/graph.h"

/* Signed values are read in the same way. */
static uint64_t number_at(const void *value)
{
    return *(const uint64_t *)value;
}

char *bw_write_unsigned(const struct bw_row *row, const void *value, char *at)
{
    return bw_decimal(bw_row_lead(row, at), number_at(value));
}

char *bw_write_signed(const struct bw_row *row, const void *value, char *at)
{
    return bw_decimal_signed(bw_row_lead(row, at), *(const int64_t *)value);
}

static char *write_iec(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_size(bw_row_lead(row, at), number_at(value), false);
}

static char *write_si(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_size(bw_row_lead(row, at), number_at(value), true);
}

static char *write_date(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_zoned_date(bw_row_lead(row, at), *(const int64_t *)value,
                               row->rows->times == BW_ROWS_LOCAL);
}

char *bw_write_time_in_seconds(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_seconds(bw_row_lead(row, at), *(const int64_t *)value);
}

char *bw_write_digits(char *at, uint64_t number, unsigned bits)
{
    unsigned shift = 0;
    while (shift + bits < 64 && number >> (shift + bits))
        shift += bits;
    for (;; shift -= bits) {
        *at++ = "0123456789abcdef"[number >> shift & ((1u << bits) - 1)];
        if (!shift)
            return at;
    }
}

static char *write_octal(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_digits(bw_row_lead(row, at), number_at(value), 3);
}

char *bw_write_hex(const struct bw_row *row, const void *value, char *at)
{
    at = bw_row_lead(row, at);
    *at++ = '0';
    *at++ = 'x';
    return bw_write_digits(at, number_at(value), 4);
}

static char *write_uuid(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *uuid = value;
    if (!uuid->data || uuid->length != BW_UUID_SIZE)
        return bw_row_absent(row, at);
    at = bw_row_lead(row, at);
    return bw_write_uuid(at, uuid->data);
}

static char *write_base64(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    if (!bytes->data)
        return bw_row_absent(row, at);
    at = bw_row_room(row, bw_row_lead(row, at), bw_base64_length(bytes->length));
    return at ? bw_base64(at, bytes->data, bytes->length) : NULL;
}

static char *write_raw(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes bytes = bw_row_bytes(row, value);
    if (!bytes.data)
        return bw_row_absent(row, at);
    at = bw_row_room(row, bw_row_lead(row, at), bytes.length);
    return at ? mempcpy(at, bytes.data, bytes.length) : NULL;
}

static char *write_hex_bytes(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    if (!bytes->data)
        return bw_row_absent(row, at);
    struct bw_buffer *buffer = bw_row_buffer(row, bw_row_lead(row, at));
    bw_buffer_append_hex(buffer, (const uint8_t *)bytes->data, bytes->length);
    return bw_row_end(row, 0);
}

/* Values with names. */

static char *write_word_of(const struct bw_row *row, const void *value, char *at)
{
    return bw_write_word(bw_row_lead(row, at), row->column->member->values, number_at(value));
}

/* In columns, "none" means no flags: an empty cell could be overlooked. */
static char *write_flags(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_value_names *names = row->column->member->values;
    uint64_t unknown = number_at(value);
    bool any = false;
    at = bw_row_room(row, at, BW_FLAGS_ROOM);
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
    for (const struct bw_value_name *word = names->words; word->name; word++) {
        unknown &= ~word->value;
        if (!bw_flag_applies(word, number_at(value)))
            continue;
        if (any)
            *at++ = '|';
        at = stpcpy(at, word->name);
        any = true;
    }
    if (unknown && !bw_rows_are_text(row->rows)) {
        at = stpcpy(at, any ? "|0x" : "0x");
        at = bw_write_digits(at, unknown, 4);
        any = true;
    }
    if (!any && names->none)
        at = stpcpy(at, names->none);
    else if (!any && row->rows->style == BW_ROWS_TEXT)
        at = stpcpy(at, "none");
    return at;
}

static char *write_key(const struct bw_row *row, const void *value, char *at)
{
    at = bw_row_room(row, at, BW_KEY_ROOM);
    return at ? bw_write_key(bw_row_lead(row, at), value) : NULL;
}

/* Bytes in a form whose length is known only afterwards. */
static char *write_formed(const struct bw_row *row, const void *value, char *at,
                          void (*append)(struct bw_buffer *, const void *, size_t))
{
    const struct bw_bytes bytes = bw_row_bytes(row, value);
    if (!bytes.data)
        return bw_row_absent(row, at);
    append(bw_row_buffer(row, bw_row_lead(row, at)), bytes.data, bytes.length);
    return bw_row_end(row, 0);
}

static char *write_escaped(const struct bw_row *row, const void *value, char *at)
{
    return write_formed(row, value, at, bw_escape_append);
}

/* One word: quoted if it is empty or holds spaces or quotes, with unprintable bytes escaped. */
static void append_word(struct bw_buffer *text, const void *bytes, size_t length)
{
    const char *next = bytes, *end = next + length;
    bool quoted = !length || memchr(next, ' ', length) || memchr(next, '"', length);
    if (quoted)
        bw_buffer_append_byte(text, '"');
    for (const char *run = next; next < end; next = run) {
        while (run < end && *run != ' ' && *run != '"')
            run++;
        bw_escape_append(text, next, (size_t)(run - next));
        for (; run < end && (*run == ' ' || *run == '"'); run++) {
            bw_buffer_append(text, "\\", *run == '"');
            bw_buffer_append_byte(text, *run);
        }
    }
    if (quoted)
        bw_buffer_append_byte(text, '"');
}

static char *write_word(const struct bw_row *row, const void *value, char *at)
{
    return write_formed(row, value, at, append_word);
}

/* DEVID:OFFSET, with commas between them. */
static char *write_stripes(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_stripes *stripes = value;
    if (!stripes->data)
        return bw_row_absent(row, at);
    at = bw_row_room(row, at, (stripes->length + 1) * (2 * BW_DECIMAL_ROOM + 2));
    if (!at)
        return NULL;
    at = bw_row_lead(row, at);
    for (uint64_t i = 0; i < stripes->length; i++) {
        if (i)
            *at++ = ',';
        at = bw_decimal(at, stripes->data[i].devid);
        *at++ = ':';
        at = bw_decimal(at, stripes->data[i].offset);
    }
    return at;
}

/* Names as `ls -b` writes them hold no spaces. */
static char *write_names(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_names *names = value;
    if (!names->length)
        return bw_row_absent(row, at);
    at = bw_row_lead(row, at);
    struct bw_buffer *buffer = bw_row_buffer(row, at);
    for (uint64_t i = 0; i < names->length; i++) {
        bw_buffer_append(buffer, " ", i > 0);
        bw_escape_append(buffer, names->data[i].data, names->data[i].length);
    }
    return bw_row_end(row, 0);
}

bw_column_writer *bw_text_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options)
{
    const bool words = (int)options->style == BW_ROWS_WORDS && member->format != BW_FORMAT_UUID;
    const bool escape = options->escape && member->format == BW_FORMAT_NAME;
    switch (member->type) {
    case BW_TYPE_KEY:
        return write_key;
    case BW_TYPE_STRIPES:
        return write_stripes;
    case BW_TYPE_NAMES:
        return write_names;
    case BW_TYPE_TEXT:
    case BW_TYPE_BYTES:
        if (words)
            return write_word;
        if (member->format == BW_FORMAT_UUID)
            return write_uuid;
        if (member->format == BW_FORMAT_BASE64)
            return write_base64;
        if (member->format == BW_FORMAT_HEX)
            return write_hex_bytes;
        return escape ? write_escaped : write_raw;
    default:
        break;
    }
    switch (member->format) {
    case BW_FORMAT_SIZE:
        if (options->units == BW_ROWS_IEC)
            return write_iec;
        return options->units == BW_ROWS_SI ? write_si : bw_write_unsigned;
    case BW_FORMAT_OCTAL:
        return write_octal;
    case BW_FORMAT_HEX:
        return bw_write_hex;
    case BW_FORMAT_WORD:
        return write_word_of;
    case BW_FORMAT_FLAGS:
        return write_flags;
    case BW_FORMAT_TIME:
        if (options->times)
            return options->times == BW_ROWS_SECONDS ? bw_write_time_in_seconds : write_date;
        break;
    default:
        break;
    }
    return member->type == BW_TYPE_I64 ? bw_write_signed : bw_write_unsigned;
}
