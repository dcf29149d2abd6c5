/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The private side of btrfs-walk/rows.h: what those who have something to write rows of call. The
 * choice does not change after it is made, so all threads may use it, each with a buffer of its
 * own.
 */
#ifndef BW_RECORD_ROWS_H
#define BW_RECORD_ROWS_H

#include "base/buffer.h"
#include "btrfs-walk/rows.h"
#include "record/record_types.h"

/** The record that the rows are of. */
const struct bw_record *bw_rows_record(const struct bw_rows *rows);

/** What must be known of a file to write its row: BW_FILE_NEEDS_* flags, 0 if its name is enough.
 */
unsigned bw_rows_needs(const struct bw_rows *rows);

/** Appends the row of a file. Memory that runs out is remembered by the buffer. */
void bw_rows_append_file(const struct bw_rows *rows, const struct bw_walked_file *file,
                         struct bw_buffer *text);

/** The same of anything that has a translator into the record which the rows are of. */
void bw_rows_append(const struct bw_rows *rows, const struct bw_xlate *xlate, const void *in,
                    struct bw_buffer *text);

/**
 * Appends what stands in front of the first row. Rows of an array begin with ",\n": it has to be
 * taken off the first one if there is nothing in front of it but the bracket.
 */
void bw_rows_append_front(const struct bw_rows *rows, struct bw_buffer *text);

#endif
