/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arrow IPC streams: writers of packed rows; batches, which turn packed rows into columns; and
 * messages, whose metadata are flatbuffers, written front to back.
 *
 * A column is a number, a time, a truth value, or text as in columns of text. A name, which need
 * not be UTF-8, becomes two columns, as in JSON: NAME, and NAME_bytes, of which one is null.
 */
#include "record/row_arrow.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/utf8.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* Packed rows. */

/* The type of a column of the stream. */
enum kind { UNSIGNED, SIGNED, TIME, TRUTH, TEXT, BYTES };

static enum kind kind_of(const struct bw_member *member)
{
    const enum bw_member_format format = member->format;
    if (member->type == BW_TYPE_I64)
        return format == BW_FORMAT_TIME ? TIME : SIGNED;
    if (member->type != BW_TYPE_U64)
        return format == BW_FORMAT_BASE64 ? BYTES : TEXT;
    return format == BW_FORMAT_BOOL                                ? TRUTH
           : format == BW_FORMAT_WORD || format == BW_FORMAT_FLAGS ? TEXT
                                                                   : UNSIGNED;
}

static bool is_name(const struct bw_member *member)
{
    return member->format == BW_FORMAT_NAME &&
           (member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES);
}

bool bw_arrow_is_text(const struct bw_member *member)
{
    return kind_of(member) >= TEXT;
}

static char *write_number(const struct bw_row *row, const void *value, char *at)
{
    at = bw_row_lead(row, at);
    memcpy(at, value, sizeof(uint64_t));
    return at + sizeof(uint64_t);
}

/* Bytes of which the text is another form. */
static char *write_bytes(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_bytes *bytes = value;
    at = bw_row_room(row, bw_row_lead(row, at), bytes->length);
    if (!at)
        return NULL;
    memcpy(at, bytes->data, bytes->length);
    return at + bytes->length;
}

/* Text has the lead before it, with room for the length; and then it has the length. All values
 * that can be absent begin with a pointer. */
static char *write_text(const struct bw_row *row, const void *value, char *at)
{
    const struct bw_member *member = row->column->member;
    const bool has_pointer =
        !member->field && member->type >= BW_TYPE_TEXT && member->type != BW_TYPE_KEY;
    const size_t start = (size_t)(at - row->buffer->data) + 1;
    if (has_pointer && !*(void *const *)value)
        return at;
    at = row->column->write_text(row, value, at);
    if (!at)
        return NULL;
    const size_t length = (size_t)(at - row->buffer->data) - start - sizeof(bw_le32);
    const bw_le32 stored = bw_put32((uint32_t)length);
    if (length > INT32_MAX)
        row->buffer->failed = true;
    memcpy(row->buffer->data + start, &stored, sizeof stored);
    return at;
}

void bw_arrow_column(struct bw_column *column)
{
    const struct bw_member *member = column->member;
    bw_column_writer **value = column->write_value ? &column->write_value : &column->write;
    if (kind_of(member) < TEXT) {
        *value = write_number;
        return;
    }
    if (kind_of(member) == BYTES)
        *value = write_bytes;
    column->write_text = column->write;
    column->write = write_text;
}

/* Batches. */

/* A column of the stream. */
struct field {
    const char *name, *suffix;
    enum kind kind;
    uint64_t count, nulls;              /* rows so far, and how many of them are null */
    struct bw_buffer valid, ends, data; /* ends: of text, with a 0 before the first */
};

enum {
    MOST_ROWS = 4096,
    ENOUGH_BYTES = 4 << 20, /* of packed rows */
    MOST_FIELDS = 2 * BW_RECORD_MEMBERS,
};

/** Rows that have not been written yet. */
struct bw_arrow_batch {
    const struct bw_rows *rows;
    uint64_t count, bytes;
    unsigned field_count;
    unsigned char first[BW_RECORD_MEMBERS]; /* the field of a column of the rows */
    struct bw_buffer pending;               /* the beginning of a row */
    struct bw_buffer message;
    struct field fields[MOST_FIELDS];
};

static void add_field(struct bw_arrow_batch *batch, const char *name, const char *suffix,
                      enum kind kind)
{
    batch->fields[batch->field_count++] =
        (struct field){.name = name, .suffix = suffix, .kind = kind};
}

