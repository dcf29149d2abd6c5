/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The flags that chattr(1) shows, from those of a btrfs inode to those of the file system of the
 * folder. */
#ifndef BW_EXPORT_TARGET_FLAGS_H
#define BW_EXPORT_TARGET_FLAGS_H

#include <stdbool.h>

#include "btrfs-walk/inode.h"

/** When flags can be set. */
enum bw_flag_time {
    BW_FLAGS_EMPTY,   /**< before anything is written: how data are stored */
    BW_FLAGS_ANY,     /**< at any time */
    BW_FLAGS_PROTECT, /**< when all is done: immutable, append-only */
};

/** Whether an inode has flags of that kind. */
bool bw_target_has_flags(const struct bw_inode *inode, enum bw_flag_time when);

/** Sets those of an inode that the file of `descriptor` lacks, each by itself. False with errno if
 * one could not be set. */
bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when);

#endif
