/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranges of data that turned out to be bad in a copy. They are found sector by sector and by many
 * threads; those that follow each other become one finding. And what is remembered of them and of
 * bad tree blocks, so that their parity is not reported as well.
 */
#ifndef BW_CHECK_BAD_RANGES_H
#define BW_CHECK_BAD_RANGES_H

#include "check/check.h"

struct bw_bad_range {
    enum bw_code_number code;
    const char *message; /**< a literal */
    uint64_t logical, length;
    unsigned copy;
    bool mendable;
    bool is_placed; /**< the rest is set by bw_bad_ranges_add() */
    uint64_t devid, offset;
};

struct bw_bad_ranges {
    pthread_mutex_t lock;
    struct bw_bad_range *ranges;
    size_t count, capacity;
    bool no_memory; /**< some could not be kept */
};

void bw_bad_ranges_init(struct bw_bad_ranges *bad);
void bw_bad_ranges_free(struct bw_bad_ranges *bad);

/** Adds a range. Safe from any thread. */
void bw_bad_ranges_add(struct bw_check *check, struct bw_bad_ranges *bad,
                       const struct bw_bad_range *range);

/** Reports what was added, joined, and forgets it; but for what ends at `open`, which may go on. */
void bw_bad_ranges_report(struct bw_check *check, struct bw_bad_ranges *bad, uint64_t open);

#endif