static struct bw_arrow_batch *create_batch(const struct bw_rows *rows)
{
    struct bw_arrow_batch *batch = calloc(1, sizeof *batch);
    for (unsigned i = 0; batch && i < rows->column_count; i++) {
        const struct bw_member *member = rows->columns[i].member;
        batch->first[i] = (unsigned char)batch->field_count;
        add_field(batch, member->name, "", kind_of(member));
        if (is_name(member))
            add_field(batch, member->name, "_bytes", BYTES);
    }
    if (batch)
        batch->rows = rows;
    return batch;
}

static void append_zeros(struct bw_buffer *buffer, size_t length)
{
    static const char zeros[64];
    for (; length > sizeof zeros; length -= sizeof zeros)
        bw_buffer_append(buffer, zeros, sizeof zeros);
    bw_buffer_append(buffer, zeros, length);
}

static void set_bit(struct bw_buffer *bits, uint64_t number)
{
    if (bits->length <= number / 8)
        append_zeros(bits, number / 8 + 1 - bits->length);
    if (!bits->failed)
        bits->data[number / 8] = (char)(bits->data[number / 8] | 1 << number % 8);
}

static void append_end(struct field *field)
{
    const bw_le32 end = bw_put32((uint32_t)field->data.length);
    bw_buffer_append(&field->ends, &end, sizeof end);
}

/* Makes a column as long as others, with nulls. */
static void fill_up(struct field *field, uint64_t count)
{
    if (field->kind >= TEXT && !field->ends.length)
        append_end(field);
    for (; field->count < count; field->count++) {
        field->nulls++;
        if (field->kind >= TEXT)
            append_end(field);
        else if (field->kind != TRUTH)
            append_zeros(&field->data, sizeof(uint64_t));
    }
}

static void append_number(struct field *field, uint64_t row, const char *value)
{
    uint64_t number;
    memcpy(&number, value, sizeof number);
    fill_up(field, row);
    const bw_le64 stored = bw_put64(number);
    set_bit(&field->valid, field->count++);
    if (field->kind != TRUTH)
        bw_buffer_append(&field->data, &stored, sizeof stored);
    else if (number)
        set_bit(&field->data, row);
}

static struct bw_error *append_text(struct field *field, uint64_t row, const char *text,
                                    size_t length)
{
    if (length > INT32_MAX - field->data.length)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "column %s is too long for Arrow",
                               field->name);
    fill_up(field, row);
    set_bit(&field->valid, field->count++);
    bw_buffer_append(&field->data, text, length);
    append_end(field);
    return NULL;
}

/* The length of a packed value, with the number of its column; 0 if it is not complete. */
static size_t value_length(const struct bw_rows *rows, const char *at, const char *end)
{
    bw_le32 length;
    const size_t lead = 1 + sizeof length, left = (size_t)(end - at);
    if (!bw_arrow_is_text(rows->columns[(uint8_t)*at].member))
        return left > sizeof(uint64_t) ? 1 + sizeof(uint64_t) : 0;
    if (left < lead)
        return 0;
    memcpy(&length, at + 1, sizeof length);
    return left - lead >= bw_get32(length) ? lead + bw_get32(length) : 0;
}

/* The end of a packed row; NULL if it is not complete. */
static const char *row_end(const struct bw_rows *rows, const char *at, const char *end)
{
    while (at < end && (uint8_t)*at != BW_PACKED_END) {
        const size_t length = value_length(rows, at, end);
        if (!length)
            return NULL;
        at += length;
    }
    return at < end ? at + 1 : NULL;
}

static struct bw_error *add_row(struct bw_arrow_batch *batch, const char *at, const char *end)
{
    while ((uint8_t)*at != BW_PACKED_END) {
        const size_t length = value_length(batch->rows, at, end), lead = 1 + sizeof(bw_le32);
        const unsigned column = (uint8_t)*at;
        struct field *field = &batch->fields[batch->first[column]];
        if (field->kind < TEXT)
            append_number(field, batch->count, at + 1);
        else
            BW_TRY(append_text(field + (is_name(batch->rows->columns[column].member) &&
                                        !bw_utf8_is_valid(at + lead, length - lead)),
                               batch->count, at + lead, length - lead));
        at += length;
    }
    batch->count++;
    return NULL;
}

/* Flatbuffers. Everything that an object refers to follows it. */

