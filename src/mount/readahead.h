/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ahead. The kernel asks for 128 KiB at a time, which is a small piece to read, and not
 * where compressed extents end. Files that are read from front to back are therefore read in
 * windows of 1 MiB, the next ones by other threads while this one is being delivered. A bounded
 * number of windows is kept, the ones used last; what was delivered, the kernel keeps.
 */
#ifndef BW_MOUNT_READAHEAD_H
#define BW_MOUNT_READAHEAD_H

#include <pthread.h>

#include "base/buffer.h"
#include "btrfs-walk/stream.h"

enum { BW_READAHEAD_BYTES = 1 << 20 };

struct bw_readahead;

/** A part of a file, at a multiple of BW_READAHEAD_BYTES. */
struct bw_readahead_window;

struct bw_error *bw_readahead_create(struct bw_fs *fs, struct bw_readahead **readahead);
void bw_readahead_destroy(struct bw_readahead *readahead);

/** The readers that it uses are for others, too. */
struct bw_readers *bw_readahead_readers(struct bw_readahead *readahead);

/**
 * The window that holds an offset before the end of the file, to be given back. NULL: something in
 * it cannot be read, or all windows are in use; then the data have to be read without it.
 */
struct bw_readahead_window *bw_readahead_acquire(struct bw_readahead *readahead,
                                                 const struct bw_data_file *file, uint64_t offset);
void bw_readahead_release(struct bw_readahead *readahead, struct bw_readahead_window *window);

/** Its bytes: those from the offset that it was taken for, and all before it. */
const uint8_t *bw_readahead_bytes(const struct bw_readahead_window *window);

/** Has the window that holds an offset read, so that it is there when it is wanted. Returns at
 * once. */
void bw_readahead_start(struct bw_readahead *readahead, const struct bw_data_file *file,
                        uint64_t offset);

/* Readers of files, which the threads of a mount share: each takes one for a request. There are as
 * many as were ever in use at the same time. */

/** State of one reading thread. */
struct bw_reader {
    struct bw_reader *next; /* that nobody uses */
    struct bw_data_reader *data;
    struct bw_extent_reader *extents;
    struct bw_buffer bytes; /**< room for an answer */
};

struct bw_readers {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct bw_reader *first;
};

/** Takes a reader, to be given back. */
struct bw_error *bw_readers_acquire(struct bw_readers *readers, struct bw_reader **reader);
void bw_readers_release(struct bw_readers *readers, struct bw_reader *reader);

/** Reads a range of a file, which ends at its size at most, as a whole: a part that cannot be read
 * is an error. */
struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes);

#endif
