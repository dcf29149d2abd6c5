/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of RAID5 and RAID6 whose parity is to be checked. */
#ifndef BW_CHECK_PARITY_H
#define BW_CHECK_PARITY_H

#include "check/check.h"

/** A row, with the sectors of its stripes that are in use. */
struct bw_parity_row {
    const struct bw_checked_chunk *chunk;
    uint64_t number;
    uint32_t columns; /**< bit n: some stripe has a tree block or checksummed data in sector n */
};

/** Receives rows, ascending within a chunk. An error ends the reading. */
typedef struct bw_error *bw_parity_taker(void *context, const struct bw_parity_row *rows,
                                         size_t count);

/**
 * Hands out the rows that hold tree blocks or, if data are checked, data with checksums. Columns
 * that hold neither may never have been written, and then their parity means nothing.
 */
struct bw_error *bw_parity_rows(struct bw_check *check, bw_parity_taker *take, void *context);

#endif
