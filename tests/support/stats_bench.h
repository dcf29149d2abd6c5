/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common code of the tests of statistics: creating them, events, and the numbers in their reports.
 */
#ifndef TEST_STATS_BENCH_H
#define TEST_STATS_BENCH_H

#include "base/buffer.h"
#include "probe/probe.h"
#include "probe/stats.h"

/* Statistics of layers, or of the probes that match. */
struct bw_probe_stats *stats_make(bool by_xlator, const char *patterns);

/* An event as probes.c makes it. */
void stats_fire(struct bw_probe_stats *stats, enum bw_probe_number number, const void *record);

/* Appends a part of a report to a struct bw_buffer. */
struct bw_error *stats_collect(void *buffer, const char *bytes, size_t length);

/* The report as JSON, freed by the caller. */
char *stats_json(const struct bw_probe_stats *stats);

/* The sum of all numbers of a name in such a report. */
uint64_t stats_sum_of(const char *text, const char *name);

#endif
