/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extents of a file, counted as filefrag(8) does, and their stored bytes, as compsize does. */
#ifndef BW_DATA_EXTENT_SUMS_H
#define BW_DATA_EXTENT_SUMS_H

#include "base/vector.h"
#include "fs/fs.h"
#include "ondisk/items.h"

/** An extent that the file uses. */
struct bw_used_extent {
    uint64_t address, stored;
};

BW_VECTOR(bw_used_extents, struct bw_used_extent);

/** All zeros is a file without extents. */
struct bw_extent_sums {
    /** Pieces on the disk: parts of extents that follow each other in the file and on the disk are
     * one. */
    uint64_t extent_count;
    uint64_t disk; /**< after bw_extent_sums_end(): bytes of the extents, whole and compressed */

    /* Private. */
    struct bw_used_extents extents;
    uint64_t next_offset, next_address; /* end of the last part; 0: none */
};

/** Adds the next part of the file that is not a hole and not inline; false if memory runs out. */
bool bw_extent_sums_add(struct bw_extent_sums *sums, uint64_t offset,
                        const struct bw_file_extent *extent);

/** Ends a file. */
void bw_extent_sums_end(struct bw_extent_sums *sums);

/** Begins another file, in the same memory. */
void bw_extent_sums_begin(struct bw_extent_sums *sums);

void bw_extent_sums_free(struct bw_extent_sums *sums);

/** Numbers about the extents of an inode. */
struct bw_extent_counts {
    uint64_t extent_count, disk;
};

/**
 * Finds the sums of inodes in ascending order of unique numbers, as in `numbers`. Leaves at the
 * addresses in `lost_blocks`, which may be NULL, are not read. Losses are reported, and make sums
 * lower bounds. Fails only if memory runs out.
 */
struct bw_error *bw_extent_counts_find(struct bw_fs *fs, const struct bw_tree *tree,
                                       const struct bw_key_map *lost_blocks,
                                       const uint64_t *numbers, size_t count,
                                       struct bw_extent_counts *counts);

#endif
