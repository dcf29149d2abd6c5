/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block groups: their items, and the counted contents. */
#ifndef BW_CHECK_GROUPS_H
#define BW_CHECK_GROUPS_H

#include "check/check.h"

/**
 * Reads the block groups into check->groups, unless that was done: all items in the block group
 * tree; in the extent tree, only the items at chunks. Fails only if memory runs out.
 */
struct bw_error *bw_check_load_groups(struct bw_check *check);

/** The block group that begins at an address; NULL if it does not exist. */
struct bw_checked_group *bw_check_group(const struct bw_check *check, uint64_t start);

#endif
