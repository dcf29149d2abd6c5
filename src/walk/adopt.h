/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adopting leaves: when an internal node is lost, the leaves below it are still there, and the extent tree
 * knows which blocks are in use by which tree. Used by recovery, before it looks for single names.
 */
#ifndef BW_WALK_ADOPT_H
#define BW_WALK_ADOPT_H

#include "walk/subvolume_walk.h"

/**
 * Fills walk->adopted with the leaves of the subvolume's tree that lie below its lost nodes. Without a
 * readable extent tree it finds none, or fewer.
 */
struct bw_error *bw_adopt_leaves(struct bw_subvolume_walk *walk);

#endif
