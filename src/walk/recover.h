/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recovery: every name of a directory is also kept with the inode it belongs to, so that names
 * whose directory entries were lost with a block can mostly be brought back from the rest of the
 * tree.
 */
#ifndef BW_WALK_RECOVER_H
#define BW_WALK_RECOVER_H

#include "walk/subvolume_walk.h"

/** Lists what lost blocks held, as far as the rest of the tree knows it. Costs nothing if no block
 * was lost.
 */
struct bw_error *bw_recover(struct bw_subvolume_walk *walk);

#endif