/* Where the members of a table are; 0: absent. */
struct table {
    size_t start;
    size_t at[8];
};

static void append16(struct bw_buffer *flat, size_t value)
{
    const bw_le16 stored = bw_put16((uint16_t)value);
    bw_buffer_append(flat, &stored, sizeof stored);
}

static void append32(struct bw_buffer *flat, size_t value)
{
    const bw_le32 stored = bw_put32((uint32_t)value);
    bw_buffer_append(flat, &stored, sizeof stored);
}

static void append64(struct bw_buffer *flat, uint64_t value)
{
    const bw_le64 stored = bw_put64(value);
    bw_buffer_append(flat, &stored, sizeof stored);
}

/* Pads so that the end of `more` further bytes is aligned. */
static void align(struct bw_buffer *flat, size_t more, size_t alignment)
{
    append_zeros(flat, (alignment - (flat->length + more) % alignment) % alignment);
}

static void set(struct bw_buffer *flat, size_t at, size_t size, uint64_t value)
{
    const bw_le64 stored = bw_put64(value);
    if (!flat->failed)
        memcpy(flat->data + at, &stored, size);
}

/* Sets a reference to an object. */
static void refer(struct bw_buffer *flat, size_t at, size_t object)
{
    set(flat, at, sizeof(bw_le32), object - at);
}

/* A table of zeros, whose members have the sizes of these digits; 0: the member is absent. */
static struct table add_table(struct bw_buffer *flat, const char *sizes)
{
    struct table table = {0};
    const size_t count = strlen(sizes), about = 4 + 2 * count;
    size_t offsets[8], size = 4;
    for (size_t i = 0; i < count; i++) {
        const size_t length = (size_t)(sizes[i] - '0');
        size += length ? (length - size % length) % length : 0;
        offsets[i] = length ? size : 0;
        size += length;
    }
    align(flat, about, 8);
    append16(flat, about);
    append16(flat, size);
    for (size_t i = 0; i < count; i++)
        append16(flat, offsets[i]);
    table.start = flat->length;
    append32(flat, about);
    append_zeros(flat, size - 4);
    for (size_t i = 0; i < count; i++)
        table.at[i] = table.start + offsets[i];
    return table;
}

/* Begins a vector, and refers to it. */
static void add_vector(struct bw_buffer *flat, size_t reference, size_t count, size_t alignment)
{
    align(flat, 4, alignment);
    refer(flat, reference, flat->length);
    append32(flat, count);
}

static void add_string(struct bw_buffer *flat, size_t reference, const char *text,
                       const char *suffix)
{
    add_vector(flat, reference, strlen(text) + strlen(suffix), 4);
    bw_buffer_append(flat, text, strlen(text));
    bw_buffer_append(flat, suffix, strlen(suffix) + 1);
}

/* Messages: tables of Message.fbs and Schema.fbs. */

enum { VERSION_5 = 4, SCHEMA = 1, RECORD_BATCH = 3, NANOSECOND = 3 };

/* Begins a Message; `*header` is where its header is to be referred to. */
static void begin_message(struct bw_buffer *flat, unsigned type, uint64_t body, size_t *header)
{
    flat->length = 0;
    append32(flat, 0);
    const struct table message = add_table(flat, "2148");
    refer(flat, 0, message.start);
    set(flat, message.at[0], 2, VERSION_5);
    set(flat, message.at[1], 1, type);
    set(flat, message.at[3], 8, body);
    *header = message.at[2];
}

static struct bw_error *write_message(struct bw_rows_stream *stream, struct bw_buffer *flat)
{
    char prefix[8] = {-1, -1, -1, -1};
    align(flat, 0, 8);
    const bw_le32 length = bw_put32((uint32_t)flat->length);
    memcpy(prefix + 4, &length, sizeof length);
    if (flat->failed)
        return bw_error_no_memory();
    BW_TRY(stream->consume(stream->context, prefix, sizeof prefix));
    return stream->consume(stream->context, flat->data, flat->length);
}

