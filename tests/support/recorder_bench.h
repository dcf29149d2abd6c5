/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder with probes that fire when a test says so, by a clock that stands still. */
#ifndef BW_TESTS_RECORDER_BENCH_H
#define BW_TESTS_RECORDER_BENCH_H

#include "support/walk_helpers.h"

#include "probe/probe.h"
#include "probe/recorder.h"
#include "probe/recorder_box.h"

struct recorder_bench {
    struct bw_probes *probes;
    struct bw_recorder *recorder;
    struct bw_buffer text; /**< for the tests' use */
};

/** What the clock says; it begins with the recorder's begin. */
extern uint64_t recorder_bench_time;

/** A recorder in memory; `patterns` may be NULL. */
struct recorder_bench recorder_bench_create(const char *patterns, uint32_t slots);
/** Probes for the recorder that is there. */
void recorder_bench_watch(struct recorder_bench *bench);
void recorder_bench_free(struct recorder_bench *bench);

/** Fires image-open. */
void record_image(struct recorder_bench *bench, const char *path);

/** The events that are there; the caller frees the list. */
struct bw_recording_list recorder_bench_list(const struct recorder_bench *bench);

#endif
