/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private side of struct bw_space_map: space_map.c lays out areas and chunks, space_cells.c
 * counts what is in the cells. */
#ifndef BW_OWNERS_SPACE_MAP_H
#define BW_OWNERS_SPACE_MAP_H

#include "base/map.h"
#include "btrfs-walk/space_map.h"
#include "fs/fs.h"

/** What is counted of a cell. */
struct bw_space_count {
    uint64_t allocated[BW_SPACE_KINDS];
    double used;
    double generation;      /**< mean */
    uint64_t owner, weight; /**< of a majority vote by bytes */
};

/** A part of a chunk that lies in one piece in an area. */
struct bw_space_piece {
    uint64_t logical, chunk_length;
    /** The byte at X of the chunk is taken to lie at X * factor / divisor of the piece. */
    unsigned factor, divisor;
    unsigned kind; /**< enum bw_space_kind */
    size_t area;
    uint64_t offset;     /**< in the area */
    uint64_t begin, end; /**< of the piece what counts: the rest is taken by another one */
};

/** Where a device lies. */
struct bw_space_device {
    uint64_t devid, bytes;
    size_t area;
    uint64_t offset; /**< in the area */
};

struct bw_space_map {
    struct bw_space_map_info info;
    struct bw_space_map_options options;
    struct bw_fs *fs;                /**< while it is made */
    struct bw_space_device *devices; /**< by ascending id */
    size_t device_count, device_capacity;
    struct bw_space_area *areas;
    struct bw_space_count *cells;  /**< options.cells for each area */
    struct bw_space_piece *pieces; /**< ascending by logical address, when extents are counted */
    size_t piece_count, piece_capacity;
    struct bw_space_owner *owners;
    size_t owner_count, owner_capacity;
    struct bw_map owner_numbers; /**< of `owners`, by id */
    uint64_t counted_to;         /**< logical address that extents were counted up to */
};

/** Something that is in use. */
struct bw_space_use {
    uint64_t generation, owner; /**< 0: not known */
};

/** Counts all that counts of a piece as allocated, and of that `used` of the bytes of its chunk as
 * used, evenly. */
void bw_space_add_piece(struct bw_space_map *map, const struct bw_space_piece *piece,
                        uint64_t used);

/** Counts the bytes of the chunk from `begin` to `end` as used. */
struct bw_error *bw_space_add_used(struct bw_space_map *map, const struct bw_space_piece *piece,
                                   uint64_t begin, uint64_t end, const struct bw_space_use *use);

/** Counts the extents of all extent trees. */
struct bw_error *bw_space_add_extents(struct bw_space_map *map);

#endif
