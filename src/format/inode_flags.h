/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags of an inode by name: BTRFS_INODE_* of the kernel header btrfs_tree.h, and in the upper
 * half of the number those that file systems without the feature behind them may not write to. */
#ifndef BW_FORMAT_INODE_FLAGS_H
#define BW_FORMAT_INODE_FLAGS_H

#include <stdint.h>

/** Those that mean something here. */
enum {
    BW_INODE_NODATASUM = 1 << 0, /**< data have no checksums */
    BW_INODE_NODATACOW = 1 << 1,
    BW_INODE_NOCOMPRESS = 1 << 3,
    BW_INODE_SYNC = 1 << 5,
    BW_INODE_IMMUTABLE = 1 << 6,
    BW_INODE_APPEND = 1 << 7,
    BW_INODE_NODUMP = 1 << 8,
    BW_INODE_NOATIME = 1 << 9,
    BW_INODE_DIRSYNC = 1 << 10,
    BW_INODE_COMPRESS = 1 << 11,
};

/** "NODATASUM" of a bit, 0 to 63; NULL if nothing is known of it. */
const char *bw_inode_flag_name(unsigned bit);

#endif
