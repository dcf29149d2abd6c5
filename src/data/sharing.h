/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space of files: which of their extents are shared with other files or subvolumes, according
 * to the extent tree. It is read at the requested addresses only, until there are many of them;
 * then the whole tree is read, once. Memory: the requested addresses, and those of shared extents.
 */
#ifndef BW_DATA_SHARING_H
#define BW_DATA_SHARING_H

#include "data/extent_scan.h"

struct bw_range_set;

/** The space of a file, or of several files together. */
struct bw_file_space {
    uint64_t total, exclusive, shared; /**< bytes of the file */
    uint64_t extent_count, disk;       /**< as in struct bw_extent_sums */
    uint64_t shared_id; /**< of a file: a hash of its shared ranges that ignores their order */
};

struct bw_sharing;

/**
 * Begins. `ranges` receives the shared ranges of the disk; NULL: they are not needed. With
 * `sizes_only`, the extent tree is not read. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_sharing_create(struct bw_fs *fs, bool sizes_only, struct bw_range_set *ranges,
                                   struct bw_sharing **sharing);

/** Frees it; NULL is allowed. */
void bw_sharing_destroy(struct bw_sharing *sharing);

/** Computes the space of files, of file `number` in space[number]; all others are zero. Files
 * as in struct bw_extent_scan; `room` is the number of elements in `space`. Losses are reported,
 * and make sums lower bounds. */
struct bw_error *bw_sharing_compute(struct bw_sharing *sharing, const struct bw_wanted_file *files,
                                    size_t count, struct bw_file_space *space, size_t room);

/** Whether exclusive and shared bytes are known: false if the extent tree is lost. */
bool bw_sharing_is_known(const struct bw_sharing *sharing);

/** Reports losses, after the last file. */
void bw_sharing_report(struct bw_sharing *sharing);

#endif
