/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder for tests. */
#include "support/recorder_bench.h"

#include <sys/mman.h>
#include <unistd.h>

uint64_t recorder_bench_time;

static uint64_t fake_clock(void)
{
    return recorder_bench_time;
}

struct bw_probes *recorder_bench_watch(struct bw_recorder *recorder, uint64_t begin)
{
    struct bw_probes *probes;
    expect_success(bw_probes_create(&probes));
    bw_probes_set_clock(probes, fake_clock);
    bw_probes_add(probes, bw_recorder_consumer(recorder));
    recorder_bench_time = begin;
    return probes;
}

struct recorder_bench recorder_bench_create(const char *patterns, uint32_t slots)
{
    struct recorder_bench bench = {.descriptor = memfd_create("box", 0)};
    bool selected[BW_PROBES_MAX] = {false};
    assert_true(bench.descriptor >= 0);
    if (patterns)
        expect_success(bw_probes_select(patterns, selected));
    expect_success(bw_recorder_create_file(dup(bench.descriptor), "box", patterns ? selected : NULL,
                                           slots, &bench.recorder));
    bench.size = BW_BOX_SLOTS + slots * sizeof(struct bw_box_slot);
    bench.header = mmap(NULL, bench.size, PROT_READ | PROT_WRITE, MAP_SHARED, bench.descriptor, 0);
    assert_true(bench.header != MAP_FAILED);
    bench.slots = (void *)((char *)bench.header + BW_BOX_SLOTS);
    bench.probes = recorder_bench_watch(bench.recorder, bw_get64(bench.header->begin));
    return bench;
}

void recorder_bench_free(struct recorder_bench *bench)
{
    bw_recorder_destroy(bench->recorder);
    bw_probes_destroy(bench->probes);
    munmap(bench->header, bench->size);
    close(bench->descriptor);
}

void record_image(struct bw_probes *probes, const char *path)
{
    BW_PROBE(probes, image__open, image, &(struct bw_image_event){path, 1 << 20, 2});
}

struct bw_error *recorder_bench_read(int descriptor, struct bw_recording **recording)
{
    lseek(descriptor, 0, SEEK_SET);
    return bw_recording_open(descriptor, recording);
}

struct bw_recording *recorder_bench_recording(const struct recorder_bench *bench)
{
    struct bw_recording *recording;
    expect_success(recorder_bench_read(bench->descriptor, &recording));
    return recording;
}
