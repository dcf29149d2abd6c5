/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Telling the layers below which data will be read soon, so that a cold disk has them ready. */
#ifndef BW_DATA_ADVISE_H
#define BW_DATA_ADVISE_H

#include "data/extents.h"

/** A place in a file, ahead of the reader. */
struct bw_data_advisor {
    struct bw_extent_cursor cursor;
    uint64_t done; /**< of the cursor's file: what lies before has been advised */
};

void bw_data_advisor_init(struct bw_data_advisor *advisor, struct bw_fs *fs);
void bw_data_advisor_free(struct bw_data_advisor *advisor);

/**
 * Says that a file will be read from `offset` to `end` soon; what was said before of the same file
 * is not said again while one goes on in it. Fails only for want of memory.
 */
struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end);

#endif
