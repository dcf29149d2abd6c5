/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How well the contents of files are compressed, and what partly overwritten extents waste: the
 * numbers of compsize(8).
 *
 * An extent is counted once, as a whole, however many files use however much of it. References and
 * data that lie inside the tree are counted for each name of a file. Metadata are not counted, and
 * neither is what parity or copies take.
 */
#ifndef BTRFS_WALK_COMPRESSION_H
#define BTRFS_WALK_COMPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;
struct bw_selection;

/** Bytes of extents. */
struct bw_compression_sizes {
    uint64_t disk;         /**< that are stored */
    uint64_t uncompressed; /**< of the same extents, decompressed */
    uint64_t referenced;   /**< that files use of those; what several names or files use counts as
                                often */
};

/** Kinds of extents: the types of enum bw_compression, and what is allocated and was never written.
 */
enum {
    BW_COMPRESSION_PREALLOC = BW_COMPRESS_TYPES,
    BW_COMPRESSION_KINDS,
};

/** Name of a kind ("zstd", "prealloc"); NULL if there is none with this number. */
const char *bw_compression_kind_name(unsigned type);

/** The sums over all files. */
struct bw_compression_info {
    uint64_t files;      /**< names of regular files */
    uint64_t extents;    /**< different extents */
    uint64_t references; /**< to those */
    uint64_t inlined;    /**< extents that lie inside the tree */
    struct bw_compression_sizes total;
    struct bw_compression_sizes types[BW_COMPRESSION_KINDS]; /**< by number of the kind */
    uint64_t reserved[16];                                   /**< zeros: room for more members */
};

/** Files that are to be counted. One thread at a time may use it. */
struct bw_compression_count;

/** Which files count. With struct_size alone: all. */
struct bw_compression_options {
    size_t struct_size; /**< sizeof(struct bw_compression_options) */
    /** Conditions that files must meet, unchanged until the end; NULL: none. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories to descend; 0: only starts that are files */
    unsigned mindepth; /**< how many directories below the start the first files are */
    unsigned nested;   /**< enum bw_nested (walk.h): whether subvolumes below a start are entered */
};

/** Begins with no files; `options` may be NULL. The caller owns `*count`, which the file system
 * must outlive. BW_ERROR_USAGE for wrong options, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_compression_begin(struct bw_fs *fs,
                                      const struct bw_compression_options *options,
                                      struct bw_compression_count **count);

/** Adds a file, or all that is below a directory: as struct bw_du_options (du.h) names it. Nothing
 * else is counted. Lost blocks are reported. BW_ERROR_NOT_FOUND, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_compression_add(struct bw_compression_count *count, const char *subvolume,
                                    const char *start);

/** The sums of all that was added; to be called once. If blocks were lost, their number is
 * reported: sizes are lower bounds then. */
struct bw_error *bw_compression_sum(struct bw_compression_count *count,
                                    struct bw_compression_info *info);

/** Frees it; NULL is allowed. */
void bw_compression_end(struct bw_compression_count *count);

#ifdef __cplusplus
}
#endif
#endif
