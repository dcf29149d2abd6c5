/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Histograms by powers of two, like DTrace's quantize(): bucket 0 counts zeros, bucket n values of
 * n bits. Any number of threads may count. The totals yield percentiles and a drawing. Used by the
 * statistics of probes and by debug/io-stats.
 */
#ifndef BW_PROBE_HISTOGRAM_H
#define BW_PROBE_HISTOGRAM_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/json.h"

enum { BW_HISTOGRAM_BUCKETS = 65 };

/** Counters of the buckets. All zeros: empty. */
struct bw_histogram {
    atomic_uint_fast64_t counts[BW_HISTOGRAM_BUCKETS];
    atomic_uint_fast64_t sum;   /**< of the values; stays at UINT64_MAX if it is larger */
    atomic_uint_fast64_t most;  /**< the largest value */
    atomic_uint_fast64_t least; /**< the smallest, as ~value: so that all zeros is an empty one */
};

/** The sums of one or more histograms at one time. All zeros: empty. */
struct bw_histogram_totals {
    uint64_t counts[BW_HISTOGRAM_BUCKETS];
    uint64_t count; /**< values in all buckets */
    uint64_t sum;   /**< UINT64_MAX: that, or more */
    uint64_t least; /**< 0 if there is no value */
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

/** The sum of two numbers, or UINT64_MAX if that is less. */
static inline uint64_t bw_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/** Adds to a sum that several threads add to, by the same rule. */
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
 * The smallest value that at least `percent` percent of all values do not exceed. The smallest and
 * the largest of all are exact; others are estimated as if the values of a bucket were spread
 * evenly over it. 0 if there is no value.
 */
uint64_t bw_histogram_percentile(const struct bw_histogram_totals *totals, unsigned percent);

/** Draws a line a bucket, from the first to the last that is not empty. */
void bw_histogram_draw(struct bw_buffer *text, const struct bw_histogram_totals *totals);

/** Writes the same buckets as an array: {"min":2,"max":3,"count":1}, as bpftrace does. */
void bw_histogram_json(struct bw_json *json, const char *name,
                       const struct bw_histogram_totals *totals);

#endif
