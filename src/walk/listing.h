/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing outside of tasks: the top directories of subvolumes, a start that is no directory, and
 * recovered entries. */
#ifndef BW_WALK_LISTING_H
#define BW_WALK_LISTING_H

#include "walk/subvolume_walk.h"

/** Writes the entries listed outside of tasks; no task may be running. */
struct bw_error *bw_listing_flush(struct bw_subvolume_walk *walk);

/** Whether directories in a directory (index in the table) are entered, and not too deep. */
bool bw_listing_enters(const struct bw_subvolume_walk *walk, uint32_t directory);

/** Lists an entry of a directory (index in the table) if it is one of those listed. `*included`:
 * whether it, and what may be below it, is not excluded. */
struct bw_error *bw_listing_add_entry(struct bw_subvolume_walk *walk, uint32_t directory,
                                      const struct bw_collected *what, const void *name,
                                      size_t name_length, bool *included);

/** Lists the directory that the walk of a subvolume begins at, likewise. */
struct bw_error *bw_listing_add_top(struct bw_subvolume_walk *walk, uint64_t inode, bool *included);

#endif
