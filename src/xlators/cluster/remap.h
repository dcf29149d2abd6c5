/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fs/open fills a cluster/remap layer from the remap tree. Not thread-safe until that is over.
 */
#ifndef BW_XLATORS_CLUSTER_REMAP_H
#define BW_XLATORS_CLUSTER_REMAP_H

#include "btrfs-walk/xlator.h"

/**
 * Says that `length` logical bytes at `from` now lie at logical address `to`. Ranges come in
 * ascending order and do not overlap; BW_ERROR_CORRUPT otherwise.
 */
struct bw_error *bw_remap_add(struct bw_xlator *xlator, uint64_t from, uint64_t length,
                              uint64_t to);

#endif
