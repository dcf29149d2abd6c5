/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small subvolumes: the tree of each has at most one node, so its waves have one task. Many of them
 * are walked at once, each by one worker, and a worker reads the roots of several with one batch.
 * They are listed in their order, as by separate walks one after the other.
 */
#ifndef BW_WALK_SMALL_SUBVOLUMES_H
#define BW_WALK_SMALL_SUBVOLUMES_H

#include "walk/subvolume_walk.h"

/** The walkers of small subvolumes. */
struct bw_small_subvolumes;

/** The greatest number of subvolumes to walk at once. */
enum { BW_MOST_SMALL_SUBVOLUMES = 1024 };

/** Whether a subvolume is small. */
static inline bool bw_subvolume_is_small(const struct bw_subvolume *subvolume)
{
    return subvolume->tree.root.level <= 1;
}

/** Makes walkers for the workers of a walk, which must outlive them. */
struct bw_error *bw_small_subvolumes_create(struct bw_subvolume_walk *walk,
                                            struct bw_small_subvolumes **small);
/** Frees them; NULL is allowed. */
void bw_small_subvolumes_destroy(struct bw_small_subvolumes *small);

/** Walks subvolumes, adds the subvolumes found in them to walk->found, and counts them in its
 * summary. Their prefixes may be views of walk->found.paths. */
struct bw_error *bw_small_subvolumes_run(struct bw_small_subvolumes *small,
                                         struct bw_walk_top *tops, size_t count);

#endif
