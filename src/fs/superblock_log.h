/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks of zoned devices, where no block can be overwritten: each copy is a log in two zones;
 * when one zone is full, the other is emptied. The newest entry is valid. The length of zones is
 * not stored in an image, so the entry must be searched for. Source: sb_log_location() in the
 * kernel's fs/btrfs/zoned.c.
 */
#ifndef BW_FS_SUPERBLOCK_LOG_H
#define BW_FS_SUPERBLOCK_LOG_H

#include "btrfs-walk/graph.h"
#include "ondisk/superblock.h"

/** The log to search. */
struct bw_superblock_log {
    struct bw_xlator *storage;
    unsigned copy; /**< 0 to 2 */
    /** A good superblock at its offset on devices without zones: an old entry of the log. May be
     * NULL. */
    const struct bw_superblock *known;
};

/** An entry in the log. */
struct bw_superblock_entry {
    uint64_t offset;
    uint64_t newer_bad; /**< offset of a newer, bad entry; 0: none is known */
};

/** Finds the newest good entry; without `known`, returns a bad one if there is no good one. False
 * if there is no log. `frame` may be NULL. */
bool bw_superblock_log_find(const struct bw_frame *frame, const struct bw_superblock_log *log,
                            struct bw_superblock_entry *entry);

#endif
