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

struct bw_column;

/**
 * Writes the lead and the value of a member at `at`; `value` points into the record. Returns the
 * end, or NULL if memory ran out, which the buffer remembers.
 */
typedef char *bw_column_writer(const struct bw_rows *rows, const struct bw_column *column,
                               const void *value, char *at, struct bw_buffer *buffer);

/** A member that was chosen. */
struct bw_column {
    size_t offset; /**< of the value in the record */
    uint64_t bit;  /**< of the member in masks */
    bool optional; /**< nothing is written if the member is absent; otherwise a "-" is */
    bw_column_writer *write;
    struct bw_lead lead;
    struct bw_lead bytes_lead; /**< in JSON, of a name that is not UTF-8: before its base64 */
    struct bw_rows *nested;    /**< how records within the record are written; NULL: there are none
                                */
    bool is_array;             /**< there may be several of them */
};

struct bw_rows {
    const struct bw_record *record;
    enum bw_rows_style style;
    bool header;
    bool escape;
    char terminator;
    size_t room;           /**< of a row, without what values of unlimited size need */
    uint64_t members;      /**< mask of those that must be evaluated */
    struct bw_lead begin;  /**< what each row begins with */
    struct bw_lead absent; /**< in text: what is written for an absent value */
    unsigned column_count;
    struct bw_column columns[]; /**< then the text of the leads */
};

static inline char *bw_lead_write(char *at, const struct bw_lead *lead)
{
    for (size_t i = 0; i == 0 || i < lead->length; i += BW_LEAD_STEP)
        memcpy(at + i, lead->text + i, BW_LEAD_STEP);
    return at + lead->length;
}

/** Writes the lead and "-". */
static inline char *bw_absent_write(const struct bw_rows *rows, const struct bw_column *column,
                                    char *at)
{
    return bw_lead_write(bw_lead_write(at, &column->lead), &rows->absent);
}

/** Makes room for `more` bytes and, after them, for all values of limited size. Returns where `at`
 * is now; NULL if memory ran out. */
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

/** The writer of a member in columns of text, or in words. */
bw_column_writer *bw_text_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options);

/** The writer of a member in JSON. */
bw_column_writer *bw_json_writer(const struct bw_member *member,
                                 const struct bw_rows_options *options);

#endif
