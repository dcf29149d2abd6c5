/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks of zoned devices, where nothing can be written twice: each copy is a log in two zones, of which
 * one is emptied when the other is full, and the newest entry counts. How long zones are an image does not
 * say, so that entry is searched for. Source: sb_log_location() in the kernel's fs/btrfs/zoned.c.
 */
#ifndef BW_FS_SUPERBLOCK_LOG_H
#define BW_FS_SUPERBLOCK_LOG_H

#include "btrfs-walk/xlator.h"

/** Finds the newest good entry of the log of a copy, 0 to 2; or else the newest one. False if there is no log
 * of that copy. `frame` may be NULL. */
bool bw_superblock_log_find(const struct bw_frame *frame, struct bw_xlator *storage, unsigned copy,
                            uint64_t *offset);

#endif
