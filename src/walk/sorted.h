/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sorting what a walk writes. The tasks write each entry's text behind what it is sorted by; all of
 * that is kept in memory until the walk has ended.
 */
#ifndef BW_WALK_SORTED_H
#define BW_WALK_SORTED_H

#include "walk/writers.h"

/** What was written so far. All zeros is nothing. */
struct bw_sorted {
    struct bw_buffer bytes;
};

/** A writer whose text goes through bw_sorted_take() and is that of `inner`, which must outlive it.
 */
struct bw_file_writer bw_sorted_writer(const struct bw_file_writer *inner,
                                       enum bw_walk_order order);

/** Takes what was written (`sorted` is a struct bw_sorted): a consumer of the walk. */
struct bw_error *bw_sorted_take(void *sorted, const char *bytes, size_t length);

/** Passes all of it on in its order, by and by, as whole texts of the inner writer; and frees it.
 */
struct bw_error *bw_sorted_end(struct bw_sorted *sorted,
                               struct bw_error *(*consume)(void *context, const char *bytes,
                                                           size_t length),
                               void *context);

/** Frees the memory; nothing is passed on. */
void bw_sorted_free(struct bw_sorted *sorted);

#endif
