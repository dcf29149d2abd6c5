/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Holding data against their checksums. Ranges are gathered in a window, which the threads work off
 * in the order of addresses; what is bad is reported when the window ends, so that neighbours come
 * as one finding.
 */
#ifndef BW_CHECK_DATA_H
#define BW_CHECK_DATA_H

#include "check/summed.h"

struct bw_data_check;

/** Begins; NULL if memory runs out. */
struct bw_data_check *bw_data_check_begin(struct bw_check *check);

/** Takes a range: a bw_summed_taker. The ranges ascend. */
struct bw_error *bw_data_check_take(void *context, const struct bw_summed *range);

/** Ends, and reports the rest unless `error` is set; returns `error` or one of memory. NULL is
 * allowed. */
struct bw_error *bw_data_check_end(struct bw_data_check *data, struct bw_error *error);

/** Decompresses all compressed data of all subvolumes, and reports what cannot be (compressed.c).
 */
struct bw_error *bw_check_compressed(struct bw_check *check);

#endif
