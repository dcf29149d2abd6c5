/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rebuilding one piece of a RAID5 or RAID6 row from the others; used by cluster/chunk-map alone. */
#ifndef BW_XLATORS_CLUSTER_REBUILD_H
#define BW_XLATORS_CLUSTER_REBUILD_H

#include "btrfs-walk/xlator.h"
#include "xlators/cluster/layout.h"

/**
 * Computes `piece` without reading its own stripe. `copy` chooses the way: 2 prefers P; 0 as well,
 * and does without stale devices if it can; from 3 on, one more stripe of the row is taken for bad,
 * a different one for each copy, and Q makes up for it. Stripes that are missing or cannot be read
 * count as bad too. If too few are left: BW_ERROR_MISSING_DEVICE if that is so for all of the row,
 * because devices are missing; the code of a stripe that could not be read if that made it so, and
 * then other sectors of the same piece may be better off.
 */
struct bw_error *bw_rebuild_piece(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  const struct bw_piece *piece, unsigned copy, uint8_t *buffer);

#endif
