/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A choice of members prepared for writing: for each one the text before its value (its lead), and
 * the function that writes the value. Shared by rows.c, which prepares it, and row_text.c and
 * row_json.c, which write.
 *
 * Writers write at a pointer. When one is called there is room for `rows->room` bytes, which is
 * enough for all values of a limited size in a row; a writer whose value has no limit calls
 * bw_row_room().
 */
#ifndef BW_RECORD_ROW_H
#define BW_RECORD_ROW_H

#include "ondisk/structure.h"
#include "record/rows.h"

enum {
    BW_LEAD_STEP = 16,  /**< leads are copied in steps of this size, without a call and, mostly,
                             without a branch */
    BW_VALUE_ROOM = 48, /**< the longest value of limited size, a UUID or a time, with its quotes */
};

/** Text before a value. */
struct bw_lead {
    const char *text; /**< padded to a multiple of BW_LEAD_STEP, and not empty */
    size_t length;
};

/** A row that is being written. */
struct bw_row {
    const struct bw_rows *rows;
    const struct bw_column *column; /**< the present one */
    struct bw_buffer *buffer;
};

/**
 * Writes the lead and the value of the present column at `at`; `value` points into the record.
 * Returns the end, or NULL if memory ran out, which the buffer remembers.
 */
typedef char *bw_column_writer(const struct bw_row *row, const void *value, char *at);

/** A member that was chosen. */
struct bw_column {
    const struct bw_member *member;
    size_t offset;     /**< of the value in the record */
    uint64_t bit;      /**< of the member in masks */
    bool optional;     /**< nothing is written if the member is absent; otherwise a "-" is */
    bool can_repeat;   /**< its text is copied if the rows before have the same value: numbers and
                            names, of which pointers are compared */
    bool follows_time; /**< the column before has a time, too, so its text may be the same */
    bw_column_writer *write;
    bw_column_writer *write_value; /**< of a structure on disk: writes what `write` has read */
    struct bw_lead lead;
    struct bw_lead bytes_lead; /**< in JSON, of a name that is not UTF-8: before its base64 */
    struct bw_rows *nested;    /**< rows of the records within the record; NULL: it contains no
                                    records */
    struct bw_rows **choices;  /**< rows of the structures to choose from; NULL: nothing to choose
                                */
    bool is_array;             /**< there may be several of them */
};

struct bw_rows {
    const struct bw_record *record;
    enum bw_rows_style style;
    enum bw_rows_times times;
    bool header;
    bool escape;
    char terminator;
    size_t room;           /**< of a row, without what values of unlimited size need */
    uint64_t members;      /**< mask of those that must be evaluated */
    struct bw_lead begin;  /**< what each row begins with */
    struct bw_lead absent; /**< in text: replaces an absent value */
    struct bw_lead end;    /**< in the text of a structure: follows the last member */
    const struct bw_structure *structure; /**< on disk; NULL: the record is in memory */
    uint64_t repeats;                     /**< mask of the members that can be repeated */
    unsigned column_count;
    struct bw_column columns[]; /**< then the text of the leads */
};

/** Whether they are the text of a structure; otherwise structures are JSON. */
static inline bool bw_rows_are_text(const struct bw_rows *rows)
{
    return (int)rows->style == BW_ROWS_STRUCTURE;
}

/** Whether a row of records in memory is an object of JSON. */
static inline bool bw_rows_are_objects(const struct bw_rows *rows)
{
    return rows->style != BW_ROWS_TEXT;
}

static inline char *bw_lead_write(char *at, const struct bw_lead *lead)
{
    for (size_t i = 0; i == 0 || i < lead->length; i += BW_LEAD_STEP)
        memcpy(at + i, lead->text + i, BW_LEAD_STEP);
    return at + lead->length;
}

/** Writes the lead of the present column. */
static inline char *bw_row_lead(const struct bw_row *row, char *at)
{
    return bw_lead_write(at, &row->column->lead);
}

/** Writes the lead and "-". */
static inline char *bw_row_absent(const struct bw_row *row, char *at)
{
    return bw_lead_write(bw_row_lead(row, at), &row->rows->absent);
}

/** The buffer, for functions that append to it, if the row ends at `at`. */
static inline struct bw_buffer *bw_row_buffer(const struct bw_row *row, const char *at)
{
    row->buffer->length = (size_t)(at - row->buffer->data);
    return row->buffer;
}

/** The end of the buffer, with room for `more` bytes and all values of limited size; NULL if memory
 * ran out. */
static inline char *bw_row_end(const struct bw_row *row, size_t more)
{
    return bw_buffer_reserve(row->buffer, more + row->rows->room)
               ? row->buffer->data + row->buffer->length
               : NULL;
}

/** Makes room for `more` bytes and, after them, for all values of limited size. Returns where `at`
 * is now; NULL if memory ran out. */
static inline char *bw_row_room(const struct bw_row *row, const char *at, size_t more)
{
    bw_row_buffer(row, at);
    return bw_row_end(row, more);
}

/** Writes the present column, if the record has its member. */
static inline char *bw_row_column(const struct bw_row *row, const void *record, uint64_t present,
                                  char *at)
{
    const struct bw_column *column = row->column;
    if (present & column->bit)
        return column->write(row, (const char *)record + column->offset, at);
    return column->optional ? at : bw_row_absent(row, at);
}

/** Writes the members that are `present`. Returns the end; NULL if memory ran out. */
static inline char *bw_row_columns(const struct bw_rows *rows, const void *record, uint64_t present,
                                   char *at, struct bw_buffer *buffer)
{
    const struct bw_column *end = rows->columns + rows->column_count;
    struct bw_row row = {rows, rows->columns, buffer};
    for (; at && row.column < end; row.column++)
        at = bw_row_column(&row, record, present, at);
    return at;
}

/** The value of a member that is bytes, or a text that ends with NUL. */
static inline struct bw_bytes bw_row_bytes(const struct bw_row *row, const void *value)
{
    if (row->column->member->type != BW_TYPE_TEXT)
        return *(const struct bw_bytes *)value;
    const char *text = *(const char *const *)value;
    return (struct bw_bytes){text, text ? strlen(text) : 0};
}

/** Writers of numbers, in text and in JSON. */
bw_column_writer bw_write_unsigned, bw_write_signed, bw_write_time_in_seconds;

/** The writer of a member in columns of text, or in words. */
bw_column_writer *bw_text_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options);

bw_column_writer bw_write_hex;

/** Writes a number in digits of `bits` bits each. */
char *bw_write_digits(char *at, uint64_t number, unsigned bits);

/** The writer of a member in JSON. */
bw_column_writer *bw_json_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options);

#endif
