/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statistics of probes (btrfs-walk/probe.h): the counts, and the report (stats.c). */
#ifndef BW_PROBE_STATS_H
#define BW_PROBE_STATS_H

#include "btrfs-walk/probe.h"
#include "probe/histogram.h"

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