/* The member `type` of a Field: a union of tables. */
static void add_type(struct bw_buffer *flat, const struct table *field, enum kind kind)
{
    enum { INT = 2, BINARY = 4, UTF8 = 5, BOOL = 6, TIMESTAMP = 10 };
    static const uint8_t types[] = {[UNSIGNED] = INT, [SIGNED] = INT, [TIME] = TIMESTAMP,
                                    [TRUTH] = BOOL,   [TEXT] = UTF8,  [BYTES] = BINARY};
    const struct table type = add_table(flat, kind <= SIGNED ? "41" : kind == TIME ? "24" : "");
    set(flat, field->at[2], 1, types[kind]);
    refer(flat, field->at[3], type.start);
    if (kind <= SIGNED) {
        set(flat, type.at[0], 4, 64);
        set(flat, type.at[1], 1, kind == SIGNED);
    } else if (kind == TIME) {
        set(flat, type.at[0], 2, NANOSECOND);
        add_string(flat, type.at[1], "UTC", "");
    }
}

/* A Field: all columns may have nulls. */
static void add_schema_field(struct bw_buffer *flat, size_t reference, const struct field *column)
{
    const struct table field = add_table(flat, "411404");
    refer(flat, reference, field.start);
    set(flat, field.at[1], 1, true);
    add_string(flat, field.at[0], column->name, column->suffix);
    add_type(flat, &field, column->kind);
    add_vector(flat, field.at[5], 0, 4);
}

static void add_metadata(struct bw_buffer *flat, size_t reference, const char *key,
                         const char *value)
{
    const struct table pair = add_table(flat, "44");
    refer(flat, reference, pair.start);
    add_string(flat, pair.at[0], key, "");
    add_string(flat, pair.at[1], value, "");
}

/* References are in a vector, each of four bytes. */
static size_t element(size_t vector, size_t number)
{
    return vector + 4 * number;
}

struct bw_error *bw_arrow_begin(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch = create_batch(stream->rows);
    if (!batch)
        return bw_error_no_memory();
    struct bw_buffer *flat = &batch->message;
    size_t header;
    begin_message(flat, SCHEMA, 0, &header);
    const struct table schema = add_table(flat, "244");
    refer(flat, header, schema.start);
    add_vector(flat, schema.at[1], batch->field_count, 4);
    const size_t fields = flat->length;
    append_zeros(flat, element(0, batch->field_count));
    add_vector(flat, schema.at[2], 2, 4);
    const size_t metadata = flat->length;
    append_zeros(flat, element(0, 2));
    for (unsigned i = 0; i < batch->field_count; i++)
        add_schema_field(flat, element(fields, i), &batch->fields[i]);
    add_metadata(flat, element(metadata, 0), "btrfs-walk.version", BW_VERSION);
    add_metadata(flat, element(metadata, 1), "btrfs-walk.record", stream->rows->record->name);
    return write_message(stream, flat);
}

/* The buffers of a column, of which the first is empty if there are no nulls. */
static unsigned buffers_of(struct field *field, const struct bw_buffer *buffers[3])
{
    static const struct bw_buffer none;
    unsigned count = 0;
    buffers[count++] = field->nulls ? &field->valid : &none;
    if (field->kind >= TEXT)
        buffers[count++] = &field->ends;
    buffers[count++] = &field->data;
    return count;
}

static size_t padded(const struct bw_buffer *buffer)
{
    return (buffer->length + 7) / 8 * 8;
}

/* Fills up a column; returns the length of its buffers. */
static size_t complete(struct field *field, uint64_t count)
{
    const struct bw_buffer *buffers[3];
    size_t length = 0;
    fill_up(field, count);
    struct bw_buffer *bits[] = {&field->valid, field->kind == TRUTH ? &field->data : &field->valid};
    for (unsigned i = 0; i < 2; i++)
        if (bits[i]->length < (count + 7) / 8)
            append_zeros(bits[i], (size_t)(count + 7) / 8 - bits[i]->length);
    for (unsigned i = buffers_of(field, buffers); i > 0; i--)
        length += padded(buffers[i - 1]);
    return length;
}

static bool has_failed(const struct field *field)
{
    return field->valid.failed || field->ends.failed || field->data.failed;
}

/* The metadata of a batch: a RecordBatch with a FieldNode for each column, and a Buffer for each
 * buffer. */
