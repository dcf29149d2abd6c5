/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parsing lists of expected files: manifests as in mtree(5), which archive.c writes, or lines of a
 * hash and a path, as from sha256sum(1) and similar programs.
 */
#ifndef BW_EXPORT_MANIFEST_H
#define BW_EXPORT_MANIFEST_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/hash.h"

/** Properties of an expected file: bits of bw_manifest_entry.given. */
enum bw_manifest_keyword {
    BW_MANIFEST_TYPE = 1 << 0,
    BW_MANIFEST_MODE = 1 << 1,
    BW_MANIFEST_UID = 1 << 2,
    BW_MANIFEST_GID = 1 << 3,
    BW_MANIFEST_LINKS = 1 << 4,
    BW_MANIFEST_SIZE = 1 << 5,
    BW_MANIFEST_TIME = 1 << 6,
    BW_MANIFEST_LINK = 1 << 7,
    BW_MANIFEST_DEVICE = 1 << 8,
    BW_MANIFEST_HASH = 1 << 9,
    BW_MANIFEST_OPTIONAL = 1 << 10, /**< the file may be missing */
};

/** An expected file. Its texts belong to the manifest. */
struct bw_manifest_entry {
    const char *path; /**< NUL-terminated, without a leading '/'; empty for the top directory */
    unsigned line;    /**< line number, counted from 1 */
    unsigned given;   /**< which of the following are known */
    uint32_t type;    /**< S_IFREG, ... */
    uint64_t mode;    /**< permissions, up to 07777 */
    uint64_t uid, gid, links, size;
    int64_t seconds; /**< modification time */
    uint64_t nanoseconds;
    uint64_t major, minor;
    const char *link, *hash; /**< target of a symbolic link; hexadecimal digits */
    enum bw_hash_algorithm algorithm;
    bool is_doubtful; /**< the hash may also be SHA-512: it has 128 digits and no tag */
    bool seen;        /**< for the caller */
    char *owned;      /**< allocated path, if it is not a part of the text */
};

/** A list of expected files. */
struct bw_manifest {
    struct bw_buffer text; /**< contents of the file, decoded in place */
    struct bw_manifest_entry *entries;
    size_t count, capacity;           /**< in ascending order of unique paths */
    bool only_files;                  /**< the list contains only hashes, so only regular files */
    enum bw_hash_algorithm algorithm; /**< of all hashes that are compared */
    bool is_doubtful;                 /**< an entry is doubtful: see bw_manifest_settle() */
    struct bw_buffer ignored;         /**< keywords that are not compared, separated by commas */
};

/** Parses a list. BW_ERROR_USAGE, with the line, if it is not a list; BW_ERROR_SYSTEM. The caller
 * frees `manifest`, even after an error. */
struct bw_error *bw_manifest_read(const char *file, struct bw_manifest *manifest);

/** Sets the algorithm of doubtful hashes: BLAKE2b or SHA-512. */
void bw_manifest_settle(struct bw_manifest *manifest, enum bw_hash_algorithm algorithm);

void bw_manifest_free(struct bw_manifest *manifest);

/** The name of a file type in mtree(5): "file", "dir", ... */
const char *bw_manifest_type_name(uint32_t mode);

/** The entry of a path without leading '/', or NULL. */
struct bw_manifest_entry *bw_manifest_find(const struct bw_manifest *manifest, const char *path);

#endif
