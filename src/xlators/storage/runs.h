/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests in the order of addresses, and ranges of adjacent ones: the units in which storage
 * layers process a batch. */
#ifndef BW_XLATORS_STORAGE_RUNS_H
#define BW_XLATORS_STORAGE_RUNS_H

#include "graph/wind.h"

/** Sorts a batch. Batches are short and nearly sorted. */
void bw_sort_by_address(struct bw_request **order, size_t count);

/** The number of adjacent requests from `first` on, and their total length in bytes. */
size_t bw_find_run(struct bw_request *const *order, size_t first, size_t count, size_t *length);

/** The first error of the requests of a run, or NULL. */
const struct bw_error *bw_run_error(struct bw_request *const *run, size_t count);

#endif
