/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which file systems the tree blocks on devices are of, where no superblock tells. */
#ifndef BW_RESCUE_IDENTIFY_BLOCKS_H
#define BW_RESCUE_IDENTIFY_BLOCKS_H

#include "rescue/device_scan.h"

enum { BW_MOST_KINDS = 8 };

/** File systems, and what their tree blocks are like. */
struct bw_block_kinds {
    struct bw_block_kind {
        uint8_t fsid[1][BW_UUID_SIZE];
        struct bw_found_identity identity; /**< its fsids are the one above */
    } kinds[BW_MOST_KINDS];
    size_t count;
};

/** Looks for tree blocks of any file system on the images, until it has found some of each of
 * BW_MOST_KINDS, or read all. `kinds` must not move afterwards. */
struct bw_error *bw_block_kinds_find(const struct bw_image_set *set, struct bw_block_kinds *kinds);

#endif
