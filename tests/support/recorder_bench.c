/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder for tests. */
#include "support/recorder_bench.h"

uint64_t recorder_bench_time;

static uint64_t fake_clock(void)
{
    return recorder_bench_time;
}

void recorder_bench_watch(struct recorder_bench *bench)
{
    expect_success(bw_probes_create(&bench->probes));
    bw_probes_set_clock(bench->probes, fake_clock);
    bw_probes_add(bench->probes, bw_recorder_consumer(bench->recorder));
    recorder_bench_time = bench->recorder->view.begin;
}

struct recorder_bench recorder_bench_create(const char *patterns, uint32_t slots)
{
    struct recorder_bench bench = {0};
    bool selected[BW_PROBES_MAX] = {false};
    if (patterns)
        expect_success(bw_probes_select(patterns, selected));
    expect_success(bw_recorder_create(patterns ? selected : NULL, slots, &bench.recorder));
    recorder_bench_watch(&bench);
    return bench;
}

void recorder_bench_free(struct recorder_bench *bench)
{
    bw_recorder_destroy(bench->recorder);
    bw_probes_destroy(bench->probes);
    bw_buffer_free(&bench->text);
}

void record_image(struct recorder_bench *bench, const char *path)
{
    BW_PROBE(bench->probes, image__open, image, &(struct bw_image_event){path, 1 << 20, 2});
}

struct bw_recording_list recorder_bench_list(const struct recorder_bench *bench)
{
    struct bw_recording recording;
    struct bw_recording_list list;
    expect_success(bw_recording_open(bench->recorder->bytes, bench->recorder->size, &recording));
    expect_success(bw_recording_sort(&recording, &list));
    return list;
}
