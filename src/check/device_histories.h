/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether devices of the file system have diverged, by the mirrors of tree blocks on them. */
#ifndef BW_CHECK_DEVICE_HISTORIES_H
#define BW_CHECK_DEVICE_HISTORIES_H

#include "check/check.h"

/** Begins the comparison, if there are several devices: check->histories. */
struct bw_error *bw_device_histories_begin(struct bw_check *check);

/** Adds a copy that is the same as the block that the trees refer to. Safe from any thread. */
void bw_device_histories_same(struct bw_check *check, const struct bw_block_pointer *pointer,
                              unsigned copy);

/** Adds a copy that differs from this block. `bytes`: the copy, if it is a valid block with the
 * same address; NULL: it is not. `good_copy`: a copy that it differs from; 0: it is not what the
 * parent's pointer expects. Safe from any thread. */
void bw_device_histories_other(struct bw_check *check, const struct bw_block_pointer *pointer,
                               unsigned copy, unsigned good_copy, const uint8_t *bytes);

/** Reports the results. */
void bw_device_histories_report(struct bw_check *check);

void bw_device_histories_free(struct bw_device_histories *histories);

#endif
