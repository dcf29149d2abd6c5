/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chunk table of cluster/chunk-map and the arithmetic of its profiles: which stripe of which
 * chunk holds a logical address. No I/O here; chunk_map.c reads, and computes lost pieces.
 */
#ifndef BW_XLATORS_CLUSTER_LAYOUT_H
#define BW_XLATORS_CLUSTER_LAYOUT_H

#include <stdbool.h>

#include "base/vector.h"
#include "btrfs-walk/error.h"
#include "ondisk/chunk.h"

enum { BW_NO_CHILD = UINT32_MAX };

/** The devid of a stripe whose location is unknown. */
#define BW_UNKNOWN_DEVICE 0

/** One stripe of a chunk: a range of a device. */
struct bw_layout_stripe {
    uint64_t devid;
    uint64_t offset; /**< where the stripe begins on the device */
    uint32_t child;  /**< index of the child that is the device, or BW_NO_CHILD if it is missing */
    bool stale;      /**< the device missed writes, so any other copy is preferred */
    uint8_t alternatives; /**< images of the device below the child; at least 1 */
};

struct bw_layout_chunk {
    uint64_t logical, length;
    uint64_t shorter; /**< the shorter one of two lengths, or the same */
    const struct bw_raid_profile *profile;
    struct bw_layout_stripe *stripes; /**< owned */
    uint16_t stripe_count;
    bool in_stripe_tree;  /**< if there is a stripe tree, see bw_layout_place() */
    uint8_t alternatives; /**< the largest number of any stripe */
};

BW_VECTOR(bw_layout_chunks, struct bw_layout_chunk);
BW_VECTOR(bw_layout_devices, struct bw_control_device);

struct bw_layout {
    struct bw_layout_chunks chunks; /**< sorted by logical address, not overlapping */
    struct bw_layout_devices devices;
};

/** A range that lies in one piece on each of its copies. */
struct bw_piece {
    const struct bw_layout_chunk *chunk;
    uint16_t first_stripe;  /**< stripe of the first copy; the other copies follow it */
    uint16_t direct_copies; /**< copies that can be read directly */
    uint16_t data_stripe;   /**< number of the data piece in its row, with parity */
    uint64_t row;           /**< number of the row of pieces, with striping */
    uint64_t stripe_offset; /**< offset from the beginning of the stripe */
    uint32_t length;
    bool is_placed; /**< the copies are at these places, not at the places in the chunk */
    struct bw_layout_stripe places[BW_STRIPE_PLACES];
};

/** Releases the contents of the layout. */
void bw_layout_free(struct bw_layout *layout);

/** Adds a device; BW_ERROR_NO_MEMORY. */
struct bw_error *bw_layout_add_device(struct bw_layout *layout,
                                      const struct bw_control_device *device);
/** Adds a chunk, or replaces the one at the same logical address, whose length may differ.
 * BW_ERROR_CORRUPT if it overlaps another. */
struct bw_error *bw_layout_add_chunk(struct bw_layout *layout, const struct bw_chunk_info *chunk);

/** Finds the location of `address`, and the length to which it applies (at most `length`).
 * BW_ERROR_CORRUPT if no chunk holds it; piece->length is then the length without a chunk. */
struct bw_error *bw_layout_find(const struct bw_layout *layout, uint64_t address, uint32_t length,
                                struct bw_piece *piece);

/** Moves the copies of the piece found at `address` to the locations in the extent that holds that
 * address; the piece may become shorter. */
void bw_layout_place(struct bw_piece *piece, uint64_t address,
                     const struct bw_stripe_extent *extent);

/** How many copies of a piece can be requested: stripes that hold it, and methods to compute it
 * from parity; all of them once for each image, if devices have alternative images. */
unsigned bw_piece_copies(const struct bw_piece *piece);

/** A copy of a piece. */
struct bw_piece_copy {
    unsigned number; /**< stripe or method, from 1 on: the number of the copy without alternatives.
                          0: any; greater than the number of methods: the copy does not exist */
    unsigned alternative; /**< image of each device, from 1 on; 0: any, or the only one */
};

/** Splits the number of a copy (0: any). Stored copies come first, beginning with the first image
 * of each device; then the methods to compute them, in the same order. */
struct bw_piece_copy bw_piece_split_copy(const struct bw_piece *piece, unsigned copy);

/** The stripe that a copy (counted from 1, at most direct_copies) lies on. */
const struct bw_layout_stripe *bw_piece_stripe(const struct bw_piece *piece, unsigned copy);

/** Data stripes of a chunk with parity, and the stripe that part `part` of a row lies on (parity
 * parts last).
 */
unsigned bw_layout_data_stripes(const struct bw_layout_chunk *chunk);
const struct bw_layout_stripe *bw_layout_row_stripe(const struct bw_layout_chunk *chunk,
                                                    uint64_t row, unsigned part);

#endif
