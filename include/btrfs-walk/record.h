/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records: the form in which facts leave the library. A record is a versioned structure with a
 * table of its members: name, type, format, documentation, stability. Everything that prints,
 * filters or documents records works from these tables. The structures are in
 * btrfs-walk/records.h.
 *
 * Records only grow at their end; any other change raises `version`.
 */
#ifndef BTRFS_WALK_RECORD_H
#define BTRFS_WALK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/format.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_error;
struct bw_field;
struct bw_json;
struct bw_value_names;

/** Types of members. */
enum bw_member_type {
    BW_TYPE_U64,     /**< uint64_t */
    BW_TYPE_I64,     /**< int64_t */
    BW_TYPE_TEXT,    /**< const char *: text that ends with NUL; NULL: none */
    BW_TYPE_BYTES,   /**< struct bw_bytes: bytes of any kind; data NULL: none */
    BW_TYPE_STRIPES, /**< struct bw_stripes: as text DEVID:OFFSET,..., in JSON an array of objects
                        with `devid` and `offset`; data NULL: none */
    BW_TYPE_NAMES,   /**< struct bw_names: as text with spaces between them, each as `ls -b` writes
                        it; in JSON an array of strings, in which a name that is not UTF-8 is an
                        object with the member `bytes` in base64; data NULL: none */
    BW_TYPE_RECORD,  /**< struct bw_records with one record: an object in JSON, and in columns the
                        same JSON; `list` NULL: none */
    BW_TYPE_RECORDS, /**< struct bw_records: an array of objects, otherwise like BW_TYPE_RECORD */
    BW_TYPE_KEY,     /**< struct bw_key: as text "(256 INODE_ITEM 0)", in JSON an object with
                        `objectid`, `type` (a name) and `offset` */
    BW_TYPE_JSON,    /**< struct bw_json_value: written by a function, as JSON also in columns;
                        `write` NULL: none */
};

/** A number that is not known, in a member of the type U64 or I64, or as the objectid of a KEY: the
 * member is absent. No image contains this number. Members of other types are absent if they are
 * NULL. */
#define BW_ABSENT        UINT64_C(0xab5e17ab5e17ab5e)
#define BW_ABSENT_SIGNED ((int64_t)BW_ABSENT)

/** Bytes that do not end with NUL. */
struct bw_bytes {
    const char *data;
    size_t length;
};

/** Stripes of a chunk (struct bw_stripe_info in btrfs-walk/graph.h). */
struct bw_stripes {
    const struct bw_stripe_info *data;
    size_t length; /**< how many */
};

/** Names or paths. */
struct bw_names {
    const struct bw_bytes *data;
    size_t length; /**< how many */
};

