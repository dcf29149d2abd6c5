/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block groups, as their items say, and what was counted in them. */
#ifndef BW_CHECK_GROUPS_H
#define BW_CHECK_GROUPS_H

#include "check/check.h"

/**
 * Reads the block groups into check->groups, unless that was done: all of those in the block group
 * tree; of those in the extent tree, the ones that chunks have. Fails only if memory runs out.
 */
struct bw_error *bw_check_load_groups(struct bw_check *check);

/** The block group that begins at an address; NULL if there is none. */
struct bw_checked_group *bw_check_group(const struct bw_check *check, uint64_t start);

#endif
