/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows that have become columns, between row_arrow.c, which fills them, and the two forms in which
 * they leave: messages (arrow_messages.c) and structures (arrow_arrays.c).
 */
#ifndef BW_RECORD_ARROW_BATCH_H
#define BW_RECORD_ARROW_BATCH_H

#include "base/map.h"
#include "record/row.h"

/** The type of a column. */
enum bw_arrow_kind {
    BW_ARROW_UNSIGNED,
    BW_ARROW_SIGNED,
    BW_ARROW_TIME,
    BW_ARROW_TRUTH,
    BW_ARROW_TEXT,
    BW_ARROW_BYTES,
    BW_ARROW_WORD, /**< numbers of words in a dictionary */
};

/** The words of a column: those that its rows have contained. */
struct bw_arrow_words {
    struct bw_map numbers;       /**< by the hashes of the words */
    struct bw_buffer ends, data; /**< as of a column of text */
    uint32_t count;
    uint64_t last_value; /**< a value that was named last, and the number of its word */
    uint32_t last_number;
    bool written; /**< its present words have been passed on */
};

/** A column. */
struct bw_arrow_field {
    const struct bw_member *member;
    const char *suffix; /**< of the name */
    enum bw_arrow_kind kind;
    uint64_t count, nulls;              /**< rows so far, and how many of them are null */
    struct bw_buffer valid, ends, data; /**< ends: of text, with a 0 before the first */
    struct bw_arrow_words words;
};

enum { BW_ARROW_FIELDS = 2 * BW_RECORD_MEMBERS };

/** Rows that have not been passed on yet. */
struct bw_arrow_batch {
    const struct bw_rows *rows;
    uint64_t count, bytes;
    unsigned field_count;
    unsigned char first[BW_RECORD_MEMBERS]; /**< the field of a column of the rows */
    struct bw_buffer pending;               /**< the beginning of a row */
    struct bw_buffer message;
    struct bw_arrow_field fields[BW_ARROW_FIELDS];
};

/** Whether the values of a column end where `ends` says. */
static inline bool bw_arrow_has_ends(const struct bw_arrow_field *field)
{
    return field->kind == BW_ARROW_TEXT || field->kind == BW_ARROW_BYTES;
}

/** Writes the schema as a message. */
struct bw_error *bw_arrow_write_schema(struct bw_rows_stream *stream);

/** Writes a batch, whose columns are complete, and before it the dictionaries that have grown. */
struct bw_error *bw_arrow_write_batch(struct bw_rows_stream *stream);

/** The same as structures (btrfs-walk/arrow.h). The buffers of the columns move into them.
 * BW_ERROR_UNSUPPORTED on big-endian machines. */
struct bw_error *bw_arrow_pass_schema(struct bw_rows_stream *stream);
struct bw_error *bw_arrow_pass_batch(struct bw_rows_stream *stream);

/** Writes the end of the stream. */
struct bw_error *bw_arrow_write_end(struct bw_rows_stream *stream);

#endif
