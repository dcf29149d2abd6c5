/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two ways to count what quota groups use: what they reach (quota.c), and, with simple quotas,
 * what their subvolumes have allocated (simple_quota.c). */
#ifndef BW_CHECK_QUOTA_H
#define BW_CHECK_QUOTA_H

#include "btrfs-walk/quota.h"
#include "check/check.h"

/** The numbers of a group, in bytes. */
struct bw_quota_numbers {
    uint64_t referenced, exclusive;
};

/** Reports a group whose numbers are not those that were counted; does nothing if they are. */
void bw_quota_compare(struct bw_check *check, uint64_t group, struct bw_quota_numbers has,
                      struct bw_quota_numbers counted);

struct bw_simple_quota;

/** Begins to count who pays for tree blocks, if simple quotas are on: check->simple_quota, which
 * stays NULL otherwise. */
struct bw_error *bw_simple_quota_begin(struct bw_check *check);

/** A tree block that is in the extent tree. NULL is allowed. Safe from any thread. */
void bw_simple_quota_block(struct bw_simple_quota *self, uint64_t owner, uint64_t generation,
                           uint32_t bytes);

/** When all tree blocks have come: counts data, and compares the groups. */
struct bw_error *bw_simple_quota_check(struct bw_check *check);

/** Frees it; NULL is allowed. */
void bw_simple_quota_free(struct bw_simple_quota *self);

#endif
