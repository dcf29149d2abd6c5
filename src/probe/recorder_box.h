/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorder from within: made by recorder_create.c, worked by recorder.c. */
#ifndef BW_PROBE_RECORDER_BOX_H
#define BW_PROBE_RECORDER_BOX_H

#include <time.h>

#include "probe/recorder.h"
#include "record/show.h"

/** What is recorded of the events of a probe, besides its primary and secondary member: indices of
 * members.
 */
struct bw_box_plan {
    unsigned call, error, ns;
    int text; /**< the one text that tells most; -1: none */
    bool keeps_end;
};

struct bw_recorder {
    struct bw_probe_consumer consumer;
    struct bw_box_plan plans[BW_PROBES_MAX];
    struct bw_recording view;
    uint8_t *bytes; /* mapped */
    uint64_t size;
    struct bw_box_ending *ending; /* both in there */
    struct bw_box_slot *slots;
    int descriptor; /* of the file; holds the lock on it; -1: none */
    /* Events so far; in a line of its own, since all threads write it. */
    _Alignas(64) _Atomic uint64_t numbers;
    char unused[56];
};

/** Makes it take events. */
void bw_recorder_attach(struct bw_recorder *recorder);

static inline uint64_t bw_box_nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

#endif
