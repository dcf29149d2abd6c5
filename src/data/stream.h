/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading many files, or large ones, with several threads. Files come from a function, one after
 * the other; they are cut to tasks of about BW_DATA_BLOCK bytes, small files several to a task;
 * worker threads read and decompress; what they have read is delivered in the order of the files
 * and of the offsets in them. What is delivered, and in which order, does not depend on the number
 * of threads.
 *
 *     next() ──► tasks ──► workers: read, or work() ──► in order: take(), finish()
 *
 * Memory is bounded, whatever the files are: some blocks more than there are threads. Holes cost
 * nothing.
 */
#ifndef BW_DATA_STREAM_H
#define BW_DATA_STREAM_H

#include "data/reader.h"

struct bw_fs;

/** A range of a file to be read. */
struct bw_stream_file {
    struct bw_data_file data;
    uint64_t offset, length; /**< the range; cut at the file's size. UINT64_MAX: to its end */
    void *user;              /**< the caller's; goes along to all functions */
};

/** What to read, and who gets it. The functions that may be NULL are named. */
struct bw_stream {
    unsigned threads; /**< workers, the calling thread among them; 0: one per processor, at most 8
                       */

    /** Gives the next file; `*got` false: there are no more. Never called by two threads at once,
     * and not before the order of the files needs it: some tasks ahead of what is delivered. */
    struct bw_error *(*next)(void *context, struct bw_stream_file *file, bool *got);

    /**
     * Does with a whole file on a worker what there is to do, reading it with bw_data_read() or not
     * at all; for files whose range is no longer than `work_limit`. Nothing of these is delivered
     * to `take`. Called by several threads at once. NULL: all files are delivered to `take`.
     */
    struct bw_error *(*work)(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file);
    uint64_t work_limit; /**< in bytes */

    /** Takes a part of a file, in order: never called by two threads at once, but not always by the
     * same. The part ends with the call. */
    struct bw_error *(*take)(void *context, const struct bw_stream_file *file,
                             const struct bw_data_part *part);

    /**
     * Ends a file: called once for each that `next` has given, in order, after its last part or its
     * work, under the same terms as `take`. `complete` is false if an error came in between: some
     * of it was not delivered. May be NULL.
     */
    struct bw_error *(*finish)(void *context, const struct bw_stream_file *file, bool complete);

    void *context; /**< passed to all of them */
};

/** Reads. Returns the first error of one of the functions, or BW_ERROR_NO_MEMORY; damage is no
 * error. */
struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *stream);

#endif
