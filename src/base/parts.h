/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of the parts of a split file: disk.img.001 and disk.img.002, or .00 and .aa. */
#ifndef BW_BASE_PARTS_H
#define BW_BASE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/** Finds the suffix of a path that may be the first part of a split file: ".001", ".00", ".aa". All
 * parts have suffixes of the same length. NULL: it cannot be the first part. */
const char *bw_part_suffix(const char *path);

/** Increments a suffix; false after the last possible one. */
bool bw_part_count_up(char *suffix);

bool bw_part_exists(const char *path);

/** Increments the suffix, which begins at an offset; true if the next part exists. Otherwise `path`
 * is the name of the first missing part. */
bool bw_part_next(char *path, size_t suffix);

/** Whether a path is the first part of a file that has a second one. */
bool bw_part_is_first(const char *path);

#endif
