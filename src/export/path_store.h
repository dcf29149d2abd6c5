/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths that are kept until the end of an export. Backups have millions of them, and an image may
 * be made to have long ones: each is its last name and the number of the directory it is in.
 */
#ifndef BW_EXPORT_PATH_STORE_H
#define BW_EXPORT_PATH_STORE_H

#include "base/buffer.h"
#include "base/map.h"

/** All zeros is empty. */
struct bw_path_store {
    struct bw_stored_name *items;
    size_t count, capacity;
    struct bw_buffer names;
    struct bw_map directories; /**< numbers by the hash of the path */
};

/** Frees the memory and leaves an empty store. */
void bw_path_store_free(struct bw_path_store *store);

/** Keeps the path of a directory, once, and gives its number; false if memory runs out. */
bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number);

/** The number of a directory that is kept; UINT32_MAX: it is not. */
uint32_t bw_path_store_find(const struct bw_path_store *store, const char *path, size_t length);

/** Keeps any path, and gives its number; false if memory runs out. */
bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number);

/** Appends the path of a number. */
void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path);

#endif
