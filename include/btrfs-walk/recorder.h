/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder: a consumer of probes (btrfs-walk/probe.h) that keeps the last events as
 * lines, in memory or in a file that survives whatever ends the process; and reading such a file,
 * which is called a black box.
 */
#ifndef BTRFS_WALK_RECORDER_H
#define BTRFS_WALK_RECORDER_H

#include "btrfs-walk/probe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_recorder;

enum {
    BW_RECORDER_FEW_SLOTS = 1024, /**< events to keep: enough for the coarse probes */
    BW_RECORDER_SLOTS = 8192,     /**< events to keep: enough for fine ones, too */
    BW_RECORDER_LINE = 2032,      /**< bytes of a line at most */
};

/** Creates a recorder in memory that keeps the last `slots` events of the coarse probes and of
 * those selected; `selected` may be NULL. On success the caller owns `*recorder`.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_recorder_create(const bool selected[BW_PROBES_MAX], uint32_t slots,
                                    struct bw_recorder **recorder);

/**
 * Creates a recorder in a file that is open for reading and writing. What the file held is lost.
 * The file gets its full size (2 KiB a slot) at once, so that a full disk is an error now. Takes
 * over the descriptor, also if it fails. `name` is used in messages. BW_ERROR_USAGE: the file is
 * not empty and no black box, or another process records in it; BW_ERROR_SYSTEM. Whoever truncates
 * the file later kills the recording process with SIGBUS.
 */
struct bw_error *bw_recorder_create_file(int descriptor, const char *name,
                                         const bool selected[BW_PROBES_MAX], uint32_t slots,
                                         struct bw_recorder **recorder);

/** Notes that the process ends normally, and releases the memory; NULL is allowed. The file stays.
 */
void bw_recorder_destroy(struct bw_recorder *recorder);

/** The consumer to add to probes. Several threads may fire events at once; none of them waits. */
struct bw_probe_consumer *bw_recorder_consumer(struct bw_recorder *recorder);

/** Number of events recorded so far. Safe in a signal handler, as are all below up to
 * bw_recorder_note_signal(). */
uint64_t bw_recorder_count(const struct bw_recorder *recorder);

/** Copies the line of text of the event with that number, counted from 1, without a newline.
 * Returns its length; 0 if the event is overwritten or not complete. */
size_t bw_recorder_line(const struct bw_recorder *recorder, uint64_t number,
                        char line[BW_RECORDER_LINE]);

/** Whether the memory may be read: false if the file was truncated meanwhile. */
bool bw_recorder_is_whole(const struct bw_recorder *recorder);

/** Notes the signal that ends the process. */
void bw_recorder_note_signal(struct bw_recorder *recorder, int number);

/** The contents of a black box. */
struct bw_recording;

/** What a black box says about the process and the events. */
struct bw_recording_facts {
    char program[48];     /**< name and version, printable ASCII */
    uint32_t process;     /**< its id */
    uint32_t signal;      /**< that ended it, if it could be noted; 0: none */
    bool ended;           /**< it ended normally */
    uint64_t begin_real;  /**< when recording began, in nanoseconds since 1970 */
    uint64_t ns;          /**< from then to the end or the signal */
    uint32_t count;       /**< events that can be shown */
    uint32_t torn;        /**< events that were being written */
    uint32_t damaged;     /**< slots with contents that make no sense */
    uint64_t overwritten; /**< older events, for which the ring had no room */
    uint64_t missing;     /**< events that were dropped, because their slot was in use */
};

/**
 * Reads a black box, which may be that of a process that still runs, and need not be seekable. The
 * contents are not trusted. On success the caller owns `*recording`. BW_ERROR_CORRUPT: it is no
 * black box, or damaged; BW_ERROR_UNSUPPORTED: it has another version; BW_ERROR_SYSTEM;
 * BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_recording_read(int descriptor, struct bw_recording **recording);

/** Frees it; NULL is allowed. */
void bw_recording_destroy(struct bw_recording *recording);

/** What it says; lives as long as the recording. */
const struct bw_recording_facts *bw_recording_facts(const struct bw_recording *recording);

/** An event, as it was written when it happened. Views without a newline, which live as long as the
 * recording: printable UTF-8. */
struct bw_recorded {
    uint64_t number;      /**< counted from 1 */
    struct bw_bytes text; /**< seconds since the begin, thread, probe, NAME=VALUE... */
    struct bw_bytes json; /**< an object */
};

/** The event at `index`, from the oldest, 0, to facts->count - 1. */
struct bw_recorded bw_recording_event(const struct bw_recording *recording, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
