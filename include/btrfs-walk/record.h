/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records: the form in which facts leave the library. A record is a versioned structure with a
 * table of its members: name, type, format, documentation, stability. Everything that prints,
 * filters or documents records works from these tables. The structures are in btrfs-walk/records.h.
 *
 * Records only grow at their end; any other change raises `version`.
 */
#ifndef BTRFS_WALK_RECORD_H
#define BTRFS_WALK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/key.h"

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

/** Bytes that do not end with NUL. */
struct bw_bytes {
    const char *data;
    size_t length;
};

/** Stripes of a chunk (struct bw_stripe_info in btrfs-walk/xlator.h). */
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
    /** `absent` as in bw_rows_write(); an error ends the list, which returns it. */
    struct bw_error *(*take)(struct bw_record_sink *sink, const void *record, size_t size,
                             uint64_t absent);
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
    BW_FORMAT_SIZE,     /**< bytes: decimal, or with a unit if the reader wants units */
    BW_FORMAT_OCTAL,    /**< a file's mode */
    BW_FORMAT_HEX,      /**< flags: 0x...; bytes: hexadecimal digits */
    BW_FORMAT_TIME,     /**< nanoseconds since 1970 */
    BW_FORMAT_DURATION, /**< nanoseconds */
    BW_FORMAT_TEXT,     /**< a name of the format or of this program; a word */
    BW_FORMAT_NAME,   /**< bytes chosen by users: escaped for terminals; in JSON base64 if they are
                         not UTF-8 */
    BW_FORMAT_BASE64, /**< the member before it in base64; JSON has only one of both */
    BW_FORMAT_UUID,   /**< sixteen bytes */
    BW_FORMAT_BOOL,   /**< 0 or 1; in JSON false or true */
    BW_FORMAT_WORD,   /**< a number that has a name: the name */
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

/** What something depends on: the classes of DTrace, from one machine to all. */
enum bw_dependency {
    BW_CLASS_UNKNOWN,
    BW_CLASS_CPU,
    BW_CLASS_PLATFORM,
    BW_CLASS_GROUP,
    BW_CLASS_ISA,
    BW_CLASS_COMMON,
};

/** The attributes of DTrace. Of several things together, the least of each part applies. */
struct bw_attributes {
    enum bw_stability name;     /**< of the name */
    enum bw_stability data;     /**< of what it means */
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
    unsigned version;
    struct bw_attributes attributes;
    size_t size; /**< of the structure, in bytes */
    const struct bw_member *members;
    unsigned member_count;
};

/** All records; ends with NULL. */
const struct bw_record *const *bw_records(void);

/** The record of that name; NULL if there is none. */
const struct bw_record *bw_record_find(const char *name);

/** Index of a member of that name (of `length` bytes); -1 if there is none. */
int bw_record_member(const struct bw_record *record, const char *name, size_t length);

/** The record that the records of a member are; NULL if it is of another type than BW_TYPE_RECORD
 * and BW_TYPE_RECORDS. */
const struct bw_record *bw_record_element(const struct bw_record *record, unsigned member);

/** Words for the parts of attributes: "Evolving", "Common". */
const char *bw_stability_name(enum bw_stability stability);
const char *bw_dependency_name(enum bw_dependency dependency);

/** The least of each part. */
struct bw_attributes bw_attributes_least(struct bw_attributes a, struct bw_attributes b);

/** The version of all records as a whole: raised when one is removed or changed. */
#define BW_RECORD_SCHEMA 1

#ifdef __cplusplus
}
#endif
#endif
