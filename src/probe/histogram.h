/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histograms with a bucket per power of two, like DTrace's quantize(): bucket 0 counts zeros,
 * bucket n counts values of n bits. Any number of threads may count. Percentiles and a drawing are
 * made from the totals. Used by the statistics of probes and by debug/io-stats.
 */
#ifndef BW_PROBE_HISTOGRAM_H
#define BW_PROBE_HISTOGRAM_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/json.h"

enum { BW_HISTOGRAM_BUCKETS = 65 };

/** Counters of the buckets. All zeros is an empty histogram. */
struct bw_histogram {
    atomic_uint_fast64_t counts[BW_HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t sum;   /**< of the values; saturates at UINT64_MAX */
    atomic_uint_fast64_t most;  /**< the largest value */
    atomic_uint_fast64_t least; /**< the smallest value, inverted, so that all zeros is empty */
};

/** The totals of one or more histograms at one point in time. All zeros is empty. */
struct bw_histogram_totals {
    uint64_t counts[BW_HISTOGRAM_BUCKETS];
    uint64_t count; /**< number of values in all buckets */
    uint64_t sum;   /**< saturates at UINT64_MAX */
    uint64_t least; /**< 0 without values */
    uint64_t most;
};

/** The bucket of a value. */
static inline unsigned bw_histogram_bucket(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

/** The least value of a bucket. */
static inline uint64_t bw_histogram_start(unsigned bucket)
{
    return bucket ? UINT64_C(1) << (bucket - 1) : 0;
}

/** The largest value of a bucket. */
static inline uint64_t bw_histogram_end(unsigned bucket)
{
    return bucket ? UINT64_MAX >> (64 - bucket) : 0;
}

/** The sum of two numbers, saturated at UINT64_MAX. */
static inline uint64_t bw_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/** Adds to a sum that several threads change, saturated at UINT64_MAX. */
void bw_sum_atomic(atomic_uint_fast64_t *sum, uint64_t more);

/** Counts a value `times` times. */
void bw_histogram_count_run(struct bw_histogram *histogram, uint64_t value, uint64_t times);

/** Counts a value. */
static inline void bw_histogram_count(struct bw_histogram *histogram, uint64_t value)
{
    bw_histogram_count_run(histogram, value, 1);
}

/** Adds a histogram to the totals. */
void bw_histogram_add_up(const struct bw_histogram *histogram, struct bw_histogram_totals *totals);

/**
 * The smallest value that is not less than at least `percent` percent of all values. The least and
 * greatest of all values are exact; others are estimates that assume evenly distributed values in
 * each bucket. 0 without values.
 */
uint64_t bw_histogram_percentile(const struct bw_histogram_totals *totals, unsigned percent);

/** Draws a line per bucket, from the first to the last non-empty one. */
void bw_histogram_draw(struct bw_buffer *text, const struct bw_histogram_totals *totals);

/** Writes the same buckets as an array in the format of bpftrace: {"min":2,"max":3,"count":1}. */
void bw_histogram_json(struct bw_json *json, const char *name,
                       const struct bw_histogram_totals *totals);

#endif
