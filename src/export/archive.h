/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing archives, through libarchive: pax and cpio; and manifests in the words of mtree(5), a
 * line an entry, which libarchive would hold in memory until the last. One thread at a time may use
 * an archive.
 */
#ifndef BW_EXPORT_ARCHIVE_H
#define BW_EXPORT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "format/items.h"

enum bw_archive_format {
    BW_ARCHIVE_PAX,
    BW_ARCHIVE_CPIO, /**< "newc" */
    BW_ARCHIVE_MTREE,
};

/** A range of a file that is no hole. */
struct bw_archive_range {
    uint64_t offset, length;
};

/** An entry. All texts end with NUL. */
struct bw_archive_entry {
    const char *path; /**< as it shall be in the archive */
    uint64_t number;  /**< a number that all names of a file share, and nobody else has */
    const struct bw_inode *inode;
    const char *symlink;           /**< its target; NULL: it is none */
    const char *hardlink;          /**< the path of which it is one more name; NULL: it is none */
    const char *hash;              /**< its SHA-256, for mtree; NULL: it has none */
    const struct bw_xattr *xattrs; /**< a NUL is behind each name; all zeros without any */
    size_t xattr_count;
    const struct bw_archive_range *ranges; /**< ascending; for pax, if it has holes: until the next
                                              entry */
    size_t range_count;
    bool is_sparse; /**< whether `ranges` means anything */
};

struct bw_archive;

/** Takes bytes of the archive, in order. */
typedef struct bw_error *bw_archive_writer(void *context, const char *bytes, size_t length);

/** Begins an archive. `write` also gets small pieces. */
struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result);
/** Frees it. If it was not ended, it is cut off. NULL is allowed. */
void bw_archive_destroy(struct bw_archive *archive);

/**
 * Begins an entry. `*wanted` gets how many bytes of data are to follow, holes included.
 * BW_ERROR_UNSUPPORTED if the format cannot hold such an entry: it is left out then, and the
 * archive goes on.
 */
struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted);
/** Data of the entry. */
struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length);
/** Zeros of it, a hole or not. Holes of a sparse file cost nothing, however long they are. */
struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length);
/** Ends the archive. */
struct bw_error *bw_archive_end(struct bw_archive *archive);

#endif
