/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether every directory leads up to the top. In a circle of directories, names and link counts
 * agree, so no other check finds it.
 *
 * The inode numbers around a circle cannot only ascend, so a circle contains a directory with a
 * lower number than its parent. Most file systems have few of these: directories moved into a newer
 * one. Only these are remembered, and only from them the search goes up.
 */
#ifndef BW_CHECK_DIRECTORIES_H
#define BW_CHECK_DIRECTORIES_H

#include "check/check.h"

/** Remembers the directories of a leaf that have a lower number than their parent, or the same one.
 * Safe from any thread. */
void bw_moved_directories_collect(struct bw_check *check, const struct bw_node *leaf);

/** Follows the parents of these directories, in each subvolume that has any, and reports circles.
 * Fails only if memory runs out. */
struct bw_error *bw_check_directories(struct bw_check *check);

#endif
