/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data that have checksums, in the order of their addresses; what is bad in a copy of them; and the
 * comparison with their checksums.
 */
#ifndef BW_CHECK_DATA_H
#define BW_CHECK_DATA_H

#include "check/check.h"

/** A range of data that lies in one chunk. */
struct bw_summed {
    const struct bw_checked_chunk *chunk;
    uint64_t logical, length; /**< multiples of the sector size */
    const uint8_t *checksums; /**< one for each sector, a view that ends with the call */
};

/** Receives a range. An error ends the reading. */
typedef struct bw_error *bw_summed_taker(void *context, const struct bw_summed *range);

/**
 * Hands out the ranges that an EXTENT_CSUM item is about, from `*done` on, which then moves to its
 * end; nothing for any other item. What lies outside of all chunks is left out.
 */
struct bw_error *bw_summed_item(const struct bw_check *check, const struct bw_item *item,
                                uint64_t *done, bw_summed_taker *take, void *context);

/** Hands out the ranges of all checksum trees, of each in ascending order and without overlap. What
 * is lost of the trees is left out. */
struct bw_error *bw_summed_scan(struct bw_check *check, bw_summed_taker *take, void *context);

/*
 * Ranges of data that turned out to be bad in a copy. They are found sector by sector and by many
 * threads; those that follow each other become one finding. And what is remembered of them and of
 * bad tree blocks, so that their parity is not reported as well.
 */

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

/*
 * Comparing data with their checksums. Ranges are gathered in a window, which the threads work off
 * in the order of addresses; what is bad is reported when the window ends, so that neighbours come
 * as one finding.
 */

struct bw_data_check;

/** Begins; NULL if memory runs out. */
struct bw_data_check *bw_data_check_begin(struct bw_check *check);

/** Takes a range: a bw_summed_taker. The ranges ascend. */
struct bw_error *bw_data_check_take(void *context, const struct bw_summed *range);

/** Ends, and reports the rest unless `error` is set; returns `error` or one of memory. NULL is
 * allowed. */
struct bw_error *bw_data_check_end(struct bw_data_check *data, struct bw_error *error);

/** Decompresses all compressed data of all subvolumes, and reports what cannot be
 * (compressed.c).
 */
struct bw_error *bw_check_compressed(struct bw_check *check);

#endif
