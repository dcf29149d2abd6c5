/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a list of files that somebody expects: a manifest as in mtree(5), as archive.c writes it,
 * or lines of a hash and a path, as sha256sum(1) and its like print them.
 */
#ifndef BW_EXPORT_MANIFEST_H
#define BW_EXPORT_MANIFEST_H

#include <stdbool.h>

#include "base/buffer.h"
#include "export/hash.h"

/** What an entry says of a file: bits of bw_manifest_entry.given. */
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
    BW_MANIFEST_OPTIONAL = 1 << 10, /**< it may be missing */
};

/** A file that is expected. The texts belong to the manifest. */
struct bw_manifest_entry {
    const char *path; /**< ends with NUL; no '/' in front: that of the top is empty */
    unsigned line;    /**< of the list, counted from 1 */
    unsigned given;   /**< which of the following are */
    uint32_t type;    /**< S_IFREG, ... */
    uint64_t mode;    /**< permissions, octal 7777 at most */
    uint64_t uid, gid, links, size;
    int64_t seconds; /**< of the time of the last modification */
    uint64_t nanoseconds;
    uint64_t major, minor;
    const char *link, *hash; /**< target of a symbolic link; hexadecimal digits */
    enum bw_hash_algorithm algorithm;
    bool is_doubtful; /**< the hash may also be SHA-512: it has 128 digits, and no tag */
    bool seen;        /**< for the caller */
    char *owned;      /**< the path, if it is not in the text as it is */
};

/** A list. */
struct bw_manifest {
    struct bw_buffer text; /**< what it was read from, unescaped in place */
    struct bw_manifest_entry *entries;
    size_t count, capacity;           /**< of them; ascending by path, each once */
    bool only_files;                  /**< regular files only: there is nothing but hashes */
    enum bw_hash_algorithm algorithm; /**< of the hashes that are kept */
    bool is_doubtful;                 /**< some entry is: bw_manifest_settle() */
    struct bw_buffer ignored;         /**< keywords that are not compared, with commas */
};

/** Reads a list. BW_ERROR_USAGE, with the line, if it is none; BW_ERROR_SYSTEM. The caller frees
 * `manifest` in any case. */
struct bw_error *bw_manifest_read(const char *file, struct bw_manifest *manifest);

/** Decides what the hashes of entries are that are doubtful: BLAKE2b or SHA-512. */
void bw_manifest_settle(struct bw_manifest *manifest, enum bw_hash_algorithm algorithm);

/** Frees what it holds. */
void bw_manifest_free(struct bw_manifest *manifest);

/** The word of mtree(5) for the type in a mode: "file", "dir", ... */
const char *bw_manifest_type_name(uint32_t mode);

/** The entry of a path without a '/' in front; NULL if there is none. */
struct bw_manifest_entry *bw_manifest_find(const struct bw_manifest *manifest, const char *path);

#endif
