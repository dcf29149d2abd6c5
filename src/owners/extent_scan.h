/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extents of many files, found in one pass over the leaves that hold them. */
#ifndef BW_OWNERS_EXTENT_SCAN_H
#define BW_OWNERS_EXTENT_SCAN_H

#include "owners/file_list.h"
#include "btree/scan.h"
#include "ondisk/items.h"

/** What to scan, and the functions that receive the results; their errors end the scan. */
struct bw_extent_scan {
    struct bw_fs *fs;
    const struct bw_wanted_file *files; /**< by subvolume and inode */
    size_t count;
    bool quiet; /**< what is wrong with items is not reported */
    /** Receives every tree block, before what is below it and the extents in it; may be NULL. */
    struct bw_error *(*block)(void *context, const struct bw_tree *tree,
                              const struct bw_node *node);
    /** Receives an extent, holes among them, which begins at `offset` of the file. Those of a file
     * come one after the other, in file order. */
    struct bw_error *(*extent)(void *context, const struct bw_wanted_file *file, uint64_t offset,
                               const struct bw_file_extent *extent);
    void *context;
    size_t at, end; /**< private: the file whose extents come next, and the end of its subvolume */
    size_t lost;    /**< result: blocks that could not be read, of each subvolume */
};

/** Scans. What is lost is reported. Returns what ended it early. */
struct bw_error *bw_extent_scan_run(struct bw_extent_scan *scan);

#endif
