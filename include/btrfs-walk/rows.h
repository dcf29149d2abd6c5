/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows: what a walk writes of each file if its path is not enough. The members of a record
 * (`fileinfo` for files; btrfs-walk/record.h has the tables) become columns of text, or JSON.
 *
 * The choice is made once, with bw_rows_create(), and given to a walk (bw_walk_options.rows). What
 * the walk hands to its consumer are rows alone; a struct bw_rows_stream between them and their
 * reader adds what stands in front of the first and behind the last one.
 */
#ifndef BTRFS_WALK_ROWS_H
#define BTRFS_WALK_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A choice of members and a way to write them. It does not change: any number of threads may use
 * it. */
struct bw_rows;

/** What a row looks like. */
enum bw_rows_style {
    BW_ROWS_TEXT,       /**< columns with a separator between; "-" where there is nothing to tell */
    BW_ROWS_JSON_LINES, /**< an object a row; what there is nothing to tell of is left out */
    BW_ROWS_JSON_ARRAY, /**< the same as elements of one array */
};

/** How sizes are shown in columns. Shown with a unit they are rounded. */
enum bw_rows_units {
    BW_ROWS_BYTES, /**< 1572864 */
    BW_ROWS_IEC,   /**< 1.50MiB */
    BW_ROWS_SI,    /**< 1.57MB */
};

/** How to write rows. All zeros is text that ends with NUL: all members of the record, as numbers.
 */
struct bw_rows_options {
    /** Names of members, in the order they are to be written in, with commas between: "path,size".
     * NULL: all that cost nothing extra. */
    const char *members;
    enum bw_rows_style style;
    const char *separator;   /**< between columns; NULL: one tab */
    size_t separator_length; /**< bytes of `separator` */
    char terminator;         /**< byte behind each row, usually '\n' or 0; none in an array */
    bool header;             /**< first the names of the columns; in JSON a record `headerinfo` */
    bool escape; /**< for a terminal: names as `ls -b` writes them; in JSON all control characters
                  */
    enum bw_rows_units units; /**< of sizes in columns; numbers in JSON are always decimal */
    bool iso_times; /**< times in columns as 2026-11-21T07:57:58.123456789Z; else nanoseconds since
                       1970 */
};

/**
 * Makes a choice. `record` is the name of the record ("fileinfo"). Copies all it needs of the
 * options. On success the caller owns `*rows`. BW_ERROR_USAGE: no record, or no member, of such a
 * name, or one is named twice; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_rows_create(const char *record, const struct bw_rows_options *options,
                                struct bw_rows **rows);

/** Frees it, after the last walk that uses it; NULL is allowed. */
void bw_rows_destroy(struct bw_rows *rows);

/**
 * Rows on their way. Set the first three members, give bw_rows_take() and the stream to the walk as
 * its consumer and context, and call bw_rows_end() after the walk, also when it has failed: an
 * array is closed then. The stream owns nothing.
 */
struct bw_rows_stream {
    const struct bw_rows *rows;
    struct bw_error *(*consume)(void *context, const char *bytes, size_t length);
    void *context;
    bool begun;     /**< what stands in front of the rows has been passed on */
    bool not_first; /**< an element of the array has been passed on */
};

/** Passes rows on; `stream` is a struct bw_rows_stream. Returns what its `consume` returns, or
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_rows_take(void *stream, const char *rows, size_t length);

/** Passes on what stands behind the last row; in front of it, if no row came, what stands in front
 * of the first. Errors as bw_rows_take(). */
struct bw_error *bw_rows_end(struct bw_rows_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
