/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placement: the paths of subvolumes by their references, without a walk of the subvolumes that
 * contain them. It finds the subvolumes that a walk would enter.
 */
#ifndef BW_WALK_PLACEMENT_H
#define BW_WALK_PLACEMENT_H

#include "walk/ancestors.h"
#include "walk/subvolume_walk.h"

/** A subvolume that has a place. */
struct bw_placed {
    enum { BW_PLACE_UNKNOWN, BW_PLACE_NONE, BW_PLACE_FOUND } state;
    bool searched;         /**< for subvolumes whose directories have no path */
    size_t prefix, length; /**< its path, '/' at both ends, in the placement's paths */
};

/** The places of the subvolumes of a walk. */
struct bw_placement {
    struct bw_fs *fs;
    struct bw_subvolume_walk *walk;
    struct bw_walk_top start;
    struct bw_placed *items; /**< by the index in the table of subvolumes */
    struct bw_buffer paths;

    /* Private. The directories of the last parent. */
    const struct bw_subvolume *parent;
    struct bw_directory_table table;
    struct bw_packed found;
    struct bw_ancestors ancestors;
};

/** Prepares the placement of subvolumes below `start`, whose prefix must outlive it. If a reference
 * is lost, `walk` searches the parent. To be freed also after an error. */
struct bw_error *bw_placement_create(struct bw_placement *placement, struct bw_subvolume_walk *walk,
                                     const struct bw_walk_top *start);
void bw_placement_free(struct bw_placement *placement);

/** Finds the place of a subvolume: sets the inode and the prefix of `top`, which are valid until
 * the next call. `*found` is false if a walk would not enter it. Reports a path that is damaged. */
struct bw_error *bw_placement_find(struct bw_placement *placement,
                                   const struct bw_subvolume *subvolume, struct bw_walk_top *top,
                                   bool *found);

#endif
