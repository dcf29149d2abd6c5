/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as Arrow: writers of packed rows, and batches, which turn packed rows into columns.
 *
 * A column is a number, a time, a truth value, a word of a dictionary, or text; structures within a
 * row are the text of JSON. Combined flags are one word: some readers fail with lists of words. A
 * name, which need not be UTF-8, becomes two columns, as in JSON: NAME, and NAME_bytes, of which
 * one is null.
 */
#include "record/row_arrow.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/utf8.h"
#include "record/arrow_batch.h"

/* Packed rows. */

static bool is_packed_number(const struct bw_member *member)
{
    return member->type == BW_TYPE_U64 || member->type == BW_TYPE_I64;
}

bool bw_arrow_is_text(const struct bw_member *member)
{
    return !is_packed_number(member);
}

static enum bw_arrow_kind kind_of(const struct bw_member *member)
{
    switch (member->format) {
    case BW_FORMAT_WORD:
    case BW_FORMAT_FLAGS:
        return BW_ARROW_WORD;
    case BW_FORMAT_BASE64:
        return BW_ARROW_BYTES;
    case BW_FORMAT_BOOL:
        return BW_ARROW_TRUTH;
    case BW_FORMAT_TIME:
        return member->type == BW_TYPE_I64 ? BW_ARROW_TIME : BW_ARROW_UNSIGNED;
    default:
        return member->type == BW_TYPE_U64   ? BW_ARROW_UNSIGNED
               : member->type == BW_TYPE_I64 ? BW_ARROW_SIGNED
                                             : BW_ARROW_TEXT;
    }
}

static bool is_name(const struct bw_member *member)
{
    return member->format == BW_FORMAT_NAME &&
           (member->type == BW_TYPE_TEXT || member->type == BW_TYPE_BYTES);
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
    if (is_packed_number(member)) {
        column->write_text = *value;
        *value = write_number;
        return;
    }
    if (kind_of(member) == BW_ARROW_BYTES)
        *value = write_bytes;
    column->write_text = column->write;
    column->write = write_text;
}

/* Words. */

static void append32(struct bw_buffer *buffer, size_t value)
{
    const bw_le32 stored = bw_put32((uint32_t)value);
    bw_buffer_append(buffer, &stored, sizeof stored);
}

static uint32_t add_word(struct bw_arrow_words *words, uint64_t key, const char *word,
                         size_t length)
{
    bw_buffer_append(&words->data, word, length);
    append32(&words->ends, words->data.length);
    words->written = false;
    if (!bw_map_put(&words->numbers, key, words->count))
        words->data.failed = true;
    return words->count++;
}

static bool is_word(const struct bw_arrow_words *words, uint32_t number, const char *word,
                    size_t length)
{
    bw_le32 ends[2];
    memcpy(ends, words->ends.data + number * sizeof *ends, sizeof ends);
    const uint32_t start = bw_get32(ends[0]);
    return bw_get32(ends[1]) - start == length &&
           memcmp(words->data.data + start, word, length) == 0;
}

/* The number of a word. A word may have several numbers if another word has the same hash. */
static uint32_t number_of_word(struct bw_arrow_words *words, const char *word, size_t length)
{
    const uint64_t key = bw_hash_path(word, length);
    const uint32_t number = bw_map_get(&words->numbers, key);
    const bool failed = words->ends.failed || words->data.failed;
    return number != UINT32_MAX && !failed && is_word(words, number, word, length)
               ? number
               : add_word(words, key, word, length);
}

/* The number of the name of a value, or of the names of its bits. Most rows repeat the value of the
 * row before. */
static uint32_t number_of_value(struct bw_arrow_batch *batch, unsigned column, uint64_t value)
{
    struct bw_arrow_words *words = &batch->fields[batch->first[column]].words;
    const struct bw_row row = {batch->rows, &batch->rows->columns[column], &batch->message};
    if (words->count && value == words->last_value)
        return words->last_number;
    batch->message.length = 0;
    const char *start = bw_row_end(&row, 0);
    const char *end = start ? row.column->write_text(&row, &value, batch->message.data) : NULL;
    if (!end) {
        words->data.failed = true;
        return 0;
    }
    start = batch->message.data + row.column->lead.length;
    words->last_value = value;
    return words->last_number = number_of_word(words, start, (size_t)(end - start));
}

static void begin_words(struct bw_arrow_words *words)
{
    bw_map_clear(&words->numbers);
    words->ends.length = words->data.length = words->count = 0;
    append32(&words->ends, 0);
    words->written = false;
}

/* Batches. */

enum {
    MOST_ROWS = 4096,
    ENOUGH_BYTES = 4 << 20, /* of packed rows */
    ENOUGH_WORDS = 4096,    /* then a dictionary begins again: images may have any flags */
};

static void add_field(struct bw_arrow_batch *batch, const struct bw_member *member,
                      const char *suffix, enum bw_arrow_kind kind)
{
    struct bw_arrow_field *field = &batch->fields[batch->field_count++];
    *field = (struct bw_arrow_field){.member = member, .suffix = suffix, .kind = kind};
    if (kind == BW_ARROW_WORD)
        begin_words(&field->words);
}

