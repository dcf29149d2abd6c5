/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing archives: pax (what tar reads), cpio, and manifests as in mtree(5). One thread at a time
 * may use an archive.
 */
#ifndef BW_EXPORT_ARCHIVE_H
#define BW_EXPORT_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/stream.h"

enum bw_archive_format {
    BW_ARCHIVE_PAX,
    BW_ARCHIVE_CPIO, /**< "newc" */
    BW_ARCHIVE_MTREE,
};

/** A range of a file that is not a hole. */
struct bw_archive_range {
    uint64_t offset, length;
};

/** An entry. All strings end with NUL. */
struct bw_archive_entry {
    const char *path; /**< as it is to appear in the archive; pax: with a '/' after a directory */
    uint64_t number;  /**< for files with several names: the same for each of them, not 0 */
    const struct bw_inode *inode;
    const char *symlink;  /**< target of a symbolic link; NULL for anything else */
    const char *hardlink; /**< pax: an earlier path of the same file; NULL if there is none */
    const char *hash;     /**< mtree: SHA-256; NULL if unknown */
    const struct bw_xattr *xattrs; /**< pax; a NUL follows each name */
    size_t xattr_count;
    const struct bw_archive_range *ranges; /**< pax, if `is_sparse`: ascending, without those of
                                              length 0; valid until the next entry begins */
    size_t range_count;
    bool is_sparse; /**< the file has holes, which are left out */
};

struct bw_archive;

/** Takes bytes of the archive, in order. */
typedef struct bw_error *bw_archive_writer(void *context, const char *bytes, size_t length);

/** Begins an archive. `write` is also called with small pieces. */
struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result);
/** Frees it. Unless it was ended, the archive is truncated. NULL is allowed. */
void bw_archive_destroy(struct bw_archive *archive);

/**
 * Begins an entry. `*wanted` is set to the number of bytes of data that must follow, holes
 * included. BW_ERROR_USAGE if the format cannot store such an entry: it is left out, and the
 * archive goes on.
 */
struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted);
/** Adds data of the entry. */
struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length);
/** Adds zeros, part of a hole or not. Holes of a sparse file cost nothing, however long they are.
 */
struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length);
/** Ends the archive. */
struct bw_error *bw_archive_end(struct bw_archive *archive);

/** Appends all that comes before the data of an entry, and sets `*data` to the number of bytes of
 * data that the archive stores for it. Errors as of bw_archive_begin(). */
struct bw_error *bw_archive_append_entry(enum bw_archive_format format, struct bw_buffer *text,
                                         const struct bw_archive_entry *entry, uint64_t *data);

/** The ranges of one file. One thread at a time may use it. */
struct bw_ranges {
    struct bw_extent_reader *reader;
    struct bw_archive_range *ranges; /**< of data, ascending; all but the end of the file in units
                                        of 512 */
    size_t count, capacity;
    uint64_t least_hole;   /**< smaller ones count as data: 4 KiB, more in a file with very many */
    bool is_sparse;        /**< it has holes that are worth it */
    struct bw_error *lost; /**< why so much cannot be read that it counts as a hole; NULL: nothing
                              like that */
};

/** Starts. */
struct bw_error *bw_ranges_init(struct bw_ranges *ranges, struct bw_fs *fs);
/** Frees what it holds. */
void bw_ranges_free(struct bw_ranges *ranges);

/** Finds those of a file. Of a file with very many holes the smallest are taken for data. What
 * cannot be read counts as data, unless more than 1 GiB is lost at once. Fails only if memory
 * runs out. */
struct bw_error *bw_ranges_read(struct bw_ranges *ranges, const struct bw_data_file *file);

#endif
