/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows as an Arrow IPC stream, which has columns instead of rows. Writers make packed rows, which
 * pass through everything that passes rows on, like text. At the end, a batch gathers packed rows,
 * and passes on some thousand of them as columns.
 */
#ifndef BW_RECORD_ROW_ARROW_H
#define BW_RECORD_ROW_ARROW_H

#include "record/row.h"

/** The byte after the values of a packed row. Each value begins with the number of its column. */
enum { BW_PACKED_END = 0xff };

/** Sets the writers of a column of packed rows, which was prepared as text. */
void bw_arrow_column(struct bw_column *column);

/** Whether the packed value is a length, of four bytes, and that many bytes. The others have eight
 * bytes. */
bool bw_arrow_is_text(const struct bw_member *member);

/** Adds packed rows to the batch of the stream, and writes it when it is full. BW_ERROR_NO_MEMORY,
 * BW_ERROR_UNSUPPORTED if a value is too long, or the error of the consumer. */
struct bw_error *bw_arrow_take(struct bw_rows_stream *stream, const char *rows, size_t length);

/** Writes the schema. */
struct bw_error *bw_arrow_begin(struct bw_rows_stream *stream);

/** Writes the last batch and the end, and frees the batch. */
struct bw_error *bw_arrow_end(struct bw_rows_stream *stream);

#endif
