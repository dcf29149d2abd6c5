/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The incompatible feature bits: names, and which of them this library reads.
 * Source: BTRFS_FEATURE_INCOMPAT_* in the kernel's uapi/linux/btrfs.h.
 */
#ifndef BW_FORMAT_FEATURES_H
#define BW_FORMAT_FEATURES_H

#include "btrfs-walk/error.h"

#define BW_INCOMPAT_METADATA_UUID    (UINT64_C(1) << 10)
#define BW_INCOMPAT_ZONED            (UINT64_C(1) << 12)
#define BW_INCOMPAT_EXTENT_TREE_V2   (UINT64_C(1) << 13)
#define BW_INCOMPAT_RAID_STRIPE_TREE (UINT64_C(1) << 14)
#define BW_INCOMPAT_REMAP_TREE       (UINT64_C(1) << 17)

/** BW_ERROR_UNSUPPORTED, naming every bit by number (and name, if it has one), unless all bits can
 * be read.
 */
struct bw_error *bw_features_check(uint64_t incompat_flags);

#endif
