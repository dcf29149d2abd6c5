/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows: records written as columns of text or as JSON. btrfs-walk/record.h has the tables of the
 * records, btrfs-walk/records.h their structures.
 *
 * bw_rows_create() chooses members of a record and a way to write them. A struct bw_rows_stream
 * then passes the rows on to their reader, with a header before the first one and brackets around
 * an array if they were asked for. Its rows come from
 *
 * - a walk: bw_walk_options.rows makes it write a row of the record `fileinfo` for each file. Pass
 *   bw_rows_take() as its consumer and the stream as its context;
 * - bw_rows_write(), which writes a structure that the caller has filled:
 *
 *     struct bw_rows_stream stream = {.rows = rows, .consume = my_output};
 *     struct bw_chunkinfo chunk = {.logical = 1 << 20, .length = 8 << 20, .profile = "DUP"};
 *     error = bw_rows_write(&stream, &chunk, sizeof chunk, BW_MEMBER(chunkinfo, ns));
 *
 * After the last row, and also after a failure, call bw_rows_end().
 */
#ifndef BTRFS_WALK_ROWS_H
#define BTRFS_WALK_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A choice of members and a way to write them. It does not change: any number of threads may use
 * it. */
struct bw_rows;

/** What a row looks like. */
enum bw_rows_style {
    BW_ROWS_TEXT,       /**< columns with a separator between them; "-" for an absent value */
    BW_ROWS_JSON_LINES, /**< an object a row; absent values are left out */
    BW_ROWS_JSON_ARRAY, /**< the same objects as elements of one array */
};

/** How sizes are shown in columns. With a unit they are rounded. */
enum bw_rows_units {
    BW_ROWS_BYTES, /**< 1572864 */
    BW_ROWS_IEC,   /**< 1.50MiB */
    BW_ROWS_SI,    /**< 1.57MB */
};

/** How times are shown. */
enum bw_rows_times {
    BW_ROWS_NANOSECONDS, /**< since 1970, as a number; beyond 2^53, so more than a double can hold
                          */
    BW_ROWS_ISO,         /**< 2026-11-21T07:57:58.123456789Z; in JSON as a string */
    BW_ROWS_SECONDS,     /**< since 1970: 1795247878.123456789 */
};

/** How to write rows. With `struct_size` alone, all members of the record are written as text, with
 * plain numbers, and each row ends with NUL. */
struct bw_rows_options {
    size_t struct_size; /**< sizeof(struct bw_rows_options) */
    /** Names of members in the order in which they are written, separated by commas: "path,size".
     * NULL: all that cost nothing extra. */
    const char *members;
    enum bw_rows_style style;
    const char *separator;   /**< between columns; NULL: one tab */
    size_t separator_length; /**< bytes of `separator` */
    char terminator;         /**< byte after each row, usually '\n' or 0; none in an array */
    bool header; /**< write the names of the columns first; in JSON a record `headerinfo` */
    bool escape; /**< for a terminal: names as `ls -b` writes them; in JSON all control characters
                  */
    enum bw_rows_units units; /**< of sizes in columns; numbers in JSON are always decimal */
    /** Replaced by `times`. */
    bool iso_times; /**< times in columns as 2026-11-21T07:57:58.123456789Z; otherwise nanoseconds
                       since 1970 */
    enum bw_rows_times times; /**< times in columns and JSON */
};

/**
 * Chooses members of the record of that name ("fileinfo"). Copies all it needs of the options. On
 * success the caller owns `*rows`. BW_ERROR_USAGE: there is no such record or member, or a member
 * is named twice; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_rows_create(const char *record, const struct bw_rows_options *options,
                                struct bw_rows **rows);

/** Frees it, after the last walk or stream that uses it; NULL is allowed. */
void bw_rows_destroy(struct bw_rows *rows);

/** Rows on their way. Set the first three members; all others begin as zeros. One thread at a time
 * may use a stream. */
struct bw_rows_stream {
    const struct bw_rows *rows;
    struct bw_error *(*consume)(void *context, const char *bytes, size_t length);
    void *context;
    bool begun;          /**< what comes before the rows has been passed on */
    bool not_first;      /**< an element of the array has been passed on */
    char *row;           /**< where bw_rows_write() builds rows; freed by bw_rows_end() */
    size_t row_capacity; /**< bytes of `row` */
};

/** Passes on rows that a walk made; `stream` is a struct bw_rows_stream. Returns the error of its
 * `consume`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_rows_take(void *stream, const char *rows, size_t length);

/** The bit of a member for bw_rows_write(), as in BW_MEMBER(fileinfo, size). */
#define BW_MEMBER(record, member) \
    (UINT64_C(1) << offsetof(struct bw_##record, member) / sizeof(void *))

/**
 * Writes one row. `record` points to the structure of the record that `stream->rows` is a choice
 * from (a struct bw_fileinfo for "fileinfo"), `size` is its size. `absent` has a BW_MEMBER() for
 * each member whose value is not known; texts and bytes that are NULL are absent in any case. A
 * member that is another one in base64 (path_bytes) is to be set to the same bytes as that one.
 * Errors as bw_rows_take().
 */
struct bw_error *bw_rows_write(struct bw_rows_stream *stream, const void *record, size_t size,
                               uint64_t absent);

struct bw_entry;
struct bw_fs;
struct bw_people;

/**
 * Writes the row of an entry (walk.h), if the rows are a choice from fileinfo. What needs the inode
 * is absent if entry->inode is NULL; `people` (people.h) has names of users and groups, if it is
 * not NULL. Errors as bw_rows_take(); BW_ERROR_USAGE if the rows are of another record.
 */
struct bw_error *bw_rows_write_entry(struct bw_rows_stream *stream, struct bw_fs *fs,
                                     const struct bw_entry *entry, const struct bw_people *people);

/**
 * Writes the row of a superblock, good or not, if the rows are a choice from superblockinfo.
 * `path` is its image, `offset` its place there, and `copy` its number. `bytes` are
 * BW_SUPERBLOCK_BYTES; `bad` is the error of bw_superblock_check(), or NULL. Errors as
 * bw_rows_take(); BW_ERROR_USAGE if the rows are of another record.
 */
struct bw_error *bw_rows_write_superblock(struct bw_rows_stream *stream, const char *path,
                                          unsigned copy, uint64_t offset, const uint8_t *bytes,
                                          const struct bw_error *bad);

/** Passes on what comes after the last row and, if there was no row, what comes before the first.
 * Frees what the stream owns. Errors as bw_rows_take(). */
struct bw_error *bw_rows_end(struct bw_rows_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
