/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes that continue after interruptions, and after calls that handled only a part; and
 * files in memory. */
#ifndef BW_BASE_WHOLE_IO_H
#define BW_BASE_WHOLE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Writes all bytes with write(2). False: errno has the reason. */
bool bw_write_all(int descriptor, const void *bytes, size_t length);

/** The same at an offset, with pwrite(2). */
bool bw_write_at(int descriptor, const void *bytes, size_t length, uint64_t offset);

/** Reads bytes with read(2), and returns their number, which is smaller than `length` only at the
 * end of the file. -1: errno has the reason. */
ssize_t bw_read_all(int descriptor, void *bytes, size_t length);

/** The same at an offset, with pread(2). */
ssize_t bw_read_at(int descriptor, void *bytes, size_t length, uint64_t offset);

/** Makes a sparse file in memory; -1: errno has the reason. */
int bw_memory_file(uint64_t size);

/** Whether the process may write files of this size; otherwise, errno is EFBIG. A signal ends
 * processes that write beyond their limit. */
bool bw_file_may_have(uint64_t size);

/** Sets the size of a file, if it may have that. False: errno has the reason. */
bool bw_resize_file(int descriptor, uint64_t size);

#endif
