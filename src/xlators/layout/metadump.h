/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recognizes metadumps of btrfs-image, which layout/metadump shows as a device. */
#ifndef BW_XLATORS_LAYOUT_METADUMP_H
#define BW_XLATORS_LAYOUT_METADUMP_H

#include "graph/wind.h"

/** Whether a device begins like a metadump. */
bool bw_is_metadump(const struct bw_frame *frame, struct bw_xlator *device);

#endif
