/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fetching stored pieces of files for the reader: requests, checksums, decompression, and what of
 * them is bad. */
#ifndef BW_DATA_FETCH_H
#define BW_DATA_FETCH_H

#include "data/block.h"
#include "data/extents.h"

enum {
    BW_DATA_REQUEST = 64 << 10, /**< bytes of a request at most; its address is in one such range */
};

struct bw_data_fetch;

struct bw_error *bw_data_fetch_create(struct bw_fs *fs, struct bw_data_fetch **result);
void bw_data_fetch_destroy(struct bw_data_fetch *fetch);

/**
 * Adds a STORED piece of a file to a block, as parts of which the bytes come later: until
 * bw_data_fetch_finish(), nobody may touch the block but to add parts. There must be room for it.
 * Fails only for want of memory.
 */
struct bw_error *bw_data_fetch_add(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece,
                                   struct bw_data_block *block);

/** Brings the bytes. Fails only for want of memory. */
struct bw_error *bw_data_fetch_finish(struct bw_data_fetch *fetch, struct bw_data_block *block);

/** Forgets what was added. */
void bw_data_fetch_drop(struct bw_data_fetch *fetch);

#endif
