/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags of an inode by name: BTRFS_INODE_* of the kernel header btrfs_tree.h, and in the upper half of
 * the number those that file systems without the feature behind them may not write to. */
#ifndef BW_FORMAT_INODE_FLAGS_H
#define BW_FORMAT_INODE_FLAGS_H

#include <stdint.h>

/** "NODATASUM" of a bit, 0 to 63; NULL if nothing is known of it. */
const char *bw_inode_flag_name(unsigned bit);

#endif
