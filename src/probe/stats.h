/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of the statistics of probes (btrfs-walk/probe.h). */
#ifndef BW_PROBE_STATS_H
#define BW_PROBE_STATS_H

#include "base/vector.h"
#include "btrfs-walk/probe.h"

/** Totals at one point in time. Sums saturate at UINT64_MAX. */
struct bw_tally_totals {
    uint64_t count, requests, errors, bytes, own_ns;
    struct bw_times_total {
        uint64_t count, sum, least, most; /**< in nanoseconds */
    } times;
};

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
