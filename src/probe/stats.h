/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics: counting by any number of threads, for the statistics of probes (btrfs-walk/probe.h)
 * and for debug/io-stats; and the numbers for the report about probes.
 */
#ifndef BW_PROBE_STATS_H
#define BW_PROBE_STATS_H

#include <sched.h>
#include <stdatomic.h>

#include "base/vector.h"
#include "btrfs-walk/probe.h"

enum { BW_TALLY_SHARDS = 8, BW_CACHE_LINE = 64 };

/** Facts about values, which any number of threads add. All zeros is none. */
struct bw_values {
    atomic_uint_fast64_t count;
    atomic_uint_fast64_t sum;   /**< saturates at UINT64_MAX */
    atomic_uint_fast64_t most;  /**< the largest value */
    atomic_uint_fast64_t least; /**< the smallest value, inverted, so that all zeros is none */
};

/** The same at one point in time, also of several. All zeros is none. */
struct bw_values_total {
    uint64_t count;
    uint64_t sum;   /**< saturates at UINT64_MAX */
    uint64_t least; /**< 0 without values */
    uint64_t most;
};

/** Adds a value `times` times. */
void bw_values_add(struct bw_values *values, uint64_t value, uint64_t times);

/** Counters of one processor. The size is a multiple of the alignment. */
struct bw_tally {
    _Alignas(BW_CACHE_LINE) atomic_uint_fast64_t count;
    atomic_uint_fast64_t requests, errors, bytes, own_ns;
    struct bw_values sizes; /**< of single requests */
    struct bw_values times; /**< of calls, in nanoseconds */
};

/** A tally for each of several processors, so that threads rarely share a cache line. All zeros is
 * empty. */
struct bw_tallies {
    struct bw_tally shards[BW_TALLY_SHARDS];
};

/** The totals of all tallies at one point in time. */
struct bw_tally_totals {
    uint64_t count, requests, errors, bytes, own_ns;
    struct bw_values_total sizes, times;
};

/** The tally of the current processor. */
static inline struct bw_tally *bw_cpu_tally(struct bw_tallies *tallies)
{
    return &tallies->shards[(unsigned)sched_getcpu() % BW_TALLY_SHARDS];
}

struct bw_tally_totals bw_tallies_total(const struct bw_tallies *tallies);

/** The statistics of a probe or layer. */
struct bw_stats_row {
    const char *name; /**< of the probe or layer; valid as long as the statistics */
    const char *type; /**< of the layer; NULL for a probe */
    bool has_errors, has_bytes, has_times;
    struct bw_tally_totals totals;
};

BW_VECTOR(bw_stats_rows, struct bw_stats_row);

/** The time of a row that determines its share: the own time of a layer, the total of a probe. */
static inline uint64_t bw_stats_time(const struct bw_stats_row *row)
{
    return row->type ? row->totals.own_ns : row->totals.times.sum;
}

/** The statistics of all probes or layers at one point in time. */
struct bw_stats_table {
    bool by_xlator;
    struct bw_stats_rows rows; /**< sorted */
    double time;               /**< time of all rows, which may exceed 64 bits */
    uint64_t shown_time;       /**< the same, saturated at UINT64_MAX, for printing */
    uint64_t uncounted;        /**< calls of layers for which there was no room */
};

/** Computes the totals of all rows; free the table also after an error, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_probe_stats_sum(const struct bw_probe_stats *stats,
                                    struct bw_stats_table *table);

static inline void bw_stats_table_free(struct bw_stats_table *table)
{
    bw_stats_rows_free(&table->rows);
}

#endif
