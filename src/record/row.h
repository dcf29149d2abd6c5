/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A choice of members made ready: for each one the text in front of its value, and the function
 * that writes it. Shared by rows.c, which makes it, and row_text.c and row_json.c, which write.
 *
 * Writers write at a pointer. In front of each there is room for `rows->room` bytes, enough for all
 * values of a limited size in a row; one whose value has no limit calls bw_row_room().
 */
#ifndef BW_RECORD_ROW_H
#define BW_RECORD_ROW_H

#include "record/columns.h"
#include "record/rows.h"

enum {
    BW_LEAD_STEP = 16, /**< leads are copied in steps of this: their length is no branch, nor a call
                        */
    BW_VALUE_ROOM = 48, /**< the longest value of limited size, a UUID or a time, with its quotes */
};

/** Text in front of a value. */
struct bw_lead {
    const char *text; /**< padded to a multiple of BW_LEAD_STEP, and not empty */
    size_t length;
};

struct bw_column;

/**
 * Writes lead and value of a member at `at`; `value` points into the record. Returns the end, or
 * NULL if memory ran out, which the buffer remembers.
 */
typedef char *bw_column_writer(const struct bw_rows *rows, const struct bw_column *column,
                               const void *value, char *at, struct bw_buffer *buffer);

/** A member that was chosen. */
struct bw_column {
    size_t offset; /**< of the value in the record */
    uint64_t bit;  /**< of the member in masks */
    bw_column_writer *write;
    struct bw_lead lead;
    struct bw_lead bytes_lead; /**< in JSON of a name: in front of its base64 */
};

struct bw_rows {
    const struct bw_record *record;
    enum bw_rows_style style;
    bool header;
    bool escape;
    char terminator;
    size_t room;           /**< of a row, without what its values of unlimited size need */
    uint64_t members;      /**< a mask of all that are to be evaluated */
    struct bw_lead begin;  /**< what each row begins with */
    struct bw_lead absent; /**< text: what stands for a value that is not there */
    struct bw_column columns[BW_RECORD_MEMBERS];
    unsigned column_count;
    char leads[]; /**< their text */
};

static inline char *bw_lead_write(char *at, const struct bw_lead *lead)
{
    for (size_t i = 0; i == 0 || i < lead->length; i += BW_LEAD_STEP)
        memcpy(at + i, lead->text + i, BW_LEAD_STEP);
    return at + lead->length;
}

/** Makes room for `more` bytes, and again for all values of limited size. Returns where `at` is
 * now; NULL if memory ran out. */
static inline char *bw_row_room(const struct bw_rows *rows, char *at, size_t more,
                                struct bw_buffer *buffer)
{
    buffer->length = (size_t)(at - buffer->data);
    return bw_buffer_reserve(buffer, more + rows->room) ? buffer->data + buffer->length : NULL;
}

/** Bytes of a text that ends with NUL; `value` points to the pointer. */
static inline struct bw_bytes bw_row_text(const void *value)
{
    const char *text = *(const char *const *)value;
    return (struct bw_bytes){text, text ? strlen(text) : 0};
}

/** The writer of a member in columns of text. */
bw_column_writer *bw_text_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options);

/** The same in JSON. */
bw_column_writer *bw_json_writer(const struct bw_member *member);

/** Write the row of a record whose `present` members are there, from its begin to its end; NULL as
 * above. */
char *bw_text_row(const struct bw_rows *rows, const void *record, uint64_t present, char *at,
                  struct bw_buffer *buffer);
char *bw_json_row(const struct bw_rows *rows, const void *record, uint64_t present, char *at,
                  struct bw_buffer *buffer);

#endif
