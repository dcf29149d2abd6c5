/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items of the raid stripe tree: where a range of data lies on devices, in file systems whose block
 * groups of data leave that open. Source: struct btrfs_stripe_extent in the kernel's
 * uapi/linux/btrfs_tree.h.
 */
#ifndef BW_FORMAT_STRIPE_EXTENT_H
#define BW_FORMAT_STRIPE_EXTENT_H

#include "btrfs-walk/xlator.h"
#include "format/chunk.h"
#include "format/node.h"

/** Whether the stripe tree, if there is one, and not the chunk says where the data of a chunk lie.
 * Source: btrfs_need_stripe_tree_update() in the kernel's fs/btrfs/raid-stripe-tree.h. */
bool bw_chunk_in_stripe_tree(uint64_t type);

/** Decodes and checks a RAID_STRIPE item. BW_ERROR_CORRUPT if a number makes no sense; `extent`
 * stays as it was then. */
struct bw_error *bw_stripe_extent_decode(const struct bw_item *item,
                                         struct bw_stripe_extent *extent);

#endif
