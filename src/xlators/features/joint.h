/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Joins the copies of a tree block, none of which is good. */
#ifndef BW_XLATORS_FEATURES_JOINT_H
#define BW_XLATORS_FEATURES_JOINT_H

#include "graph/wind.h"
#include "ondisk/checksum.h"

/** The most copies that are joined: mirrors in several images. RAID6 has more than that of many
 * devices, but rarely more than two different ones. */
enum { BW_JOINT_COPIES = 64 };

/** A tree block without a good copy. */
struct bw_joint {
    const struct bw_frame *frame;
    struct bw_xlator *layer;          /**< from which copies are read */
    const struct bw_request *request; /**< for the block, which its buffer gets */
    unsigned copies;
    uint64_t failed; /**< bit n: a system call could not read copy n + 1 as a whole */
    enum bw_checksum_type checksum;
    unsigned other_checksums; /**< as in bw_checksum_accepts_block() */
};

/** Makes the block of sectors of its copies, if its checksum proves that they belong together. The
 * caller compares it with its parent. Fails only if memory runs out. */
struct bw_error *bw_joint_read(const struct bw_joint *joint, bool *is_joined);

#endif
