/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The logical scan: reads the chunks that hold metadata once, through the graph, and adds every
 * tree block in them to an index. It does not read data chunks, since users may have stored copies
 * of tree blocks there. Ranges that were never written cost nothing. */
#ifndef BW_HISTORY_SCAN_H
#define BW_HISTORY_SCAN_H

#include <stdatomic.h>

#include "btrfs-walk/fs.h"
#include "history/block_index.h"

/** Ranges of logical addresses that are to be scanned, in pieces. All zeros is none; to be freed
 * with free(). */
struct bw_scan_ranges {
    struct bw_scan_range {
        uint64_t logical;
        uint32_t length; /**< at most BW_SCAN_PIECE */
        bool mixed;      /**< data may lie between the tree blocks */
    } * ranges;
    size_t count, capacity;
    uint64_t bytes;  /**< of all ranges: no more than the devices have, and one piece */
    size_t left_out; /**< chunks that would have made it more, wholly or in part */
};

/** Bytes that a thread reads at a time. */
enum { BW_SCAN_PIECE = 4 << 20 };

/** Adds the stored ranges of a chunk, if it holds metadata. Fails only if memory runs out. */
struct bw_error *bw_scan_add_chunk(const struct bw_fs *fs, const struct bw_chunk_info *chunk,
                                   struct bw_scan_ranges *ranges);

/** Adds the stored ranges of the chunks in the chunk tree; reports lost parts of that tree. */
struct bw_error *bw_scan_add_chunks(struct bw_fs *fs, struct bw_scan_ranges *ranges);

/** Arguments and results of a scan. */
struct bw_past_scan {
    struct bw_fs *fs;
    const struct bw_scan_ranges *ranges;
    struct bw_found_index *index; /**< receives the blocks; sorted at the end */
    unsigned threads;             /**< 0: one for each processor, at most 8 */
    bool doubts_zeros; /**< where a copy has only zeros, others are read as well: it may be lost */
    /** Called now and then, by one thread, with the number of bytes done; false ends the scan. May
     * be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    /** Sees every block that is found, in any thread; false if memory ran out. May be NULL. */
    bool (*visit)(void *context, const struct bw_node *block);
    void *context;
    atomic_uint_fast64_t zeros;  /**< result: places of blocks where a copy has only zeros */
    atomic_uint_fast64_t unread; /**< result: bytes that could not be read in any copy */
};

/** Scans. Continues after read errors. Returns BW_ERROR_STOPPED or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_past_scan(struct bw_past_scan *scan);

#endif
