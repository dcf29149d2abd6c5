/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: a consumer that keeps the last events in a ring of fixed slots. It lies in
 * memory, or in a mapped file that survives whatever ends the process. recorder_layout.h says what
 * is in it, recording.h reads it.
 */
#ifndef BW_PROBE_RECORDER_H
#define BW_PROBE_RECORDER_H

#include "btrfs-walk/probe.h"
#include "probe/recording.h"

struct bw_recorder;

/** Slots for coarse probes alone, and for all the others besides. */
enum { BW_RECORDER_FEW_SLOTS = 1024, BW_RECORDER_SLOTS = 16384 };

/** Makes one in memory. It records the coarse probes and those selected; `selected` may be NULL. */
struct bw_error *bw_recorder_create(const bool selected[BW_PROBES_MAX], uint32_t slots,
                                    struct bw_recorder **recorder);

/**
 * Makes one in a file, which must be open for reading and writing: it becomes as large as it will
 * be, or there is an error now, and what it held is lost. Takes over the descriptor, on an error as
 * well. BW_ERROR_USAGE: it is not empty and no black box, or a process records in it. Whoever makes
 * the file shorter meanwhile ends the process that records in it (SIGBUS).
 */
struct bw_error *bw_recorder_create_file(int descriptor, const char *name,
                                         const bool selected[BW_PROBES_MAX], uint32_t slots,
                                         struct bw_recorder **recorder);

/** Notes that the process ends as it should, and releases the memory; NULL is allowed. The file
 * stays. */
void bw_recorder_destroy(struct bw_recorder *recorder);

/** The consumer, to be added to probes. Events are taken by several threads at once, and nobody
 * waits. */
struct bw_probe_consumer *bw_recorder_consumer(struct bw_recorder *recorder);

/** How many events were recorded so far. Safe in a signal handler, as are all below. */
uint64_t bw_recorder_count(const struct bw_recorder *recorder);

/** Reads the event with that number, from 1 on; false if it is not there any more, or not complete.
 */
bool bw_recorder_get(const struct bw_recorder *recorder, uint64_t number,
                     struct bw_recorded *event);

/** Whether it can be read: its file, if it has one, is as long as it was made. */
bool bw_recorder_is_whole(const struct bw_recorder *recorder);

/** Notes a signal that ends the process. */
void bw_recorder_note_signal(struct bw_recorder *recorder, int number);

#endif
