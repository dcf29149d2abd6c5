/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading ranges of files: the stored bytes are read through the graph, verified with the checksum
 * tree, decompressed, and delivered in file order. Holes are delivered as holes, unreadable data as
 * bad ranges.
 *
 * Each worker thread has its own reader. bw_data_begin() and bw_data_next() are a cursor over the
 * parts of a range (btrfs-walk/file.h); bw_data_fill() reads into a block that the caller owns.
 */
#ifndef BW_DATA_READER_H
#define BW_DATA_READER_H

#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "data/file_extents.h"

enum {
    BW_DATA_BLOCK = 2 << 20, /**< bytes of file data in a block */
};

BW_VECTOR(bw_data_parts, struct bw_data_part);

/** Memory, and the parts of files that were read into it. All zeros is an empty block. */
struct bw_data_block {
    uint8_t *bytes; /**< BW_DATA_BLOCK and some more; allocated on first use */
    size_t used;    /**< of these bytes */
    struct bw_data_parts parts;
};

/** Empties a block but keeps its memory. */
void bw_data_block_clear(struct bw_data_block *block);
void bw_data_block_free(struct bw_data_block *block);

/* Functions to fill a block. */

/** Allocates the memory of the block if necessary; false if memory ran out. */
bool bw_data_block_reserve(struct bw_data_block *block);
/** Remaining bytes. */
size_t bw_data_block_room(const struct bw_data_block *block);
/** Allocates bytes of the block; `length` must not exceed the remaining room. */
uint8_t *bw_data_block_allocate(struct bw_data_block *block, size_t length);
/** Appends a part; consumes its error. */
struct bw_error *bw_data_block_add(struct bw_data_block *block, struct bw_data_part part);
/** Appends a part that cannot be read; consumes the error. */
struct bw_error *bw_data_block_add_bad(struct bw_data_block *block, uint64_t offset,
                                       uint64_t length, struct bw_error *error);
/** Inserts parts before part `at`; consumes their errors. */
struct bw_error *bw_data_block_insert(struct bw_data_block *block, size_t at,
                                      const struct bw_data_part *parts, size_t count);
/** Joins adjacent parts, from part `first` on. */
void bw_data_block_join(struct bw_data_block *block, size_t first);
/** Cuts parts, from part `first` on, to a range of the file. */
void bw_data_block_trim(struct bw_data_block *block, size_t first, uint64_t start, uint64_t end);

/**
 * Appends the parts of a range to a block until it is full, in file order, without gaps, and only
 * up to the file's size. `*end` is set to the offset reached: the end of the range if the block was
 * empty and at most BW_DATA_BLOCK bytes of the range are data. Fails only if memory runs out.
 */
struct bw_error *bw_data_fill(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, struct bw_data_block *block,
                              uint64_t *end);

/** Appends the contents of a regular file, at most `most` bytes, without holes. Appends nothing if
 * it is not a regular file. */
struct bw_error *bw_data_read_text(struct bw_fs *fs, const struct bw_place *place, uint64_t most,
                                   struct bw_buffer *text);

/** Reads the stored bytes of a compressed extent of a file, disk_num_bytes of them, and verifies
 * them: with their checksums, or by decompressing them if the file has none. */
struct bw_error *bw_data_read_stored(struct bw_data_reader *reader, const struct bw_data_file *file,
                                     const struct bw_file_extent *extent, uint8_t *bytes);

#endif
