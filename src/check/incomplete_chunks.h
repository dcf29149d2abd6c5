/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks that missing devices leave only a part of: how many bytes that are in use cannot be read,
 * and of how many files.
 */
#ifndef BW_CHECK_INCOMPLETE_CHUNKS_H
#define BW_CHECK_INCOMPLETE_CHUNKS_H

#include "check/check.h"

/** Finds the incomplete chunks: check->incomplete_chunks, which remains NULL if all are complete.
 */
struct bw_error *bw_incomplete_chunks_begin(struct bw_check *check);

/** Counts the bytes of an extent that cannot be read. One thread at a time. */
void bw_incomplete_chunks_extent(struct bw_check *check, uint64_t logical, uint64_t length);

/** Counts the files of a leaf that have such data. Safe from any thread. */
void bw_incomplete_chunks_leaf(struct bw_check *check, uint64_t tree, const struct bw_node *leaf);

/** Reports the chunks, with the counts; in a quick check, from their block groups only. */
void bw_incomplete_chunks_report(struct bw_check *check);

#endif
