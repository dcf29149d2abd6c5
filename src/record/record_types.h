/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inputs of translators; and generated from records.def: the structures, the numbers of their
 * members, their tables and translators. records.def has an example.
 */
#ifndef BW_RECORD_RECORD_TYPES_H
#define BW_RECORD_RECORD_TYPES_H

#include "btrfs-walk/graph.h"
#include "btrfs-walk/record.h"
#include "ondisk/chunk.h"
#include "ondisk/items.h"
#include "ondisk/superblock.h"
#include "record/file.h"

/*
 * Inputs of translators: code that fires probes passes these structures. They contain pointers to
 * existing structures, and are valid only during the call.
 */

/** Common members of all events. */
struct bw_event {
    uint64_t call;                /**< number of the call it belongs to; 0: none */
    uint64_t ns;                  /**< how long it took */
    const struct bw_error *error; /**< the result; NULL: success */
};

struct bw_image_event {
    const char *path;
    uint64_t size, index;
};

struct bw_super_event {
    struct bw_event event;
    const struct bw_superblock *superblock; /**< only with translator super */
    const char *path;
    uint64_t offset, copy, index;
};

struct bw_chunk_event {
    struct bw_event event;
    const struct bw_chunk *chunk;
};

struct bw_map_event {
    struct bw_event event;
    uint64_t logical, offset, devid, length, copy, copies;
    bool rebuilt, missing;
};

struct bw_io_event {
    struct bw_event event;
    const char *path;
    uint64_t offset, bytes, requests;
};

struct bw_fop_event {
    struct bw_event event;
    const char *xlator, *type, *operation, *kind;
    const struct bw_request *requests; /**< NULL if the operation has none */
    uint64_t count, address, length;   /**< `length` if there are no requests */
    uint64_t depth, parent, own_ns;
};

struct bw_block_event {
    struct bw_event event;
    const struct bw_request *request; /**< for a tree block, with its expectation */
    uint64_t copy;
};

struct bw_cache_event {
    struct bw_event event;
    uint64_t logical, level, bytes, tree;
};

struct bw_key_event {
    struct bw_event event;
    uint64_t tree;
    struct bw_key first, last;
};

struct bw_dirent_event {
    uint64_t tree, parent;
    const struct bw_dir_entry *entry;
};

struct bw_path_event {
    uint64_t tree, inode;
    const char *path;
    size_t path_length;
};

struct bw_codec_event {
    struct bw_event event;
    const char *algorithm;
    uint64_t bytes_in, bytes_out, inode, tree;
};

struct bw_report_event {
    const struct bw_error *error;
    enum bw_severity severity;
    bool fatal; /**< it ends the work; `severity` is not used */
};

struct bw_header {
    const char *version;        /**< of the program */
    const struct bw_record *of; /**< the record that follows */
};

/* Translators. */

/** A translator: fills a record from a private structure. */
struct bw_xlate {
    const char *name; /**< of the input */
    const struct bw_record *record;
    uint64_t members; /**< members that it sets; it does not touch the others */
    /** Evaluates the wanted members of those; `in` and `out` are of the types that records.def
     * names. */
    void (*translate)(const void *in, uint64_t wanted, void *out);
};

/** The members of a record that are not lazy. */
uint64_t bw_record_eager(const struct bw_record *record);

/* The types of members in C. */
typedef uint64_t bw_type_U64;
typedef int64_t bw_type_I64;
typedef const char *bw_type_TEXT;
typedef struct bw_bytes bw_type_BYTES;
typedef struct bw_stripes bw_type_STRIPES;
typedef struct bw_names bw_type_NAMES;
typedef struct bw_records bw_type_RECORD;
typedef struct bw_records bw_type_RECORDS;
typedef struct bw_key bw_type_KEY;
typedef struct bw_json_value bw_type_JSON;

/* Structures. */
#define inline inline_ /* members are not called like keywords */
#define RECORD(name, version, name_stability, data_stability, depends, documentation) \
    struct bw_##name {
#define MEMBER_AS(record, name, type, format, laziness, stability, documentation) \
    bw_type_##type name;
#define END_RECORD(name) \
    }                    \
    ;
#include "record/records.def"
#undef inline

/* Numbers of members, tables, translators. */
#define RECORD(name, version, name_stability, data_stability, depends, documentation) \
    extern const struct bw_record bw_##name##_record;                                 \
    enum {                                                                            \
        BW_##name##_STABILITY_OF_NAME = BW_STABILITY_##name_stability,                \
        BW_##name##_STABILITY_OF_DATA = BW_STABILITY_##data_stability,                \
        BW_##name##_CLASS = BW_CLASS_##depends                                        \
    };                                                                                \
    enum {
#define MEMBER_AS(record, name, type, format, laziness, stability, documentation) \
    BW_##record##_##name,
#define END_RECORD(name) \
    BW_##name##_MEMBERS  \
    }                    \
    ;
#define XLATE(record, name, input)                                                           \
    extern const struct bw_xlate bw_##name##_xlate;                                          \
    void bw_xlate_##name(const input *in, uint64_t wanted, struct bw_##record *out);         \
    /* Makes sure that the right structure is handed to a translator that is called from its \
     * table. */                                                                             \
    static inline const void *bw_input_##name(const input *in)                               \
    {                                                                                        \
        return in;                                                                           \
    }
#include "record/records.def"

#endif
