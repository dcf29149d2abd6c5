/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extents of many files, found in one pass over the leaves that hold them; and the sums that
 * filefrag(8) and compsize print of a file.
 */
#ifndef BW_DATA_EXTENT_SCAN_H
#define BW_DATA_EXTENT_SCAN_H

#include "base/pair_set.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "ondisk/items.h"

struct bw_fs;

/** A file that is wanted, by one name or several. */
struct bw_wanted_file {
    const struct bw_tree *tree; /**< of the subvolume */
    uint64_t inode;
    uint32_t number; /**< index of its first name in the caller's list; its results have it, too */
    uint32_t names;  /**< how many of its names are wanted */
};

/** A cursor over the extents of files. */
struct bw_extent_scan {
    struct bw_fs *fs;
    const struct bw_key_map *lost_blocks; /**< addresses of leaves not to read; may be NULL */
    bool quiet;                           /**< faults in items are not reported */
    bool visits_blocks; /**< stop at every tree block, before the blocks below it and its extents */

    /** The file of the current extent or hole, which begins at `offset` of it; NULL: the step is a
     * tree block. The extents of a file come one after the other, in file order. */
    const struct bw_wanted_file *file;
    uint64_t offset;
    struct bw_file_extent extent;
    struct bw_block_scan blocks; /**< `tree` and `node` are those of the step */

    /* Private. */
    const struct bw_wanted_file *files;
    size_t count, at, end; /* the file whose extents come next; the end of its tree */
    uint32_t slot;
    bool in_tree, in_leaf;
    struct bw_pair_set lost_counted; /* subvolumes and addresses of lost blocks */
    uint64_t lost;
    struct bw_error *failure;
};

/** Begins a scan for files, which are ordered by tree and inode; also another one. */
void bw_extent_scan_begin(struct bw_extent_scan *scan, const struct bw_wanted_file *files,
                          size_t count);

/** The next step; false at the end. Blocks that are lost are reported. */
bool bw_extent_scan_next(struct bw_extent_scan *scan);

/** Why the scan ended early: no memory, or NULL. */
struct bw_error *bw_extent_scan_error(struct bw_extent_scan *scan);

/** Reports how many blocks were lost, unless it is quiet, and frees what it holds. */
void bw_extent_scan_end(struct bw_extent_scan *scan);

/** An extent that a file uses. */
struct bw_used_extent {
    uint64_t address, stored;
};

BW_VECTOR(bw_used_extents, struct bw_used_extent);

/** Sums of the extents of a file. All zeros is a file without extents. */
struct bw_extent_sums {
    /** Pieces on the disk: parts of extents that follow each other in the file and on the disk are
     * one. */
    uint64_t extent_count;
    uint64_t disk; /**< after bw_extent_sums_end(): bytes of the extents, whole and compressed */

    /* Private. */
    struct bw_used_extents extents;
    uint64_t next_offset, next_address; /* end of the last part; 0: none */
};

/** Begins another file, in the same memory. */
void bw_extent_sums_begin(struct bw_extent_sums *sums);

/** Adds the next part of the file; those without bytes on the disk are skipped. Fails only if
 * memory runs out. */
struct bw_error *bw_extent_sums_add(struct bw_extent_sums *sums, uint64_t offset,
                                    const struct bw_file_extent *extent);

/** Ends a file. */
void bw_extent_sums_end(struct bw_extent_sums *sums);

void bw_extent_sums_free(struct bw_extent_sums *sums);

/** The sums of a file, as in struct bw_extent_sums. */
struct bw_extent_counts {
    uint64_t extent_count, disk;
};

/**
 * Finds the sums of files of one tree, by ascending inode: counts[i] is for files[i]. Leaves at the
 * addresses in `lost_blocks`, which may be NULL, are not read. Losses are reported, and make sums
 * lower bounds. Fails only if memory runs out.
 */
struct bw_error *bw_extent_counts_find(struct bw_fs *fs, const struct bw_key_map *lost_blocks,
                                       const struct bw_wanted_file *files, size_t count,
                                       struct bw_extent_counts *counts);

#endif
