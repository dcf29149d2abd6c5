/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Superblocks of zoned devices, where no block can be overwritten: each copy is a log in two zones,
 * one of which is emptied when the other is full. The newest entry is valid. An image does not say
 * how long its zones are, so the entry has to be searched for. Source: sb_log_location() in the
 * kernel's fs/btrfs/zoned.c.
 */
#ifndef BW_FS_SUPERBLOCK_LOG_H
#define BW_FS_SUPERBLOCK_LOG_H

#include "btrfs-walk/xlator.h"
#include "ondisk/superblock.h"

/** A log to look for. */
struct bw_superblock_log {
    struct bw_xlator *storage;
    unsigned copy; /**< 0 to 2 */
    /** A good superblock that lies where devices without zones have it: an old entry of the log, if
     * there is one. NULL if there is none. */
    const struct bw_superblock *known;
};

/** An entry, by its offset. */
struct bw_superblock_entry {
    uint64_t offset;
    uint64_t newer_bad; /**< of a newer one, which is bad; 0: none is known */
};

/** Finds the newest good entry; without `known` a bad one is better than none. False if there is no
 * log. `frame` may be NULL. */
bool bw_superblock_log_find(const struct bw_frame *frame, const struct bw_superblock_log *log,
                            struct bw_superblock_entry *entry);

#endif
