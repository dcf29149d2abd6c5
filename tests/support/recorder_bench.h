/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder with probes that fire when a test says so, by a clock that stands still. It
 * records in a file without a name, whose bytes the test can see and change. */
#ifndef BW_TESTS_RECORDER_BENCH_H
#define BW_TESTS_RECORDER_BENCH_H

#include "support/walk_helpers.h"

#include "probe/probe.h"
#include "probe/recorder.h"

struct recorder_bench {
    struct bw_probes *probes;
    struct bw_recorder *recorder;
    int descriptor;               /**< of the file */
    size_t size;                  /**< of the file */
    struct bw_box_header *header; /**< the file, mapped */
    struct bw_box_slot *slots;
    char line[BW_RECORDER_LINE + 1]; /**< for the tests' use */
};

/** The time of the clock, which starts with the recorder. */
extern uint64_t recorder_bench_time;

/** A recorder; `patterns` may be NULL. */
struct recorder_bench recorder_bench_create(const char *patterns, uint32_t slots);
/** Probes for a recorder that began at `begin`. */
struct bw_probes *recorder_bench_watch(struct bw_recorder *recorder, uint64_t begin);
void recorder_bench_free(struct recorder_bench *bench);

/** Fires image-open. */
void record_image(struct bw_probes *probes, const char *path);

/** Reads the box from the beginning of a file. */
struct bw_error *recorder_bench_read(int descriptor, struct bw_recording **recording);
/** The same of a box that is good. */
struct bw_recording *recorder_bench_recording(const struct recorder_bench *bench);

#endif
