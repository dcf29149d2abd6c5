/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store of paths, of which an export may have millions. A crafted image may contain long paths,
 * so each is a packed record of its last component and the number of its parent.
 *
 * Paths are relative to the empty path, the root of all others.
 */
#ifndef BW_EXPORT_PATH_STORE_H
#define BW_EXPORT_PATH_STORE_H

#include "base/buffer.h"
#include "base/packed.h"
#include "btrfs-walk/error.h"

/** All zeros is an empty store. */
struct bw_path_store {
    struct bw_packed records;
    struct bw_buffer last; /**< path of the last directory that was looked up */
    uint32_t last_number;  /**< its number; the next lookup is usually close to it */
};

/** Frees the memory and leaves an empty store. */
void bw_path_store_free(struct bw_path_store *store);

/** Stores the path of a directory once, and returns its number; false if memory runs out. */
bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number);

/** Stores a path and returns its number; false if memory runs out. */
bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number);

/** Appends the path of a number. */
void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path);

/** Replaces the contents of `path` by the path of a number, with a NUL that does not count. */
struct bw_error *bw_path_store_read(const struct bw_path_store *store, uint32_t number,
                                    struct bw_buffer *path);

/* Directories with details. Numbers are BW_NO_RECORD if there is no record, or memory runs out. */

enum { BW_PATH_DETAILS = 127 /**< bytes, at most */ };

/** Attributes of a directory, opaque to the store. */
struct bw_path_details {
    uint8_t bytes[BW_PATH_DETAILS];
    size_t length;
};

/** A decoded record: a view, until the next one is added. */
struct bw_stored_name {
    uint8_t *bits; /**< the two lowest are marks, for the caller */
    uint32_t parent;
    const char *name;
    size_t length;
    uint8_t *rest; /**< the bytes after the name */
    size_t size;   /**< bytes of the whole record */
};

/** Decodes a record. */
struct bw_stored_name bw_path_store_get(const struct bw_path_store *store, uint32_t number);

/** The details of a directory; NULL for other records, and directories without details. */
const uint8_t *bw_path_store_details(const struct bw_path_store *store,
                                     const struct bw_stored_name *name);

/** Adds a directory with its parents, or details to one that has none; `details` may be NULL. False
 * if memory runs out. */
bool bw_path_store_describe(struct bw_path_store *store, const char *path, size_t length,
                            const struct bw_path_details *details, uint32_t *number);

/** Adds a directory that the store does not have to a known one. */
uint32_t bw_path_store_add_directory(struct bw_path_store *store, uint32_t parent, const char *name,
                                     size_t length, const struct bw_path_details *details);

/** Finds a directory in another one. */
uint32_t bw_path_store_find_name(const struct bw_path_store *store, uint32_t parent,
                                 const char *name, size_t length);

/** Finds a directory. */
uint32_t bw_path_store_find(struct bw_path_store *store, const char *path, size_t length);

/** Finds a directory or its nearest parent in a store that is not empty; `*known` is the length of
 * the path found. */
uint32_t bw_path_store_find_nearest(struct bw_path_store *store, const char *path, size_t length,
                                    size_t *known);

/* Components of paths. */

/** The length of the common beginning of two paths, in whole components. */
size_t bw_path_common(const struct bw_buffer *one, const char *path, size_t length);

/** The length of the path of the parent. */
size_t bw_path_parent(const char *path, size_t length);

/** The component after the first `known` bytes of a path, and the offset of its end. */
const char *bw_path_next(const char *path, size_t length, size_t known, size_t *end);

#endif
