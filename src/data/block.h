/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of files that were read, and the blocks of memory they are in. The reader fills blocks; who
 * asked for one looks at its parts.
 */
#ifndef BW_DATA_BLOCK_H
#define BW_DATA_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/file.h"

enum {
    BW_DATA_BLOCK = 2 << 20, /**< bytes of file data in a block */
};

/** What was read of one or several ranges. All zeros is empty. */
struct bw_data_block {
    uint8_t *bytes; /**< BW_DATA_BLOCK and some more; NULL until it is needed */
    size_t used;    /**< of them */
    struct bw_data_part *parts;
    size_t count, capacity; /**< of the parts */
};

/** Empties a block, keeping the memory. */
void bw_data_block_clear(struct bw_data_block *block);
/** Frees all it holds. */
void bw_data_block_free(struct bw_data_block *block);

/* For the reader. */

/** Makes sure the block has memory; false if there is none. */
bool bw_data_block_reserve(struct bw_data_block *block);
/** Bytes that are left. */
size_t bw_data_block_room(const struct bw_data_block *block);
/** Takes bytes, at most as many as are left. */
uint8_t *bw_data_block_take(struct bw_data_block *block, size_t length);
/** Adds a part at the end; takes its error. */
struct bw_error *bw_data_block_add(struct bw_data_block *block, struct bw_data_part part);
/** Puts parts in front of part `at`; takes their errors. */
struct bw_error *bw_data_block_insert(struct bw_data_block *block, size_t at,
                                      const struct bw_data_part *parts, size_t count);
/** Joins neighbours, from part `first` on. */
void bw_data_block_join(struct bw_data_block *block, size_t first);
/** Cuts parts, from part `first` on, to a range of the file. */
void bw_data_block_trim(struct bw_data_block *block, size_t first, uint64_t start, uint64_t end);

#endif
