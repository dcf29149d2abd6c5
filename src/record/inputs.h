/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inputs of translators: code that fires probes passes these structures. They contain pointers to
 * existing structures, and are valid only during the call.
 */
#ifndef BW_RECORD_INPUTS_H
#define BW_RECORD_INPUTS_H

#include "btrfs-walk/graph.h"
#include "btrfs-walk/record.h"
#include "ondisk/chunk.h"
#include "ondisk/items.h"
#include "ondisk/superblock.h"
#include "record/file.h"

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

#endif
