/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ahead. The kernel requests at most 128 KiB at a time, which is too small for efficient
 * reads and does not match the ends of compressed extents. Therefore, files that are read
 * sequentially are read in windows of 1 MiB; other threads read the next windows meanwhile. The
 * number of windows is limited; the most recently used ones are kept. The kernel caches data that
 * was delivered.
 */
#ifndef BW_MOUNT_READ_WINDOWS_H
#define BW_MOUNT_READ_WINDOWS_H

#include <pthread.h>

#include "base/buffer.h"
#include "btrfs-walk/file.h"

enum { BW_READ_WINDOW_BYTES = 1 << 20 };

struct bw_read_windows;

/** A part of a file, at a multiple of BW_READ_WINDOW_BYTES. */
struct bw_read_window;

struct bw_error *bw_read_windows_create(struct bw_fs *fs, struct bw_read_windows **read_windows);
void bw_read_windows_destroy(struct bw_read_windows *read_windows);

/** The readers that it uses, which are also used without windows. */
struct bw_readers *bw_read_windows_readers(struct bw_read_windows *read_windows);

/**
 * Gets the window that contains an offset in the file; release it after use. NULL if a part of the
 * window cannot be read, or all windows are in use; then the data must be read without a window.
 */
struct bw_read_window *bw_read_windows_acquire(struct bw_read_windows *read_windows,
                                               const struct bw_data_file *file, uint64_t offset);
void bw_read_windows_release(struct bw_read_windows *read_windows, struct bw_read_window *window);

/** The bytes of a window. Those before the requested offset are valid, too. */
const uint8_t *bw_read_windows_bytes(const struct bw_read_window *window);

/** Starts reading the window that contains an offset, and returns immediately. */
void bw_read_windows_start(struct bw_read_windows *read_windows, const struct bw_data_file *file,
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
