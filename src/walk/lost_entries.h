/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lost entries: a walk lists what lost blocks held, as far as the rest of the tree has it. */
#ifndef BW_WALK_LOST_ENTRIES_H
#define BW_WALK_LOST_ENTRIES_H

#include "walk/subvolume_walk.h"

/** Lists the entries of blocks that the walk has lost, and walks the directories among them. Costs
 * nothing if no block was lost. */
struct bw_error *bw_lost_entries_list(struct bw_subvolume_walk *walk);

#endif
