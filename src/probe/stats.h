/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Statistics of probes: a consumer that counts and times instead of printing, by probe or by layer.
 * What
 * --probe-stats shows. Time is in nanoseconds everywhere.
 *
 * By probe, one row for each selected probe that has fired: how often, how many of those ended with
 * an error, and the sum of its bytes. Its record's `bytes` are meant, or `bytes_out` (a codec's).
 * If its record has the time something took, also total, least, average, largest, percentiles and
 * histogram of the times, and a share: the part of its total in the totals of all rows. Probes lie
 * in each other (a block is read, for which a layer is called, which reads from a device): the
 * shares tell how the probes compare, not how the run's time is divided. Rows are sorted by total
 * time.
 *
 * By layer, one row for each layer that was called: its calls of any operation (read, map, advise),
 * the requests and bytes of its reads, its errors (requests that failed, and maps), the time of its
 * calls, and its own time: that without the calls it made itself. Shares are those of own time and
 * add up to 100 %, so here they do tell where time goes. Threads add up: a second in each of two
 * threads is two. Rows are sorted by own time.
 *
 * p50 and p99 are estimated from the histogram, whose buckets are powers of two: see
 * bw_histogram_percentile(). A sum that does not fit is shown as 18446744073709551615.
 *
 * As JSON, one object in one line; a member that a probe cannot have is left out:
 *
 *     {"mode":"probe","probes":[{"probe":"dev-read-done","share_permille":1000,"total_ns":7,"count":2,
 *      "errors":0,"bytes":8192,"min_ns":3,"avg_ns":3,"max_ns":4,"p50_ns":3,"p99_ns":4,
 *      "histogram":{"unit":"ns","data":[{"min":2,"max":3,"count":1},{"min":4,"max":7,"count":1}]}}]}
 *     {"mode":"xlator","layers":[{"xlator":"verify","type":"features/verify","share_permille":1000,"own_ns":5,
 *      "total_ns":7,"calls":2,"requests":2,"errors":0,"bytes":8192,"min_ns":3,...}],"uncounted":0}
 *
 * `share_permille` is there if any time has passed. `data` is as in the maps of `bpftrace -f json`.
 * `uncounted` are calls of layers for which there was no room.
 */
#ifndef BW_PROBE_STATS_H
#define BW_PROBE_STATS_H

#include "btrfs-walk/probe.h"
#include "probe/histogram.h"

struct bw_probe_stats;

/**
 * Makes statistics in which nothing is counted yet. By probe, `selected` tells which ones, NULL all
 * of them; by layer it means nothing.
 */
struct bw_error *bw_probe_stats_create(bool by_xlator, const bool selected[BW_PROBES_MAX],
                                       struct bw_probe_stats **stats);
/** Frees them; NULL is allowed. */
void bw_probe_stats_destroy(struct bw_probe_stats *stats);

/** The consumer to be added to probes, which the statistics must outlive. */
struct bw_probe_consumer *bw_probe_stats_consumer(struct bw_probe_stats *stats);

/** Appends the report: a table and histograms, or JSON. Others may be counting. */
void bw_probe_stats_report(const struct bw_probe_stats *stats, bool as_json,
                           struct bw_buffer *text);

/** The numbers of a probe or layer. */
struct bw_stats_row {
    const char *name; /**< of the probe or layer; lives as long as the statistics */
    const char *type; /**< of the layer; NULL: a probe */
    bool has_errors, has_bytes, has_times;
    uint64_t count, requests, errors, bytes, own_ns;
    struct bw_histogram_totals times;
};

/** All numbers, at one time. */
struct bw_stats_table {
    bool by_xlator;
    struct bw_stats_row *rows; /**< sorted as above; to be freed */
    size_t count, capacity;
    uint64_t uncounted;
};

/** Adds up what was counted; false if memory runs out. */
bool bw_probe_stats_table(const struct bw_probe_stats *stats, struct bw_stats_table *table);

/** The time that a row's share is taken of. */
static inline uint64_t bw_stats_time(const struct bw_stats_table *table,
                                     const struct bw_stats_row *row)
{
    return table->by_xlator ? row->own_ns : row->times.sum;
}

#endif
