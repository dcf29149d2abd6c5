/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of unreadable ranges of a device: map files of ddrescue, lists of badblocks. */
#ifndef BW_BASE_BAD_MAP_H
#define BW_BASE_BAD_MAP_H

#include <stdint.h>

#include "btrfs-walk/error.h"

/** Receives a range in bytes, which is not empty and does not wrap. An error ends the reading and
 * is returned. */
typedef struct bw_error *bw_bad_range_visitor(void *context, uint64_t start, uint64_t length);

/** The extent of a map file. ddrescue refuses a file with gaps, or ranges out of order. */
struct bw_bad_map_extent {
    uint64_t end;  /**< the end of the last range; UINT64_MAX for a list of badblocks */
    unsigned line; /**< the first one that does not begin where the line before it ended, or 0 */
};

/**
 * Reads a map file of ddrescue, where everything not marked as rescued counts as bad, or a list of
 * badblocks(8): numbers of blocks of 1024 bytes. The ranges are in the order of the file.
 * BW_ERROR_USAGE, with the line, if it is neither; BW_ERROR_SYSTEM if it cannot be read.
 * `extent` may be NULL.
 */
struct bw_error *bw_bad_map_read(const char *file, bw_bad_range_visitor *visit, void *context,
                                 struct bw_bad_map_extent *extent);

#endif
