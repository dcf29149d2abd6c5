/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ahead. The kernel asks for 128 KiB at a time, which is a small piece to read, and not
 * where compressed extents end. Files that are read from front to back are therefore read in
 * windows of 1 MiB, the next ones by other threads while this one is being delivered. A bounded
 * number of windows is kept, the ones used last; what was delivered, the kernel keeps.
 */
#ifndef BW_MOUNT_WINDOWS_H
#define BW_MOUNT_WINDOWS_H

#include "mount/readers.h"

enum { BW_WINDOW_BYTES = 1 << 20 };

struct bw_windows;

/** A part of a file, at a multiple of BW_WINDOW_BYTES. */
struct bw_window;

struct bw_error *bw_windows_create(struct bw_fs *fs, struct bw_windows **windows);
void bw_windows_destroy(struct bw_windows *windows);

/** The readers that it uses are for others, too. */
struct bw_readers *bw_windows_readers(struct bw_windows *windows);

/**
 * The window that holds an offset before the end of the file, to be given back. NULL: something in
 * it cannot be read, or all windows are in use; then the data have to be read without it.
 */
struct bw_window *bw_windows_take(struct bw_windows *windows, const struct bw_data_file *file,
                                  uint64_t offset);
void bw_windows_give(struct bw_windows *windows, struct bw_window *window);

/** Its bytes: those from the offset that it was taken for, and all before it. */
const uint8_t *bw_window_bytes(const struct bw_window *window);

/** Has the window that holds an offset read, so that it is there when it is wanted. Returns at
 * once. */
void bw_windows_ahead(struct bw_windows *windows, const struct bw_data_file *file, uint64_t offset);

#endif