static struct bw_arrow_batch *create_batch(const struct bw_rows *rows)
{
    struct bw_arrow_batch *batch = calloc(1, sizeof *batch);
    for (unsigned i = 0; batch && i < rows->column_count; i++) {
        const struct bw_member *member = rows->columns[i].member;
        batch->first[i] = (unsigned char)batch->field_count;
        add_field(batch, member, "", kind_of(member));
        if (is_name(member))
            add_field(batch, member, "_bytes", BW_ARROW_BYTES);
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

static void append_end(struct bw_arrow_field *field)
{
    append32(&field->ends, field->data.length);
}

/* Makes a column as long as others, with nulls. */
static void fill_up(struct bw_arrow_field *field, uint64_t count)
{
    const bool has_ends = bw_arrow_has_ends(field);
    if (has_ends && !field->ends.length)
        append_end(field);
    for (; field->count < count; field->count++) {
        field->nulls++;
        if (has_ends)
            append_end(field);
        else if (field->kind != BW_ARROW_TRUTH)
            append_zeros(&field->data,
                         field->kind == BW_ARROW_WORD ? sizeof(bw_le32) : sizeof(bw_le64));
    }
}

static void begin_value(struct bw_arrow_field *field, uint64_t row)
{
    fill_up(field, row);
    set_bit(&field->valid, field->count++);
}

static void append_number(struct bw_arrow_batch *batch, unsigned column, const char *value)
{
    struct bw_arrow_field *field = &batch->fields[batch->first[column]];
    uint64_t number;
    memcpy(&number, value, sizeof number);
    begin_value(field, batch->count);
    const bw_le64 stored = bw_put64(number);
    if (field->kind == BW_ARROW_WORD)
        append32(&field->data, number_of_value(batch, column, number));
    else if (field->kind != BW_ARROW_TRUTH)
        bw_buffer_append(&field->data, &stored, sizeof stored);
    else if (number)
        set_bit(&field->data, batch->count);
}

static struct bw_error *append_text(struct bw_arrow_field *field, uint64_t row, const char *text,
                                    size_t length)
{
    if (length > INT32_MAX - field->data.length)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "column %s is too long for Arrow",
                               field->member->name);
    begin_value(field, row);
    if (field->kind == BW_ARROW_WORD) {
        append32(&field->data, number_of_word(&field->words, text, length));
    } else {
        bw_buffer_append(&field->data, text, length);
        append_end(field);
    }
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
        const struct bw_member *member = batch->rows->columns[column].member;
        struct bw_arrow_field *field = &batch->fields[batch->first[column]];
        if (is_packed_number(member))
            append_number(batch, column, at + 1);
        else
            BW_TRY(append_text(field +
                                   (is_name(member) && !bw_utf8_is_valid(at + lead, length - lead)),
                               batch->count, at + lead, length - lead));
        at += length;
    }
    batch->count++;
    return NULL;
}

static bool has_failed(const struct bw_arrow_field *field)
{
    return field->valid.failed || field->ends.failed || field->data.failed ||
           field->words.ends.failed || field->words.data.failed;
}

/* Makes the column as long as the batch. */
static void complete_column(struct bw_arrow_field *field, uint64_t count)
{
    const size_t bytes = (size_t)(count + 7) / 8;
    fill_up(field, count);
    struct bw_buffer *bits[] = {&field->valid,
                                field->kind == BW_ARROW_TRUTH ? &field->data : &field->valid};
    for (unsigned i = 0; i < 2; i++)
        if (bits[i]->length < bytes)
            append_zeros(bits[i], bytes - bits[i]->length);
}

static void clear_batch(struct bw_arrow_batch *batch)
{
    for (unsigned i = 0; i < batch->field_count; i++) {
        struct bw_arrow_field *field = &batch->fields[i];
        field->valid.length = field->ends.length = field->data.length = 0;
        field->count = field->nulls = 0;
        if (field->words.count > ENOUGH_WORDS)
            begin_words(&field->words);
    }
    batch->count = batch->bytes = 0;
}

static bool are_structures(const struct bw_rows_stream *stream)
{
    return stream->rows->style == BW_ROWS_ARROW_STRUCTURES;
}

static struct bw_error *pass_on_batch(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch;
    bool failed = false;
    for (unsigned i = 0; i < batch->field_count; i++) {
        complete_column(&batch->fields[i], batch->count);
        failed |= has_failed(&batch->fields[i]);
    }
    struct bw_error *error =
        failed ? bw_error_no_memory()
               : (are_structures(stream) ? bw_arrow_pass_batch : bw_arrow_write_batch)(stream);
    clear_batch(batch); /* also after an error: its buffers may have moved, and bw_arrow_end()
                           follows */
    return error;
}

struct bw_error *bw_arrow_begin(struct bw_rows_stream *stream)
{
    stream->batch = create_batch(stream->rows);
    if (!stream->batch)
        return bw_error_no_memory();
    return (are_structures(stream) ? bw_arrow_pass_schema : bw_arrow_write_schema)(stream);
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
            BW_TRY(pass_on_batch(stream));
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
        bw_buffer_free(&batch->fields[i].words.ends);
        bw_buffer_free(&batch->fields[i].words.data);
        bw_map_free(&batch->fields[i].words.numbers);
    }
    if (batch) {
        bw_buffer_free(&batch->pending);
        bw_buffer_free(&batch->message);
    }
    free(batch);
}

struct bw_error *bw_arrow_end(struct bw_rows_stream *stream)
{
    struct bw_arrow_batch *batch = stream->batch;
    struct bw_error *error = batch->count ? pass_on_batch(stream) : NULL;
    if (!error && !are_structures(stream))
        error = bw_arrow_write_end(stream);
    destroy_batch(batch);
    stream->batch = NULL;
    return error;
}
