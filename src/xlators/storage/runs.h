/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests in the order of their addresses, and runs of neighbours among them: how storage layers
 * process a batch. */
#ifndef BW_XLATORS_STORAGE_RUNS_H
#define BW_XLATORS_STORAGE_RUNS_H

#include "graph/wind.h"

/** Sorts a batch; batches are short, and nearly sorted. */
void bw_sort_by_address(struct bw_request **order, size_t count);

/** How many requests from `first` on follow each other without a gap, and how many bytes they have
 * together. */
size_t bw_find_run(struct bw_request *const *order, size_t first, size_t count, size_t *length);

/** The first error of the requests of a run; NULL if all were read. */
const struct bw_error *bw_run_error(struct bw_request *const *run, size_t count);

#endif
