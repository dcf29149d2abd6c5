/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing archives: pax (for tar), and manifests as in mtree(5). Only one thread at a time
 * may use an archive.
 */
#ifndef BW_EXPORT_ARCHIVE_H
#define BW_EXPORT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/inode.h"

enum bw_archive_format {
    BW_ARCHIVE_PAX,
    BW_ARCHIVE_MTREE,
};

/** A range of data in a file with holes. */
struct bw_archive_range {
    uint64_t offset, length;
};

/** An entry. All strings are NUL-terminated. */
struct bw_archive_entry {
    const char *path; /**< path in the archive; pax: ends with '/' for a directory */
    const struct bw_inode *inode;
    bool has_atime, has_ctime;     /**< pax: store these times, too */
    const char *user, *group;      /**< pax: names of the owners; NULL: none */
    const char *symlink;           /**< target of a symbolic link; NULL for anything else */
    const char *hardlink;          /**< pax: an earlier name of the same file, or NULL */
    const char *hash;              /**< mtree: SHA-256; may be NULL */
    const struct bw_xattr *xattrs; /**< pax: each name is NUL-terminated */
    size_t xattr_count;
    const struct bw_archive_range *ranges; /**< pax, if `is_sparse`: ranges of data in ascending
                                            * order, none of length 0; must stay valid until the
                                            * next entry begins */
    size_t range_count;
    bool is_sparse; /**< the file has holes that are not stored */
};

struct bw_archive;

/** Receives the bytes of an archive, in order. */
typedef struct bw_error *bw_archive_writer(void *context, const char *bytes, size_t length);

/** Begins an archive. Small pieces are passed to `write` individually. */
struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result);
/** Frees an archive, which is incomplete unless bw_archive_end() was called. `archive` may be
 * NULL. */
void bw_archive_destroy(struct bw_archive *archive);

/**
 * Begins an entry. `*wanted` is set to the number of bytes of data that must follow, including
 * holes. BW_ERROR_USAGE if the format cannot store such an entry; then it is omitted, and the
 * archive can be continued.
 */
struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted);
/** Adds data of the entry. */
struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length);
/** Adds zeros of data or of a hole. The length of holes in a sparse file does not affect the run
 * time. */
struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length);
/** Completes an archive. */
struct bw_error *bw_archive_end(struct bw_archive *archive);

BW_VECTOR(bw_archive_ranges, struct bw_archive_range);

/** Finds the ranges of data of a file. Only one thread at a time may use it. */
struct bw_ranges {
    struct bw_extent_reader *reader;
    struct bw_archive_ranges ranges; /**< ranges of data, in ascending order; aligned to 512 bytes,
                                      * except for the end of the file */
    uint64_t least_hole; /**< smaller holes count as data: 4 KiB, more in files with very many holes
                          */
    bool is_sparse;      /**< there are holes of this size */
    struct bw_error *lost; /**< the error of a large unreadable range that counts as a hole, or NULL
                            */
};

struct bw_error *bw_ranges_init(struct bw_ranges *ranges, struct bw_fs *fs);
void bw_ranges_free(struct bw_ranges *ranges);

/** Finds the ranges of data of a file. If it has very many holes, the smallest count as data.
 * Unreadable ranges count as data, unless an extent larger than 1 GiB is lost. Fails only if memory
 * runs out. */
struct bw_error *bw_ranges_read(struct bw_ranges *ranges, const struct bw_data_file *file);

#endif
