/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Histograms with a bucket per power of two: counting without locks, totals, percentiles,
 * drawing. */
#include "probe/histogram.h"

#include <inttypes.h>

enum { BAR_LENGTH = 40 };

void bw_sum_atomic(atomic_uint_fast64_t *sum, uint64_t more)
{
    uint64_t old = atomic_load_explicit(sum, memory_order_relaxed);
    while (more && !atomic_compare_exchange_weak_explicit(
                       sum, &old, bw_sum(old, more), memory_order_relaxed, memory_order_relaxed))
        ;
}

static void raise_to(atomic_uint_fast64_t *most, uint64_t value)
{
    uint64_t old = atomic_load_explicit(most, memory_order_relaxed);
    while (value > old && !atomic_compare_exchange_weak_explicit(
                              most, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

void bw_histogram_count_run(struct bw_histogram *histogram, uint64_t value, uint64_t times)
{
    uint64_t sum;
    atomic_fetch_add_explicit(&histogram->counts[bw_histogram_bucket(value)], times,
                              memory_order_relaxed);
    bw_sum_atomic(&histogram->sum, __builtin_mul_overflow(value, times, &sum) ? UINT64_MAX : sum);
    raise_to(&histogram->most, value);
    raise_to(&histogram->least, ~value);
}

void bw_histogram_add_up(const struct bw_histogram *histogram, struct bw_histogram_totals *totals)
{
    uint64_t counted = 0;
    for (unsigned i = 0; i < BW_HISTOGRAM_BUCKETS; i++) {
        uint64_t count = atomic_load_explicit(&histogram->counts[i], memory_order_relaxed);
        totals->counts[i] += count;
        counted += count;
    }
    if (!counted)
        return;
    uint64_t least = ~atomic_load_explicit(&histogram->least, memory_order_relaxed);
    uint64_t most = atomic_load_explicit(&histogram->most, memory_order_relaxed);
    totals->least = totals->count && totals->least < least ? totals->least : least;
    totals->most = totals->most > most ? totals->most : most;
    totals->sum = bw_sum(totals->sum, atomic_load_explicit(&histogram->sum, memory_order_relaxed));
    totals->count += counted;
}

/* Estimates value number `rank` (from 1 on) of a bucket: values are assumed to be evenly
 * distributed between the possible limits. */
static uint64_t estimate_value(const struct bw_histogram_totals *totals, unsigned bucket,
                               uint64_t rank)
{
    uint64_t start = bw_histogram_start(bucket), end = bw_histogram_end(bucket);
    start = start < totals->least ? totals->least : start;
    end = end > totals->most ? totals->most : end;
    /* while other threads count, the least and greatest values may be slightly older than the
     * counts */
    if (start >= end)
        return start;
    double share = totals->counts[bucket] == 1
                       ? 0.5
                       : (double)(rank - 1) / (double)(totals->counts[bucket] - 1);
    uint64_t width = end - start, distance = (uint64_t)((double)width * share);
    return start + (distance > width ? width : distance);
}

uint64_t bw_histogram_percentile(const struct bw_histogram_totals *totals, unsigned percent)
{
    /* rounded up, and computed in two parts to prevent an overflow */
    uint64_t rank = totals->count / 100 * percent + (totals->count % 100 * percent + 99) / 100;
    if (rank <= 1)
        return totals->least;
    if (rank >= totals->count)
        return totals->most;
    unsigned bucket = 0;
    for (; rank > totals->counts[bucket]; bucket++)
        rank -= totals->counts[bucket];
    return estimate_value(totals, bucket, rank);
}

/* The range of buckets in use; if all are empty, first > last. */
struct used {
    unsigned first, last;
};

static struct used used_buckets(const struct bw_histogram_totals *totals)
{
    struct used used = {.first = BW_HISTOGRAM_BUCKETS};
    for (unsigned i = 0; i < BW_HISTOGRAM_BUCKETS; i++) {
        if (!totals->counts[i])
            continue;
        if (used.first > i)
            used.first = i;
        used.last = i;
    }
    return used;
}

void bw_histogram_draw(struct bw_buffer *text, const struct bw_histogram_totals *totals)
{
    static const char bars[] = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";
    struct used used = used_buckets(totals);
    bw_buffer_format(text, "%20s  ------------- Distribution ------------- count\n", "value");
    for (unsigned i = used.first; i <= used.last; i++) {
        int bar = (int)((double)totals->counts[i] / (double)totals->count * BAR_LENGTH);
        bw_buffer_format(text, "%20" PRIu64 " |%-*.*s %" PRIu64 "\n", bw_histogram_start(i),
                         BAR_LENGTH, bar, bars, totals->counts[i]);
    }
}

void bw_histogram_json(struct bw_json *json, const char *name,
                       const struct bw_histogram_totals *totals)
{
    struct used used = used_buckets(totals);
    bw_json_begin_array(json, name);
    for (unsigned i = used.first; i <= used.last; i++) {
        bw_json_begin_object(json, NULL);
        bw_json_number(json, "min", bw_histogram_start(i));
        bw_json_number(json, "max", bw_histogram_end(i));
        bw_json_number(json, "count", totals->counts[i]);
        bw_json_end(json);
    }
    bw_json_end(json);
}
