/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of features/verify that is about file data. */
#ifndef BW_XLATORS_FEATURES_VERIFY_DATA_H
#define BW_XLATORS_FEATURES_VERIFY_DATA_H

#include "btrfs-walk/xlator.h"

/**
 * Checks a data request that has been read, against its checksums if it has any; what is bad or
 * could not be read is replaced from other copies, sector by sector. Sets request->error if
 * something stays bad; its code is BW_ERROR_MISSING_DEVICE only if all of the request is on missing
 * devices, with all its copies.
 */
void bw_verify_data(const struct bw_frame *frame, struct bw_xlator *xlator,
                    struct bw_request *request);

#endif
