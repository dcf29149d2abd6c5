/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Simple quotas: counts the bytes charged to each subvolume while trees are walked, for the pass
 * `quota`. */
#ifndef BW_CHECK_QUOTA_H
#define BW_CHECK_QUOTA_H

#include "btrfs-walk/subvolume.h"
#include "check/check.h"

struct bw_simple_quota;

/** If simple quotas are enabled, creates check->simple_quota, which counts the tree blocks charged
 * to each subvolume; otherwise it remains NULL. */
struct bw_error *bw_simple_quota_begin(struct bw_check *check);

/** A tree block that is in the extent tree. NULL is allowed. Safe from any thread. */
void bw_simple_quota_block(struct bw_simple_quota *self, uint64_t owner, uint64_t generation,
                           uint32_t bytes);

/** Frees it; NULL is allowed. */
void bw_simple_quota_free(struct bw_simple_quota *self);

#endif