/** Receives records, one after the other. */
struct bw_record_sink {
    /** Receives a record of this size, like bw_rows_write(); an error ends the list, which returns
     * it. */
    struct bw_error *(*visit)(struct bw_record_sink *sink, const void *record, size_t size);
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Records within a record. They are listed when they are written, and only if the member was
 * chosen: there may be more of them than fit into memory. */
struct bw_records {
    struct bw_error *(*list)(void *context, struct bw_record_sink *sink);
    void *context;
};

/** A value that a function writes, such as the decoded data of an item. */
struct bw_json_value {
    void (*write)(void *context, struct bw_json *json); /**< writes one value, without a name */
    void *context;
};

/** How a member is shown as text. In JSON numbers are decimal, except for BOOL, WORD and FLAGS. */
enum bw_member_format {
    BW_FORMAT_NUMBER,   /**< decimal */
    BW_FORMAT_SIZE,     /**< bytes: decimal, or with a unit on request */
    BW_FORMAT_OCTAL,    /**< a file's mode */
    BW_FORMAT_HEX,      /**< flags: 0x...; bytes: hexadecimal digits */
    BW_FORMAT_TIME,     /**< nanoseconds since 1970 */
    BW_FORMAT_DURATION, /**< nanoseconds */
    BW_FORMAT_TEXT,     /**< text of the format or of this program */
    BW_FORMAT_LIST,     /**< words separated by commas; in JSON an array of them, in which words
                           of digits are numbers */
    BW_FORMAT_NAME,   /**< bytes chosen by users: escaped for terminals; in JSON base64 if they are
                         not UTF-8 */
    BW_FORMAT_BASE64, /**< the member before it in base64; JSON has only one of both */
    BW_FORMAT_UUID,   /**< sixteen bytes */
    BW_FORMAT_BOOL,   /**< 0 or 1; in JSON false or true */
    BW_FORMAT_WORD,   /**< a number that has a name: the name; text: one of few words */
    BW_FORMAT_FLAGS,  /**< bits that have names: DATA|RAID1; in JSON an array of the names */
};

/** How much may change from one version to the next: the scale of DTrace, least stable first. */
enum bw_stability {
    BW_STABILITY_INTERNAL,
    BW_STABILITY_PRIVATE,
    BW_STABILITY_OBSOLETE,
    BW_STABILITY_EXTERNAL,
    BW_STABILITY_UNSTABLE, /**< may change with any version */
    BW_STABILITY_EVOLVING, /**< changes only with a new minor version */
    BW_STABILITY_STABLE,   /**< changes only with a new major version */
    BW_STABILITY_STANDARD,
};

/** Dependency classes of DTrace, from one machine to all. */
enum bw_dependency {
    BW_CLASS_UNKNOWN,
    BW_CLASS_CPU,
    BW_CLASS_PLATFORM,
    BW_CLASS_GROUP,
    BW_CLASS_ISA,
    BW_CLASS_COMMON,
};

/** The attributes of DTrace. A combination has the minimum of each attribute. */
struct bw_attributes {
    enum bw_stability name;     /**< of the name */
    enum bw_stability data;     /**< stability of the meaning */
    enum bw_dependency depends; /**< on what it depends */
};

/** A member of a record. */
struct bw_member {
    const char *name;
    enum bw_member_type type;
    enum bw_member_format format;
    size_t offset; /**< in the record's structure, in bytes */
    bool lazy;     /**< costs something: only evaluated if it is selected by name */
    enum bw_stability stability;
    const char *documentation;           /**< a phrase: no capital, no full stop */
    const struct bw_value_names *values; /**< private: the names of WORD and FLAGS */
    const struct bw_field *field; /**< private: how it is read from a structure on disk; NULL: the
                                     record is in memory */
};

/** A record has at most this many members: a set of them is a 64-bit mask, bit n for member n. */
enum { BW_RECORD_MEMBERS = 64 };

/** A kind of record. */
struct bw_record {
    const char *name;
    const char *documentation; /**< a phrase */
    unsigned version; /**< increases when a member changes or is removed, not when one is added */
    struct bw_attributes attributes;
    size_t size; /**< of the structure, in bytes */
    const struct bw_member *members;
    unsigned member_count; /**< at most BW_RECORD_MEMBERS */
};

/** All records; ends with NULL. */
const struct bw_record *const *bw_records(void);

/** The record with a name; NULL if it does not exist. */
const struct bw_record *bw_record_find(const char *name);

/** Index of the member with a name (of `length` bytes); -1 if it does not exist. */
int bw_record_member(const struct bw_record *record, const char *name, size_t length);

/** Makes all members absent: numbers become BW_ABSENT, everything else NULL. `members` points to
 * the structure of the record. */
void bw_record_clear(const struct bw_record *record, void *members);

/** The kind of the records in a member; NULL if its type is neither BW_TYPE_RECORD nor
 * BW_TYPE_RECORDS. */
const struct bw_record *bw_record_element(const struct bw_record *record, unsigned member);

/** Whether the members of a record are read from the bytes of an image: it has no structure in
 * records.h, and bw_rows_write() does not accept it. */
bool bw_record_is_on_disk(const struct bw_record *record);

/** Words for the parts of attributes: "Evolving", "Common". */
const char *bw_stability_name(enum bw_stability stability);
const char *bw_dependency_name(enum bw_dependency dependency);

/** The least of each part. */
struct bw_attributes bw_attributes_least(struct bw_attributes a, struct bw_attributes b);

/** The version of all records as a whole: raised when one is removed or changed. */
#define BW_RECORD_SCHEMA 2

/*
 * Writing JSON, value by value. A layer receives a writer in its `dump` operation and adds members
 * that describe its private state; the library owns the writer.
 *
 * In an object every value has a name; in an array `name` is NULL. Each object and array that is
 * begun must be ended. The writer remembers if memory runs out, and its owner reports it.
 */

struct bw_json;

/** Begins an object; end it with bw_json_end(). */
void bw_json_begin_object(struct bw_json *json, const char *name);
/** Begins an array; end it with bw_json_end(). */
void bw_json_begin_array(struct bw_json *json, const char *name);
/** Ends the innermost object or array. */
void bw_json_end(struct bw_json *json);

/** An unsigned number, with all its digits. */
void bw_json_number(struct bw_json *json, const char *name, uint64_t value);
/** A signed number. */
void bw_json_signed(struct bw_json *json, const char *name, int64_t value);
/** A number that is text already, as JSON has it: "-1.5". */
void bw_json_digits(struct bw_json *json, const char *name, const char *digits);
/** true or false. */
void bw_json_bool(struct bw_json *json, const char *name, bool value);
/** Text that ends with NUL; the same as bw_json_bytes() with its length. NULL becomes null. */
void bw_json_text(struct bw_json *json, const char *name, const char *text);
/**
 * Bytes of any kind. UTF-8 becomes a string; in an object anything else becomes a member NAME_bytes
 * in base64, in an array an object with the one member "bytes".
 */
void bw_json_bytes(struct bw_json *json, const char *name, const void *bytes, size_t length);
/** Bytes as a string of lower-case hexadecimal digits, two for each. */
void bw_json_hex(struct bw_json *json, const char *name, const void *bytes, size_t length);

/*
 * Rows: records written as columns of text or as JSON. bw_records() has the tables of the records,
 * btrfs-walk/records.h their structures.
 *
 * bw_rows_create() chooses members of a record and a way to write them. A struct bw_rows_stream
 * then passes the rows on to their reader, with a header before the first one and brackets around
 * an array if these were requested. Its rows come from
 *
 * - a walk: bw_walk_options.rows makes it write a row of the record `fileinfo` for each file. Pass
 *   bw_rows_take() as its consumer and the stream as its context;
 * - bw_rows_write(), which writes a structure that the caller has filled:
 *
 *     struct bw_rows_stream stream = {.rows = rows, .consume = my_output};
 *     struct bw_chunkinfo chunk = {.logical = 1 << 20, .length = 8 << 20, .profile = "DUP",
 *                                   .ns = BW_ABSENT};
 *     error = bw_rows_write(&stream, &chunk, sizeof chunk);
 *
 * After the last row, and also after a failure, call bw_rows_end().
 */

/** A choice of members and a way to write them. It does not change: any number of threads may use
 * it. */
struct bw_rows;

/** The format of a row. */
enum bw_rows_style {
    BW_ROWS_TEXT,       /**< columns with a separator between them; "-" for an absent value */
    BW_ROWS_JSON_LINES, /**< an object a row; absent values are omitted */
    BW_ROWS_JSON_ARRAY, /**< the same objects as elements of one array */
    BW_ROWS_PATHS,      /**< of fileinfo: the path alone */
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
    BW_ROWS_LOCAL,       /**< 2026-11-21T08:57:58.123456789+01:00, in the zone of the caller */
};

/** How to write rows. With `struct_size` alone, all members of the record are written as text, with
 * plain numbers, and each row ends with NUL. */
struct bw_rows_options {
    size_t struct_size; /**< sizeof(struct bw_rows_options) */
    /** Names of members in the order in which they are written, separated by commas: "path,size".
     * NULL: all members that cost nothing extra. */
    const char *members;
    enum bw_rows_style style;
    const char *separator;   /**< between columns; NULL: one tab */
    size_t separator_length; /**< bytes of `separator` */
    char terminator;         /**< byte after each row, usually '\n' or 0; none in an array */
    bool header; /**< write the names of the columns first; in JSON a record `headerinfo` */
    bool escape; /**< for a terminal: names as `ls -b` writes them; in JSON all control characters
                  */
    enum bw_rows_units units; /**< of sizes in columns; numbers in JSON are always decimal */
    enum bw_rows_times times; /**< times in columns and JSON */
};

/** Selects members of the record with a name ("fileinfo"). Copies the options. On success the
 * caller owns `*rows`. BW_ERROR_USAGE: the record or a member does not exist, or a member is named
 * twice; BW_ERROR_NO_MEMORY. */
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
    bool begun;           /**< the text before the rows has been passed on */
    bool not_first;       /**< an element of the array has been passed on */
    char *row;            /**< where bw_rows_write() builds rows; freed by bw_rows_end() */
    size_t row_capacity;  /**< bytes of `row` */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Passes on rows that a walk made; `stream` is a struct bw_rows_stream. Returns the error of its
 * `consume`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_rows_take(void *stream, const char *rows, size_t length);

/**
 * Writes one row. `record` points to the structure of the record that `stream->rows` is a choice
 * from (a struct bw_fileinfo for "fileinfo"), `size` is its size. Members whose values are
 * not known are BW_ABSENT or NULL: see bw_record_clear(). Set a member that is another member in
 * base64 (path_bytes) to the same bytes as that member. Errors as bw_rows_take().
 */
struct bw_error *bw_rows_write(struct bw_rows_stream *stream, const void *record, size_t size);

struct bw_entry;
struct bw_fs;
struct bw_user_names;

/** Writes the row of an entry (walk.h), if the rows were created for fileinfo. Members from the
 * inode are absent if entry->inode is NULL; `user_names` (subvolume.h) contains the names of users
 * and groups and may be NULL. Errors as bw_rows_take(); BW_ERROR_USAGE if the rows belong to
 * another record. */
struct bw_error *bw_rows_write_entry(struct bw_rows_stream *stream, struct bw_fs *fs,
                                     const struct bw_entry *entry,
                                     const struct bw_user_names *user_names);

/**
 * Writes the row of a superblock, good or not, if the rows are a choice from superblockinfo.
 * `path` is its image, `offset` its place there, and `copy` its number. `bytes` are
 * BW_SUPERBLOCK_BYTES; `bad` is the error of bw_superblock_check(), or NULL. Errors as
 * bw_rows_take(); BW_ERROR_USAGE if the rows are of another record.
 */
struct bw_error *bw_rows_write_superblock(struct bw_rows_stream *stream, const char *path,
                                          unsigned copy, uint64_t offset, const uint8_t *bytes,
                                          const struct bw_error *bad);

/** Passes on the text after the last row and, if there was no row, the text before the first. Frees
 * the memory of the stream. Errors as bw_rows_take(). */
struct bw_error *bw_rows_end(struct bw_rows_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
