/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fs/open tells a features/verify layer once the superblock is known. */
#ifndef BW_XLATORS_FEATURES_VERIFY_H
#define BW_XLATORS_FEATURES_VERIFY_H

#include "btrfs-walk/xlator.h"
#include "format/checksum.h"
#include "format/disk.h"

/** Sets the checksum type of the file system. Must be called before the first read. */
void bw_verify_set_checksum(struct bw_xlator *xlator, enum bw_checksum_type type);

/** Adds an id that tree blocks may carry: the metadata uuid, and that of every seed device. */
struct bw_error *bw_verify_allow_fsid(struct bw_xlator *xlator, const uint8_t fsid[BW_UUID_SIZE]);

#endif
