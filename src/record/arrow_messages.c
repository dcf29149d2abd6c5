/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of an Arrow IPC stream: the schema, dictionaries and batches. Their metadata are
 * flatbuffers, written front to back. Source of the format: the Arrow columnar format, version 1.0
 * and later (metadata version 5).
 */
#include "base/cleanup.h"
#include "base/endian.h"
#include "record/arrow_batch.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* Flatbuffers. Everything that an object refers to follows it. */

/* Where the members of a table are; 0: absent. */
struct table {
    size_t start;
    size_t at[8];
};

static void append_zeros(struct bw_buffer *flat, size_t length)
{
    for (; length; length--)
        bw_buffer_append_byte(flat, 0);
}

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
static void pad_end(struct bw_buffer *flat, size_t more, size_t alignment)
{
    append_zeros(flat, (alignment - (flat->length + more) % alignment) % alignment);
}

static void set_number(struct bw_buffer *flat, size_t at, size_t size, uint64_t value)
{
    const bw_le64 stored = bw_put64(value);
    if (!flat->failed)
        memcpy(flat->data + at, &stored, size);
}

static void set_reference(struct bw_buffer *flat, size_t at, size_t object)
{
    set_number(flat, at, sizeof(bw_le32), object - at);
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
    pad_end(flat, about, 8);
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
    pad_end(flat, 4, alignment);
    set_reference(flat, reference, flat->length);
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

enum { VERSION_5 = 4, SCHEMA = 1, DICTIONARY_BATCH = 2, RECORD_BATCH = 3, NANOSECOND = 3 };
enum { INT = 2, BINARY = 4, UTF8 = 5, BOOL = 6, TIMESTAMP = 10 };

/* Begins a Message; `*header` is where its header is to be referred to. */
static void begin_message(struct bw_buffer *flat, unsigned type, uint64_t body, size_t *header)
{
    flat->length = 0;
    append32(flat, 0);
    const struct table message = add_table(flat, "2148");
    set_reference(flat, 0, message.start);
    set_number(flat, message.at[0], 2, VERSION_5);
    set_number(flat, message.at[1], 1, type);
    set_number(flat, message.at[3], 8, body);
    *header = message.at[2];
}

/* Writes the header of a message: a mark, and the length of the message. Length 0 ends the stream.
 */
static struct bw_error *write_prefix(struct bw_rows_stream *stream, uint32_t length)
{
    const bw_le32 frame[2] = {bw_put32(UINT32_MAX), bw_put32(length)};
    return stream->consume(stream->context, (const char *)frame, sizeof frame);
}

static struct bw_error *write_message(struct bw_rows_stream *stream, struct bw_buffer *flat)
{
    pad_end(flat, 0, 8);
    if (flat->failed)
        return bw_error_no_memory();
    BW_TRY(write_prefix(stream, (uint32_t)flat->length));
    return stream->consume(stream->context, flat->data, flat->length);
}

/* References are in a vector, each of four bytes. */
static size_t reference_at(size_t vector, size_t number)
{
    return vector + 4 * number;
}

/* The schema. */

/* An Int of `bits` bits. */
static void add_integer(struct bw_buffer *flat, size_t reference, unsigned bits, bool is_signed)
{
    const struct table type = add_table(flat, "41");
    set_reference(flat, reference, type.start);
    set_number(flat, type.at[0], 4, bits);
    set_number(flat, type.at[1], 1, is_signed);
}

/* The member `type` of a Field: a union of tables. */
static void add_type(struct bw_buffer *flat, const struct table *field, enum bw_arrow_kind kind)
{
    static const uint8_t types[] = {
        [BW_ARROW_UNSIGNED] = INT, [BW_ARROW_SIGNED] = INT, [BW_ARROW_TIME] = TIMESTAMP,
        [BW_ARROW_TRUTH] = BOOL,   [BW_ARROW_TEXT] = UTF8,  [BW_ARROW_BYTES] = BINARY,
        [BW_ARROW_WORD] = UTF8,
    };
    set_number(flat, field->at[2], 1, types[kind]);
    if (types[kind] == INT) {
        add_integer(flat, field->at[3], 64, kind == BW_ARROW_SIGNED);
        return;
    }
    const struct table type = add_table(flat, kind == BW_ARROW_TIME ? "24" : "");
    set_reference(flat, field->at[3], type.start);
    if (kind == BW_ARROW_TIME) {
        set_number(flat, type.at[0], 2, NANOSECOND);
        add_string(flat, type.at[1], "UTC", "");
    }
}

/* A DictionaryEncoding: numbers of words have 32 bits. */
static void add_encoding(struct bw_buffer *flat, size_t reference, unsigned number)
{
    const struct table encoding = add_table(flat, "84");
    set_reference(flat, reference, encoding.start);
    set_number(flat, encoding.at[0], 8, number);
    add_integer(flat, encoding.at[1], 32, true);
}

/* A Field: all columns may have nulls. */
static void add_field(struct bw_buffer *flat, size_t reference, const struct bw_arrow_batch *batch,
                      unsigned number)
{
    const struct bw_arrow_field *column = &batch->fields[number];
    const bool has_words = column->kind == BW_ARROW_WORD;
    const struct table field = add_table(flat, has_words ? "411444" : "411404");
    set_reference(flat, reference, field.start);
    set_number(flat, field.at[1], 1, true);
    add_string(flat, field.at[0], column->member->name, column->suffix);
    add_type(flat, &field, column->kind);
    if (has_words)
        add_encoding(flat, field.at[4], number);
    add_vector(flat, field.at[5], 0, 4);
}

static void add_metadata(struct bw_buffer *flat, size_t reference, const char *key,
                         const char *value)
{
    const struct table pair = add_table(flat, "44");
    set_reference(flat, reference, pair.start);
    add_string(flat, pair.at[0], key, "");
    add_string(flat, pair.at[1], value, "");
}

struct bw_error *bw_arrow_write_schema(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch;
    struct bw_buffer *flat = &batch->message;
    size_t header;
    begin_message(flat, SCHEMA, 0, &header);
    const struct table schema = add_table(flat, "244");
    set_reference(flat, header, schema.start);
    add_vector(flat, schema.at[1], batch->field_count, 4);
    const size_t fields = flat->length;
    append_zeros(flat, reference_at(0, batch->field_count));
    add_vector(flat, schema.at[2], 2, 4);
    const size_t metadata = flat->length;
    append_zeros(flat, reference_at(0, 2));
    for (unsigned i = 0; i < batch->field_count; i++)
        add_field(flat, reference_at(fields, i), batch, i);
    add_metadata(flat, reference_at(metadata, 0), "btrfs-walk.version", BW_VERSION);
    add_metadata(flat, reference_at(metadata, 1), "btrfs-walk.record", stream->rows->record->name);
    return write_message(stream, flat);
}

/* Batches. */

/* The nodes and buffers of columns, as a RecordBatch names them. */
struct contents {
    struct {
        uint64_t length, nulls;
    } nodes[BW_ARROW_FIELDS];
    const struct bw_buffer *buffers[3 * BW_ARROW_FIELDS];
    unsigned node_count, buffer_count;
    uint64_t rows;
};

static const struct bw_buffer none;

static void add_node(struct contents *contents, uint64_t length, uint64_t nulls,
                     const struct bw_buffer *valid)
{
    contents->nodes[contents->node_count].length = length;
    contents->nodes[contents->node_count++].nulls = nulls;
    contents->buffers[contents->buffer_count++] = nulls ? valid : &none;
}

static void add_contents(struct contents *contents, const struct bw_arrow_field *field)
{
    add_node(contents, field->count, field->nulls, &field->valid);
    if (bw_arrow_has_ends(field))
        contents->buffers[contents->buffer_count++] = &field->ends;
    contents->buffers[contents->buffer_count++] = &field->data;
}

static size_t padded_length(const struct bw_buffer *buffer)
{
    return (buffer->length + 7) / 8 * 8;
}

static size_t length_of(const struct contents *contents)
{
    size_t length = 0;
    for (unsigned i = 0; i < contents->buffer_count; i++)
        length += padded_length(contents->buffers[i]);
    return length;
}

/* A RecordBatch with a FieldNode for each node, and a Buffer for each buffer. */
static void add_batch(struct bw_buffer *flat, size_t reference, const struct contents *contents)
{
    const struct table table = add_table(flat, "844");
    size_t offset = 0;
    set_reference(flat, reference, table.start);
    set_number(flat, table.at[0], 8, contents->rows);
    add_vector(flat, table.at[1], contents->node_count, 8);
    for (unsigned i = 0; i < contents->node_count; i++) {
        append64(flat, contents->nodes[i].length);
        append64(flat, contents->nodes[i].nulls);
    }
    add_vector(flat, table.at[2], contents->buffer_count, 8);
    for (unsigned i = 0; i < contents->buffer_count;
         offset += padded_length(contents->buffers[i++])) {
        append64(flat, offset);
        append64(flat, contents->buffers[i]->length);
    }
}

static struct bw_error *write_contents(struct bw_rows_stream *stream,
                                       const struct contents *contents)
{
    static const char zeros[8];
    for (unsigned i = 0; i < contents->buffer_count; i++) {
        const struct bw_buffer *buffer = contents->buffers[i];
        if (buffer->length)
            BW_TRY(stream->consume(stream->context, buffer->data, buffer->length));
        if (buffer->length % 8)
            BW_TRY(stream->consume(stream->context, zeros, 8 - buffer->length % 8));
    }
    return NULL;
}

/* A DictionaryBatch with all words. It replaces earlier ones: not all readers accept one that only
 * adds words. */
static struct bw_error *write_words(struct bw_rows_stream *stream, unsigned number)
{
    struct bw_arrow_batch *batch = stream->batch;
    struct bw_arrow_words *words = &batch->fields[number].words;
    struct contents contents = {.rows = words->count};
    size_t header;
    add_node(&contents, words->count, 0, &none);
    contents.buffers[contents.buffer_count++] = &words->ends;
    contents.buffers[contents.buffer_count++] = &words->data;
    begin_message(&batch->message, DICTIONARY_BATCH, length_of(&contents), &header);
    const struct table table = add_table(&batch->message, "84");
    set_reference(&batch->message, header, table.start);
    set_number(&batch->message, table.at[0], 8, number);
    add_batch(&batch->message, table.at[1], &contents);
    words->written = true;
    BW_TRY(write_message(stream, &batch->message));
    return write_contents(stream, &contents);
}

struct bw_error *bw_arrow_write_batch(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch;
    struct contents contents = {.rows = batch->count};
    size_t header;
    for (unsigned i = 0; i < batch->field_count; i++) {
        const struct bw_arrow_field *field = &batch->fields[i];
        if (field->kind == BW_ARROW_WORD && !field->words.written)
            BW_TRY(write_words(stream, i));
        add_contents(&contents, field);
    }
    begin_message(&batch->message, RECORD_BATCH, length_of(&contents), &header);
    add_batch(&batch->message, header, &contents);
    BW_TRY(write_message(stream, &batch->message));
    return write_contents(stream, &contents);
}

struct bw_error *bw_arrow_write_end(struct bw_rows_stream *stream)
{
    return write_prefix(stream, 0);
}