static void describe(struct bw_arrow_batch *batch, size_t body)
{
    struct bw_buffer *flat = &batch->message;
    const struct bw_buffer *buffers[3];
    size_t header, offset = 0, count = 0;
    begin_message(flat, RECORD_BATCH, body, &header);
    const struct table table = add_table(flat, "844");
    refer(flat, header, table.start);
    set(flat, table.at[0], 8, batch->count);
    add_vector(flat, table.at[1], batch->field_count, 8);
    for (unsigned i = 0; i < batch->field_count; i++) {
        append64(flat, batch->count);
        append64(flat, batch->fields[i].nulls);
        count += buffers_of(&batch->fields[i], buffers);
    }
    add_vector(flat, table.at[2], count, 8);
    for (unsigned i = 0; i < batch->field_count; i++) {
        const unsigned length = buffers_of(&batch->fields[i], buffers);
        for (unsigned k = 0; k < length; offset += padded(buffers[k++])) {
            append64(flat, offset);
            append64(flat, buffers[k]->length);
        }
    }
}

/* Writes the buffers of a column, and empties them. */
static struct bw_error *write_field(struct bw_rows_stream *stream, struct field *field)
{
    static const char zeros[8];
    const struct bw_buffer *buffers[3];
    const unsigned count = buffers_of(field, buffers);
    for (unsigned i = 0; i < count; i++) {
        const size_t length = buffers[i]->length;
        if (length)
            BW_TRY(stream->consume(stream->context, buffers[i]->data, length));
        if (length % 8)
            BW_TRY(stream->consume(stream->context, zeros, 8 - length % 8));
    }
    field->valid.length = field->ends.length = field->data.length = 0;
    field->count = field->nulls = 0;
    return NULL;
}

static struct bw_error *write_batch(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch;
    bool failed = false;
    size_t body = 0;
    for (unsigned i = 0; i < batch->field_count; i++) {
        body += complete(&batch->fields[i], batch->count);
        failed |= has_failed(&batch->fields[i]);
    }
    if (failed)
        return bw_error_no_memory();
    describe(batch, body);
    BW_TRY(write_message(stream, &batch->message));
    for (unsigned i = 0; i < batch->field_count; i++)
        BW_TRY(write_field(stream, &batch->fields[i]));
    batch->count = batch->bytes = 0;
    return NULL;
}

/* Adds the complete rows; returns their length. */
static struct bw_error *add_rows(struct bw_rows_stream *stream, const char *rows, size_t length,
                                 size_t *done)
{
    struct bw_arrow_batch *batch = stream->batch;
    const char *at = rows, *next;
    while ((next = row_end(batch->rows, at, rows + length))) {
        BW_TRY(add_row(batch, at, next));
        batch->bytes += (size_t)(next - at);
        at = next;
        if (batch->count == MOST_ROWS || batch->bytes >= ENOUGH_BYTES)
            BW_TRY(write_batch(stream));
    }
    *done = (size_t)(at - rows);
    return NULL;
}

struct bw_error *bw_arrow_take(struct bw_rows_stream *stream, const char *rows, size_t length)
{
    struct bw_buffer *pending = &((struct bw_arrow_batch *)stream->batch)->pending;
    size_t done;
    if (!pending->length) {
        BW_TRY(add_rows(stream, rows, length, &done));
        bw_buffer_append(pending, rows + done, length - done);
    } else {
        bw_buffer_append(pending, rows, length);
        if (pending->failed)
            return bw_error_no_memory();
        BW_TRY(add_rows(stream, pending->data, pending->length, &done));
        memmove(pending->data, pending->data + done, pending->length - done);
        pending->length -= done;
    }
    return pending->failed ? bw_error_no_memory() : NULL;
}

static void destroy_batch(struct bw_arrow_batch *batch)
{
    for (unsigned i = 0; batch && i < batch->field_count; i++) {
        bw_buffer_free(&batch->fields[i].valid);
        bw_buffer_free(&batch->fields[i].ends);
        bw_buffer_free(&batch->fields[i].data);
    }
    if (batch) {
        bw_buffer_free(&batch->pending);
        bw_buffer_free(&batch->message);
    }
    free(batch);
}

struct bw_error *bw_arrow_end(struct bw_rows_stream *stream)
{
    static const char end[8] = {-1, -1, -1, -1};
    struct bw_arrow_batch *batch = stream->batch;
    struct bw_error *error = batch->count ? write_batch(stream) : NULL;
    if (!error)
        error = stream->consume(stream->context, end, sizeof end);
    destroy_batch(batch);
    stream->batch = NULL;
    return error;
}
