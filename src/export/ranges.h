/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a file has data, and where it has holes: for formats that say so in front of the data. */
#ifndef BW_EXPORT_RANGES_H
#define BW_EXPORT_RANGES_H

#include "btrfs-walk/stream.h"
#include "export/archive.h"

/** The ranges of one file. One thread at a time may use it. */
struct bw_ranges {
    struct bw_extent_reader *reader;
    struct bw_archive_range *ranges; /**< of data, ascending; all but the end of the file in units
                                        of 512 */
    size_t count, capacity;
    uint64_t least_hole;   /**< smaller ones count as data: 4 KiB, more in a file with very many */
    bool is_sparse;        /**< it has holes that are worth it */
    struct bw_error *lost; /**< why so much cannot be read that it counts as a hole; NULL: nothing
                              like that */
};

/** Starts. */
struct bw_error *bw_ranges_init(struct bw_ranges *ranges, struct bw_fs *fs);
/** Frees what it holds. */
void bw_ranges_free(struct bw_ranges *ranges);

/** Finds those of a file. Of a file with very many holes the smallest are taken for data. What
 * cannot be read counts as data, unless more than 1 GiB is lost at once. Fails only for want of
 * memory. */
struct bw_error *bw_ranges_read(struct bw_ranges *ranges, const struct bw_data_file *file);

#endif
