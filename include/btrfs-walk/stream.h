/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the contents of many files, or of large ones, with several threads.
 *
 * Files come from a function of the caller, one after another. They are cut into tasks of about
 * 2 MiB, with several small files to a task; worker threads read and decompress; the results are
 * delivered in the order of the files and of the offsets in them:
 *
 *     next() --> tasks --> workers: read, or work() --> in order: take(), finish()
 *
 * What is delivered, and in which order, does not depend on the number of threads. Memory is
 * bounded by the number of threads, whatever the files are; holes cost nothing.
 */
#ifndef BTRFS_WALK_STREAM_H
#define BTRFS_WALK_STREAM_H

#include "btrfs-walk/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The contents of a file: a plain value. */
struct bw_data_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint64_t size;           /**< bytes, as its inode says */
    bool unchecked;          /**< read without looking at checksums: it has none, or they are not
                                  wanted */
    bool may_lack_checksums; /**< data without a checksum are taken as they are: for files whose
                                inode is lost, which therefore does not say whether there are any */
};

/** The contents of a place with this inode. */
struct bw_data_file bw_data_file_of(const struct bw_place *place, const struct bw_inode *inode);

/** A range of a file to be read. */
struct bw_stream_file {
    struct bw_data_file data;
    uint64_t offset, length; /**< the range, cut at the file's size; UINT64_MAX: to its end */
    void *user;              /**< the caller's; handed to all functions */
};

/** Reads files one after another; a stream hands one to `work`. One thread at a time may use it. */
struct bw_data_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **reader);

/** Frees it; NULL is allowed. */
void bw_data_reader_destroy(struct bw_data_reader *reader);

/** What to read, and who receives it. Members that may be NULL or 0 say so. */
struct bw_stream {
    size_t struct_size; /**< sizeof(struct bw_stream) */
    unsigned threads;   /**< workers, the calling thread among them; 0: one for each processor, at
                             most 8 */

    /** Gives the next file; `*got` false: there are no more. Never called by two threads at once.
     * It runs some tasks ahead of what is delivered. */
    struct bw_error *(*next)(void *context, struct bw_stream_file *file, bool *got);

    /**
     * Processes a whole file on a worker, reading it with bw_data_read() if it likes; for files
     * whose range is at most `work_limit` bytes. Nothing of those is delivered to `take`. Called by
     * several threads at once. NULL: all files are delivered to `take`.
     */
    struct bw_error *(*work)(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file);
    uint64_t work_limit; /**< bytes; 0: 32 MiB, or any number if `take` is NULL */

    /** Receives a part of a file, in order: never called by two threads at once, but not always by
     * the same one. The part ends with the call. */
    struct bw_error *(*take)(void *context, const struct bw_stream_file *file,
                             const struct bw_data_part *part);

    /**
     * Ends a file: called once for each that `next` gave, in order, after its last part or its
     * work, under the same terms as `take`. `complete` is false if an error came in between, so
     * that some of it was not delivered. May be NULL.
     */
    struct bw_error *(*finish)(void *context, const struct bw_stream_file *file, bool complete);

    void *context; /**< passed to all of them */

    /** How many bytes the caller keeps for a file from `next` to `finish`, if these can be many: up
     * to 256 files are taken ahead for each task, but fewer if they have more than 256 KiB. NULL:
     * no such bytes. */
    size_t (*held)(void *context, const struct bw_stream_file *file);
};

/** Reads. Returns the first error that one of the functions returned, or BW_ERROR_NO_MEMORY; damage
 * is delivered as bad parts. */
struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *stream);

/** Reads a range of a file, as bw_file_read_parts(). */
struct bw_error *bw_data_read(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, bw_data_taker *take, void *context);

/** Where a file has data, without reading them. One thread at a time may use one. */
struct bw_extent_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_extent_reader_create(struct bw_fs *fs, struct bw_extent_reader **reader);

/** Frees it; NULL is allowed. */
void bw_extent_reader_destroy(struct bw_extent_reader *reader);

/** Goes to an offset of a file, to hand out its extents up to `end`. */
void bw_extent_reader_seek(struct bw_extent_reader *reader, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end);

/** The next extent, as bw_file_next_extent(). */
struct bw_error *bw_extent_reader_next(struct bw_extent_reader *reader, struct bw_extent *extent,
                                       bool *got);

#ifdef __cplusplus
}
#endif
#endif
