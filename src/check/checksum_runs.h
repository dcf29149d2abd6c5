/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of the checksum trees, held against each other and against the extents of data, both in
 * ascending order. */
#ifndef BW_CHECK_CHECKSUM_RUNS_H
#define BW_CHECK_CHECKSUM_RUNS_H

#include "check/check.h"
#include "owners/tree_list.h"

struct bw_checksum_runs {
    struct bw_check *check;
    struct bw_item_stream stream;
    uint64_t start, end; /* what is left of the present item: for which bytes it has checksums */
    uint64_t item_end;   /* where the items so far end */
    bool after_loss;     /* checksums between the item before and this one may be lost */
};

/** Begins. To be ended, whatever is returned. */
struct bw_error *bw_checksum_runs_begin(struct bw_checksum_runs *self, struct bw_check *check);

/** There is no data extent before `address`, or, if `unsure`, it is not known whether there is:
 * checksums before it are orphaned. */
void bw_checksum_runs_skip(struct bw_checksum_runs *self, uint64_t address, bool unsure);

/** There is an extent of data, after all others: what of it has no checksums is added to
 * check->unsummed. False if memory runs out. */
bool bw_checksum_runs_cover(struct bw_checksum_runs *self, uint64_t start, uint64_t end);

/** Ends; returns `error`, or one of memory. */
struct bw_error *bw_checksum_runs_end(struct bw_checksum_runs *self, struct bw_error *error);

#endif
