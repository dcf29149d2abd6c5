/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ahead. The kernel requests at most 128 KiB at a time, which is too small for efficient
 * reads and does not match the ends of compressed extents. Therefore, files that are read
 * sequentially are read in windows of 1 MiB; other threads read the next windows meanwhile. The
 * number of windows is limited; the most recently used ones are kept. The kernel caches data that
 * was delivered.
 */
#ifndef BW_MOUNT_READAHEAD_H
#define BW_MOUNT_READAHEAD_H

#include <pthread.h>

#include "base/buffer.h"
#include "btrfs-walk/file.h"

enum { BW_READAHEAD_BYTES = 1 << 20 };

struct bw_readahead;

/** A part of a file, at a multiple of BW_READAHEAD_BYTES. */
struct bw_readahead_window;

struct bw_error *bw_readahead_create(struct bw_fs *fs, struct bw_readahead **readahead);
void bw_readahead_destroy(struct bw_readahead *readahead);

/** The readers that it uses, which are also used without windows. */
struct bw_readers *bw_readahead_readers(struct bw_readahead *readahead);

/**
 * Gets the window that contains an offset in the file; release it after use. NULL if a part of the
 * window cannot be read, or all windows are in use; then the data must be read without a window.
 */
struct bw_readahead_window *bw_readahead_acquire(struct bw_readahead *readahead,
                                                 const struct bw_data_file *file, uint64_t offset);
void bw_readahead_release(struct bw_readahead *readahead, struct bw_readahead_window *window);

/** The bytes of a window. Those before the requested offset are valid, too. */
const uint8_t *bw_readahead_bytes(const struct bw_readahead_window *window);

/** Starts reading the window that contains an offset, and returns immediately. */
void bw_readahead_start(struct bw_readahead *readahead, const struct bw_data_file *file,
                        uint64_t offset);

/* Readers of files, shared by the threads of a mount: each request uses one. Their number is the
 * maximum of simultaneous requests so far. */

/** State of one reading thread. */
struct bw_reader {
    struct bw_reader *next; /* next unused reader */
    struct bw_data_reader *data;
    struct bw_extent_reader *extents;
    struct bw_buffer bytes; /**< buffer for a reply */
};

struct bw_readers {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct bw_reader *first;
};

/** Gets an unused reader; release it after use. */
struct bw_error *bw_readers_acquire(struct bw_readers *readers, struct bw_reader **reader);
void bw_readers_release(struct bw_readers *readers, struct bw_reader *reader);

/** Reads a range of a file completely; it must not exceed the file's size. An unreadable part is an
 * error. */
struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes);

#endif
