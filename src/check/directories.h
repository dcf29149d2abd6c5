/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether there is a way from each directory up to the top. Names and link counts of directories
 * that contain each other in a circle agree, so nothing else finds them.
 *
 * Going around a circle, numbers of inodes cannot only ascend. So a circle has a directory with a
 * lower number than its parent. There are few of these in most file systems: those that were moved
 * into a newer directory. Only they are remembered, and only from them is the way up followed.
 */
#ifndef BW_CHECK_DIRECTORIES_H
#define BW_CHECK_DIRECTORIES_H

#include "check/check.h"

/** Remembers the directories of a leaf that have a lower number than their parent, or the same one.
 * False if memory runs out. Safe from any thread. */
bool bw_moved_directories_collect(struct bw_check *check, const struct bw_node *leaf);

/** Follows the way up from these directories, in each subvolume that has any, and reports circles.
 * Fails only if memory runs out. */
struct bw_error *bw_check_directories(struct bw_check *check);

#endif
