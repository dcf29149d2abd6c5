/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics: counting by any number of threads, for the statistics of probes (btrfs-walk/probe.h)
 * and for debug/io-stats; and the numbers that the report of the probes is made of.
 */
#ifndef BW_PROBE_STATS_H
#define BW_PROBE_STATS_H

#include <sched.h>

#include "btrfs-walk/probe.h"
#include "probe/histogram.h"

enum { BW_TALLY_SHARDS = 8, BW_CACHE_LINE = 64 };

/** Counters of one processor. The size is a multiple of the alignment. */
struct bw_tally {
    _Alignas(BW_CACHE_LINE) atomic_uint_fast64_t count;
    atomic_uint_fast64_t requests, errors, bytes, own_ns;
    struct bw_histogram sizes; /**< of single requests */
    struct bw_histogram times; /**< of calls, in nanoseconds */
};

/** A tally each for several processors, so that threads seldom share a cache line. All zeros:
 * empty. */
struct bw_tallies {
    struct bw_tally shards[BW_TALLY_SHARDS];
};

/** The sums of all tallies at one time. */
struct bw_tally_totals {
    uint64_t count, requests, errors, bytes, own_ns;
    struct bw_histogram_totals sizes, times;
};

/** The tally of the processor that the thread runs on. */
static inline struct bw_tally *bw_tally_here(struct bw_tallies *tallies)
{
    return &tallies->shards[(unsigned)sched_getcpu() % BW_TALLY_SHARDS];
}

struct bw_tally_totals bw_tallies_total(const struct bw_tallies *tallies);

/** The numbers of a probe or layer. */
struct bw_stats_row {
    const char *name; /**< of the probe or layer; lives as long as the statistics */
    const char *type; /**< of the layer; NULL: a probe */
    bool has_errors, has_bytes, has_times;
    struct bw_tally_totals totals;
};

/** All numbers, at one time. */
struct bw_stats_table {
    bool by_xlator;
    struct bw_stats_row *rows; /**< sorted as above; to be freed */
    size_t count, capacity;
    uint64_t uncounted;
};

/** Adds up the numbers of all rows; false if memory runs out. */
bool bw_probe_stats_table(const struct bw_probe_stats *stats, struct bw_stats_table *table);

/** The time that a row's share is taken of. */
static inline uint64_t bw_stats_time(const struct bw_stats_table *table,
                                     const struct bw_stats_row *row)
{
    return table->by_xlator ? row->totals.own_ns : row->totals.times.sum;
}

#endif
