/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extents of many files, found in one pass over the leaves that hold them. */
#ifndef BW_DATA_EXTENT_SCAN_H
#define BW_DATA_EXTENT_SCAN_H

#include "base/pair_set.h"
#include "btree/scan.h"
#include "ondisk/items.h"

struct bw_fs;

/** A file that is wanted, by one name or several. */
struct bw_wanted_file {
    const struct bw_tree *tree; /**< of the subvolume */
    uint64_t inode;
    uint32_t number; /**< of the step of its first name in the batch */
    uint32_t names;  /**< how many there are */
};

/** The range to scan, and the functions that receive the results; their errors end the scan. */
struct bw_extent_scan {
    struct bw_fs *fs;
    const struct bw_wanted_file *files; /**< by tree and inode */
    size_t count;
    bool quiet; /**< faults in items are not reported */
    /** Receives every tree block, before the blocks below it and the extents in it; may be NULL. */
    struct bw_error *(*block)(void *context, const struct bw_tree *tree,
                              const struct bw_node *node);
    /** Receives an extent or a hole, which begins at `offset` of the file. The extents of a file
     * come one after the other, in file order. */
    struct bw_error *(*extent)(void *context, const struct bw_wanted_file *file, uint64_t offset,
                               const struct bw_file_extent *extent);
    void *context;

    /* Private. */
    size_t at, end;                 /* the file whose extents come next; the end of its tree */
    struct bw_pair_set lost_blocks; /* by subvolume and address */
    uint64_t lost;
    struct bw_scan_buffers buffers;
};

/** Scans for these files; may be called again with others. Blocks that are lost are reported.
 * Returns what ended it early. */
struct bw_error *bw_extent_scan_run(struct bw_extent_scan *scan);

/** Reports how many blocks were lost, and frees what it holds. */
void bw_extent_scan_end(struct bw_extent_scan *scan);

#endif
