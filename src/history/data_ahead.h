/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests the data of files in several generations together, so that servers see few round trips,
 * and few requests: neighbours become one. */
#ifndef BW_HISTORY_DATA_AHEAD_H
#define BW_HISTORY_DATA_AHEAD_H

#include "data/file_extents.h"
#include "fs/fs.h"

/** Ranges that were not requested yet. All zeros is empty. */
struct bw_data_ahead {
    struct bw_fs *fs; /**< which locates the ranges; NULL before the first */
    struct bw_range *ranges;
    size_t count;
};

/** Adds the data of a file in a generation of `present`: at most the first `most` bytes, and only
 * the beginning of a fragmented file. Adds the number of stored bytes to `*bytes`. Fails only if
 * memory runs out. */
struct bw_error *bw_data_ahead_add(struct bw_data_ahead *ahead, struct bw_fs *present,
                                   struct bw_extent_cursor *cursor, const struct bw_data_file *file,
                                   uint64_t most, uint64_t *bytes);

/** Requests the ranges, and removes them. */
void bw_data_ahead_request(struct bw_data_ahead *ahead);

void bw_data_ahead_free(struct bw_data_ahead *ahead);

#endif
