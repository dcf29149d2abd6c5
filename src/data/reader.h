/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ranges of files: the bytes as stored, read through the graph, verified against the
 * checksum tree, decompressed, and put in file order; holes are holes, and what cannot be read is a
 * bad range.
 *
 * There is one reader for each worker thread. bw_data_read() passes a range on part by part.
 * bw_data_fill() reads into a block of the caller, who may keep it for a while.
 */
#ifndef BW_DATA_READER_H
#define BW_DATA_READER_H

#include "btrfs-walk/stream.h"
#include "data/file_extents.h"

enum {
    BW_DATA_BLOCK = 2 << 20, /**< bytes of file data in a block */
};

/** Memory, and the parts of files that were read into it. All zeros is empty. */
struct bw_data_block {
    uint8_t *bytes; /**< BW_DATA_BLOCK and some more; NULL until they are needed */
    size_t used;    /**< of these bytes */
    struct bw_data_part *parts;
    size_t count, capacity; /**< of the parts */
};

/** Empties a block, keeping the memory. */
void bw_data_block_clear(struct bw_data_block *block);
/** Frees all it holds. */
void bw_data_block_free(struct bw_data_block *block);

/* For filling it. */

/** Allocates the memory of the block if necessary; false if memory ran out. */
bool bw_data_block_reserve(struct bw_data_block *block);
/** Remaining bytes. */
size_t bw_data_block_room(const struct bw_data_block *block);
/** Takes bytes, at most as many as are left. */
uint8_t *bw_data_block_take(struct bw_data_block *block, size_t length);
/** Adds a part at the end; takes its error. */
struct bw_error *bw_data_block_add(struct bw_data_block *block, struct bw_data_part part);
/** Adds a part that cannot be read; takes the error. */
struct bw_error *bw_data_block_add_bad(struct bw_data_block *block, uint64_t offset,
                                       uint64_t length, struct bw_error *error);
/** Inserts parts before part `at`; takes their errors. */
struct bw_error *bw_data_block_insert(struct bw_data_block *block, size_t at,
                                      const struct bw_data_part *parts, size_t count);
/** Joins neighbours, from part `first` on. */
void bw_data_block_join(struct bw_data_block *block, size_t first);
/** Cuts parts, from part `first` on, to a range of the file. */
void bw_data_block_trim(struct bw_data_block *block, size_t first, uint64_t start, uint64_t end);

/**
 * Adds the parts of a range to a block until it is full: in file order, without a gap, cut at the
 * file's size. `end` is set to where it stopped; that is the end of the range if at most
 * BW_DATA_BLOCK bytes of the range are data, and the block was empty. Fails only if memory runs
 * out.
 */
struct bw_error *bw_data_fill(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, struct bw_data_block *block,
                              uint64_t *end);

#endif
