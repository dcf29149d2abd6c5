/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps of space: devices cut into cells of equal size, and what lies in each cell, as a picture
 * shows it. The cells are counted while the trees are read, so the memory that a map takes depends
 * on the number of cells and of chunks, and not on that of extents. All sizes and offsets are in
 * bytes; copies and parity count.
 */
#ifndef BTRFS_WALK_SPACE_MAP_H
#define BTRFS_WALK_SPACE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

/** What a chunk is for. */
enum bw_space_kind {
    BW_SPACE_DATA,
    BW_SPACE_METADATA,
    BW_SPACE_SYSTEM, /**< also what is none of the others */
    BW_SPACE_MIXED,  /**< data and metadata in the same chunks */
    BW_SPACE_KINDS,
};

/** In which order space lies in a map. */
enum bw_space_order {
    BW_SPACE_PHYSICAL, /**< as on the devices, one after the other */
    /** Chunks by ascending logical address, each as long as all its stripes together; then what is
     * not allocated. */
    BW_SPACE_LOGICAL,
};

/** How much of a cell is in use. */
enum bw_space_detail {
    /** As much as of its chunk: reads the block groups only. Cells have no generation and no owner.
     */
    BW_SPACE_CHUNKS,
    /** What the extent tree says. In chunks with several stripes, an extent is taken to lie on all
     * of them alike, which is true but for the length of a stripe in each row. */
    BW_SPACE_EXTENTS,
};

enum {
    BW_SPACE_MOST_CELLS = 1 << 22, /**< of a map */
};

/** What to map. */
struct bw_space_map_options {
    size_t struct_size; /**< sizeof(struct bw_space_map_options) */
    enum bw_space_order order;
    enum bw_space_detail detail;
    size_t cells;   /**< of an area; a quarter of it, or a quarter of that, if all areas would have
                       more than BW_SPACE_MOST_CELLS; 0: 4096, a square of 64 by 64 */
    bool by_device; /**< each device is an area of its own; only with BW_SPACE_PHYSICAL */
    uint64_t devid; /**< only this device, likewise; 0: all */
};

/** A map. It does not change: any number of threads may use it. */
struct bw_space_map;

/** What is in a cell. */
struct bw_space_cell {
    uint64_t offset, bytes;             /**< where it lies in its area */
    uint64_t allocated[BW_SPACE_KINDS]; /**< to chunks; the sum is at most `bytes` */
    uint64_t used;                      /**< at most what is allocated */
    double fill;                        /**< used / bytes, not rounded; 0 if there are no bytes */
    uint64_t generation;                /**< of what is used, the mean by bytes; 0: not known */
    uint64_t owner;       /**< tree that has more than half of what is used, if there is one;
                             otherwise any; 0: what several trees have, or not known */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Cells that follow each other. */
struct bw_space_area {
    uint64_t devid;       /**< 0: all devices */
    uint64_t bytes;       /**< size of the device, or of all */
    size_t cell_count;    /**< may be more than there are bytes */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A tree, and how much is its own by the references in the extent tree. */
struct bw_space_owner {
    uint64_t id;    /**< of the tree; 0: what several trees have, or not known */
    uint64_t bytes; /**< that count for cells */
};

/** Sums of a map. */
struct bw_space_map_info {
    uint64_t bytes; /**< of all areas */
    uint64_t allocated[BW_SPACE_KINDS], used[BW_SPACE_KINDS];
    uint64_t oldest, newest; /**< generations of what is used; 0: not known */
    const struct bw_space_area *areas;
    size_t area_count;
    const struct bw_space_owner *owners; /**< the largest first */
    size_t owner_count;
    uint64_t reserved[8]; /**< zeros: room for more members */
};

/**
 * Makes a map. What cannot be read is reported, and counts as not used. Where chunks overlap on a
 * device, the first one counts. The caller owns `*map`, which does not need the file system any
 * more. BW_ERROR_NOT_FOUND if there is no such device; BW_ERROR_USAGE for wrong options.
 */
struct bw_error *bw_space_map_open(struct bw_fs *fs, const struct bw_space_map_options *options,
                                   struct bw_space_map **map);

/** Frees it; NULL is allowed. */
void bw_space_map_close(struct bw_space_map *map);

/** Sums, as long as the map. */
const struct bw_space_map_info *bw_space_map_info(const struct bw_space_map *map);

/** A cell of an area, by its number, which is below the `cell_count` of the area. */
struct bw_space_cell bw_space_map_cell(const struct bw_space_map *map, size_t area, size_t number);

#ifdef __cplusplus
}
#endif
#endif
