/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common code of the tests of statistics. */
#include "support/stats_bench.h"

#include "probe/probe.h"
#include "support/debug_bench.h"

struct bw_probe_stats *stats_make(bool by_xlator, const char *patterns)
{
    struct bw_probe_stats *stats;
    bool selected[BW_PROBES_MAX] = {false};
    if (patterns)
        expect_success(bw_probes_select(patterns, selected));
    expect_success(bw_probe_stats_create(by_xlator, patterns ? selected : NULL, &stats));
    return stats;
}

struct bw_error *stats_collect(void *context, const char *bytes, size_t length)
{
    bw_buffer_append(context, bytes, length);
    return NULL;
}

/* An event as probes.c makes it. */
void stats_fire(struct bw_probe_stats *stats, enum bw_probe_number number, const void *record)
{
    struct bw_probe_consumer *consumer = bw_probe_stats_consumer(stats);
    const struct bw_probe *probe = &bw_probe_table(NULL)[number];
    uint64_t wanted = bw_record_eager(probe->record) | consumer->lazy[number];
    const struct bw_probe_event event = {
        .probe = probe, .record = record, .members = wanted & bw_probe_members(probe)};
    assert_true(consumer->selected[number]);
    consumer->visit(consumer, &event);
}

/* The sum of all numbers of a name in a report. */
uint64_t stats_sum_of(const char *text, const char *name)
{
    char quoted[64];
    uint64_t sum = 0;
    snprintf(quoted, sizeof quoted, "\"%s\":", name);
    for (const char *at = text; (at = strstr(at, quoted));) {
        at += strlen(quoted);
        sum += strtoull(at, NULL, 10);
    }
    return sum;
}

char *stats_json(const struct bw_probe_stats *stats)
{
    struct bw_buffer text = {0};
    expect_success(bw_probe_stats_report(stats, true, stats_collect, &text));
    bw_buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    return text.data;
}
