/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The logical scan: reads the chunks with metadata once, through the graph, and adds every tree
 * block in them to an index. It does not read data chunks, because users may have stored copies of
 * tree blocks there. It skips ranges that were never written. */
#ifndef BW_HISTORY_SCAN_H
#define BW_HISTORY_SCAN_H

#include <stdatomic.h>

#include "base/vector.h"
#include "btrfs-walk/fs.h"
#include "history/block_index.h"

/** A range of logical addresses to scan. */
struct bw_scan_range {
    uint64_t logical;
    uint32_t length; /**< at most BW_SCAN_PIECE */
    bool mixed;      /**< data may be between the tree blocks */
    bool differs;  /**< a device is stale: its mirror may have blocks of generations that the other
                    * mirrors have overwritten */
    bool discards; /**< the mirrors are on different devices, which may have discarded different
                    * ranges: if one contains only zeros, the others may contain blocks */
};

BW_VECTOR(bw_scan_range_list, struct bw_scan_range);

/** Ranges to scan, in pieces. All zeros is an empty list. */
struct bw_scan_ranges {
    struct bw_scan_range_list ranges;
    uint64_t bytes;  /**< of all ranges; at most the size of the devices plus one piece */
    size_t left_out; /**< number of chunks that were omitted, completely or in part, because of this
                      * limit */
};

static inline void bw_scan_ranges_free(struct bw_scan_ranges *ranges)
{
    bw_scan_range_list_free(&ranges->ranges);
}

/** Bytes that a thread reads at a time. */
enum { BW_SCAN_PIECE = 4 << 20 };

/** Adds the stored ranges of a chunk, if it contains metadata. Fails only if memory runs out. */
struct bw_error *bw_scan_add_chunk(const struct bw_fs *fs, const struct bw_chunk_info *chunk,
                                   struct bw_scan_ranges *ranges);

/** Adds the stored ranges of the chunks in the chunk tree; reports lost parts of that tree. */
struct bw_error *bw_scan_add_chunks(struct bw_fs *fs, struct bw_scan_ranges *ranges);

/** Arguments and results of a scan. */
struct bw_history_scan {
    struct bw_fs *fs;
    const struct bw_scan_ranges *ranges;
    struct bw_found_index *index; /**< receives the blocks; sorted at the end */
    unsigned threads;             /**< 0: one per processor, at most 8 */
    bool doubts_zeros; /**< if one mirror contains only zeros, read the others, too: it may be lost
                        */
    /** Called from time to time, by one thread, with the number of bytes done; returns false to end
     * the scan. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    /** Called for every block that is found, by any thread; returns false if memory ran out. May be
     * NULL. */
    bool (*visit)(void *context, const struct bw_node *block);
    void *context;
    atomic_uint_fast64_t zeros;  /**< result: number of positions with only zeros in the first
                                  mirror */
    atomic_uint_fast64_t unread; /**< result: number of bytes that no mirror could provide */
};

/** Runs the scan, which continues after read errors. Returns BW_ERROR_STOPPED or
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_history_scan(struct bw_history_scan *scan);

#endif
