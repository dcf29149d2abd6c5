/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One hash of a directory tree. Each entry below the top becomes a
 * record:
 *
 *     PATH NUL TYPE NUL MODE NUL UID NUL GID NUL MTIME NUL CONTENT NUL
 *     and for each attribute, in the order of the bytes of the names:
 *     NAME NUL LENGTH NUL VALUE
 *
 * docs/export.md describes the members. SHAKE128 expands each record to 2048 bytes: 1024 numbers of
 * 16 bits, little-endian. The sums of these numbers over all records, modulo 2^16, are the state of
 * the tree (LtHash), and the SHA-256 of the state is its hash. So entries may come in any order,
 * and the memory does not depend on their number.
 */
#ifndef BW_EXPORT_TREE_HASH_H
#define BW_EXPORT_TREE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/error.h"
#include "base/hash.h"

/** Parts of a record that may be left empty. */
enum bw_tree_hash_parts {
    BW_TREE_HASH_MODES = 1 << 0,
    BW_TREE_HASH_OWNERS = 1 << 1,
    BW_TREE_HASH_TIMES = 1 << 2,
    BW_TREE_HASH_XATTRS = 1 << 3,
    BW_TREE_HASH_ALL = (1 << 4) - 1,
};

/** An entry. */
struct bw_tree_hash_entry {
    const char *path; /**< relative to the top, without a '/' before it or after it */
    size_t path_length;
    bool has_attributes; /**< false for an empty directory in place of a subvolume within a
                          * snapshot: only its path and type count */
    uint32_t mode;       /**< type and permissions, as st_mode */
    uint32_t uid, gid;
    struct timespec mtime;
    unsigned major, minor; /**< of a device */
    const char *content;   /**< SHA-256 of a regular file in digits, or target of a symbolic link */
    size_t content_length;
};

/** A hash that is being computed. Only one thread at a time may use it. */
struct bw_tree_hash;

/** Creates one; `parts` are bits of enum bw_tree_hash_parts. BW_ERROR_UNSUPPORTED if the system
 * does not permit the algorithms. */
struct bw_error *bw_tree_hash_create(unsigned parts, struct bw_tree_hash **result);
void bw_tree_hash_destroy(struct bw_tree_hash *hash);

/** Begins an entry; its attributes follow, in any order. */
struct bw_error *bw_tree_hash_begin(struct bw_tree_hash *hash,
                                    const struct bw_tree_hash_entry *entry);
/** Adds an attribute of the entry, unless it is not compared (bw_folder_compares_xattr()). */
struct bw_error *bw_tree_hash_add_xattr(struct bw_tree_hash *hash, const void *name,
                                        size_t name_length, const void *value, size_t value_length);
/** Ends the entry. */
struct bw_error *bw_tree_hash_end(struct bw_tree_hash *hash);

/** The hash of all entries, as lower-case hexadecimal digits. */
struct bw_error *bw_tree_hash_finish(struct bw_tree_hash *hash, char text[static BW_HASH_TEXT]);

#endif
