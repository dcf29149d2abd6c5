/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data with checksums, in the order of their addresses: the bad ranges of each copy, and the
 * comparison with their checksums.
 */
#ifndef BW_CHECK_DATA_H
#define BW_CHECK_DATA_H

#include "base/vector.h"
#include "check/check.h"

/** A range of data that lies in one chunk. */
struct bw_data_range {
    const struct bw_checked_chunk *chunk;
    uint64_t logical, length; /**< multiples of the sector size */
    const uint8_t *checksums; /**< one for each sector, a view that ends with the call; NULL: none
                               */
};

BW_VECTOR(bw_data_ranges, struct bw_data_range);

/** Receives a range. An error ends the reading. */
typedef struct bw_error *bw_summed_visitor(void *context, const struct bw_data_range *range);

/**
 * Visits the ranges described by an EXTENT_CSUM item, from `*done` on, which then moves to its
 * end; does nothing for other items. Ranges outside of all chunks are skipped.
 */
struct bw_error *bw_summed_item(const struct bw_check *check, const struct bw_item *item,
                                uint64_t *done, bw_summed_visitor *visit, void *context);

/** Visits the ranges of all checksum trees, of each in ascending order and without overlap. Lost
 * parts of the trees are skipped. */
struct bw_error *bw_summed_scan(struct bw_check *check, bw_summed_visitor *visit, void *context);

/*
 * Ranges of data that are bad in a copy. Many threads find them sector by sector; adjacent ones are
 * joined into one finding. They are remembered together with bad tree blocks, so that their parity
 * is not reported as well.
 */

struct bw_bad_range {
    enum bw_code_number code;
    const char *message; /**< a literal */
    uint64_t logical, length;
    unsigned copy;
    bool repairable;
    uint64_t devid, offset; /**< set by bw_bad_ranges_add(); BW_ABSENT: unknown */
};

BW_VECTOR(bw_bad_ranges, struct bw_bad_range);

/** Adds a range. Safe from any thread. */
void bw_bad_ranges_add(struct bw_check *check, struct bw_bad_ranges *bad,
                       const struct bw_bad_range *range);

/** Reports the collected ranges, joined, and forgets them; except a range that ends at `open`,
 * which may continue. */
void bw_bad_ranges_report(struct bw_check *check, struct bw_bad_ranges *bad, uint64_t open);

/*
 * Comparing data with their checksums. Ranges are collected in a window, which the threads process
 * in the order of addresses. Bad ranges are reported at the end of the window, so that adjacent
 * ones become one finding.
 */

struct bw_data_check;

/** Begins; NULL if memory runs out. */
struct bw_data_check *bw_data_check_begin(struct bw_check *check);

/** Adds a range: a bw_summed_visitor. The ranges ascend. */
struct bw_error *bw_data_check_add(void *context, const struct bw_data_range *range);

/** Ends, and reports the rest unless `error` is set; returns `error` or one of memory. NULL is
 * allowed. */
struct bw_error *bw_data_check_end(struct bw_data_check *data, struct bw_error *error);

/** Decompresses all compressed data of all subvolumes, and reports the extents that fail
 * (compressed.c). */
struct bw_error *bw_check_compressed(struct bw_check *check);

/** Compares the mirrors of data without checksums, and reports those that differ where a file shows
 * them (mirrors.c). */
struct bw_error *bw_check_mirrors(struct bw_check *check);

#endif
