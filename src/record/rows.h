/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The private side of btrfs-walk/record.h: rows of structures that have a translator, appended to a
 * buffer. All threads may use the same rows, each with its own buffer. The buffer remembers if
 * memory runs out.
 */
#ifndef BW_RECORD_ROWS_H
#define BW_RECORD_ROWS_H

#include "base/buffer.h"
#include "btrfs-walk/record.h"
#include "record/file.h"
#include "record/record_types.h"

/** More styles. */
enum {
    /** " NAME=VALUE" for each member. Values are single words; an absent value is "-", or omitted
     * if the member is lazy. For events; no terminator. */
    BW_ROWS_WORDS = BW_ROWS_PATHS + 1,
    /** The template of a structure on disk. */
    BW_ROWS_STRUCTURE,
};

enum {
    BW_REPEATED_STEP = 32,                   /**< texts are copied in steps of this size */
    BW_REPEATED_ROOM = 2 * BW_REPEATED_STEP, /**< longer texts are not kept */
};

struct bw_structure;

/** Prepares a structure on disk for printing, as text or as JSON, with times like those of `outer`,
 * which may be NULL. */
struct bw_error *bw_rows_of_structure(const struct bw_structure *structure, bool json,
                                      const struct bw_rows *outer, struct bw_rows **rows);

/** Appends the row of a record, with its members that are `present`. */
void bw_rows_append_record(const struct bw_rows *rows, const void *record, uint64_t present,
                           struct bw_buffer *text);

/** The record that the rows are of. */
const struct bw_record *bw_rows_record(const struct bw_rows *rows);

/** Facts about a file that its row needs: BW_FILE_NEEDS_* flags, or 0 if the name is enough. */
unsigned bw_rows_needs(const struct bw_rows *rows);

/** Whether each row is a path and a terminator, as with NULL; sets how they are written. */
bool bw_rows_are_paths(const struct bw_rows *rows, bool *escape, char *terminator);

/** Texts of the columns of the rows before: most files have the type, the owner, the mode or the
 * time of the file before. Zeros at first. */
struct bw_repeated {
    struct bw_repeated_text {
        uint64_t value;              /**< of the last row */
        uint32_t length;             /**< of the text; 0: unknown */
        char text[BW_REPEATED_ROOM]; /**< its separator or name, then the value */
    } columns[BW_RECORD_MEMBERS];
};

/** Appends the row of a file; `rows` may be NULL, as in bw_rows_are_paths(). `repeated` is of these
 * rows, and of one thread; it may be NULL. */
void bw_rows_append_file(const struct bw_rows *rows, const struct bw_walked_file *file,
                         struct bw_repeated *repeated, struct bw_buffer *text);

/** Appends the row of anything that has a translator into the record of the rows. */
void bw_rows_append(const struct bw_rows *rows, const struct bw_xlate *xlate, const void *in,
                    struct bw_buffer *text);

/** Appends the members of a record that are `present`, without the begin and the end of a row, for
 * callers that write something else before them. In JSON each member begins with a comma. */
void bw_rows_append_members(const struct bw_rows *rows, const void *record, uint64_t present,
                            struct bw_buffer *text);

#endif
