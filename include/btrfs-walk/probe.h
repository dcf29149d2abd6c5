/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes: named points of the pipeline that can be observed without root. An unobserved probe costs
 * almost nothing. A consumer selects probes and receives a record for each of their events.
 *
 *     struct bw_probes *probes;
 *     struct bw_probe_consumer consumer = {.visit = mine};
 *     bw_probes_create(&probes);
 *     bw_probes_select("block-*,!block-verify", consumer.selected);
 *     bw_probes_add(probes, &consumer);
 *     bw_fs_open(&(struct bw_fs_options){..., .probes = probes}, &fs);
 *
 * The same probes exist as USDT (provider btrfswalk) for bpftrace, perf and gdb.
 */
#ifndef BTRFS_WALK_PROBE_H
#define BTRFS_WALK_PROBE_H

#include "btrfs-walk/error.h"
#include "btrfs-walk/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Upper limit of the number of probes. */
enum { BW_PROBES_MAX = 32 };

struct bw_xlate;

/** A probe. */
struct bw_probe {
    const char *name; /**< "block-read-done" */
    const char *usdt; /**< "block__read__done" */
    unsigned number;  /**< its index in bw_probe_table() */
    const struct bw_record *record;
    const struct bw_xlate *translator; /**< fills the record; see bw_probe_members() */
    unsigned primary;                  /**< the member that is its first key */
    unsigned secondary;                /**< and its second */
    bool coarse;                       /**< fires seldom: always kept by the flight recorder */
    struct bw_attributes attributes;
    const char *documentation; /**< a phrase */
};

/** All probes in order; `count` gets their number. */
const struct bw_probe *bw_probe_table(unsigned *count);

/** The members of its record that have a translation for this probe; all others are always absent.
 */
uint64_t bw_probe_members(const struct bw_probe *probe);

/** Name of the translator. */
const char *bw_probe_input(const struct bw_probe *probe);

/** Something that happened. Valid only during the call that it is passed to. */
struct bw_probe_event {
    const struct bw_probe *probe;
    const void *record; /**< the structure of probe->record */
    uint64_t members;   /**< members that have a value, as a mask; lazy ones only on request */
    uint64_t time;      /**< by the clock of the probes: nanoseconds of the monotonic clock */
};

/** A consumer of events. */
struct bw_probe_consumer {
    /** Receives an event; may be called by several threads at once. */
    void (*visit)(struct bw_probe_consumer *consumer, const struct bw_probe_event *event);
    bool selected[BW_PROBES_MAX]; /**< by number of the probe */
    /** By number of the probe: lazy members to evaluate, as a mask. */
    uint64_t lazy[BW_PROBES_MAX];
    struct bw_probe_consumer *next; /**< used by the library */
    uint64_t reserved[2];           /**< zeros: room for more members */
};

/** A set of probes with their consumers, for one file system. */
struct bw_probes;

/** Creates a set without consumers. */
struct bw_error *bw_probes_create(struct bw_probes **probes);
/** Frees it; NULL is allowed. The consumers are not freed. */
void bw_probes_destroy(struct bw_probes *probes);

/** Adds a consumer, which must outlive the set. Only before a file system is opened with the set.
 */
void bw_probes_add(struct bw_probes *probes, struct bw_probe_consumer *consumer);

/** Replaces the clock (nanoseconds), for tests that need the same times in each run. */
void bw_probes_set_clock(struct bw_probes *probes, uint64_t (*clock)(void));

/**
 * Adds probes to a selection: patterns with `*`, `?` and `[a-z]`, separated by commas. `!PATTERN`
 * removes probes; if the first pattern does, and nothing is selected, all probes are selected
 * before. BW_ERROR_USAGE if a pattern matches no probe.
 */
struct bw_error *bw_probes_select(const char *patterns, bool selected[BW_PROBES_MAX]);

/*
 * The consumers of the library. Each is made for a selection of probes and added to a set with
 * bw_probes_add(probes, bw_..._consumer(it)); all must outlive the file system that is opened with
 * the set. The flight recorder, below, is another one.
 */

/** Prints a line for each event. */
struct bw_probe_printer;

/** The format of lines, and their destination. */
struct bw_probe_printer_options {
    size_t struct_size; /**< sizeof(struct bw_probe_printer_options) */
    bool json;          /**< a JSON object a line; otherwise text */
    bool gather;        /**< pass on lines when there are many; otherwise each at once */
    uint64_t maximum;   /**< lines to print; 0: all */
    /** Receives whole lines; never called by two threads at once. Its error ends the printing. */
    struct bw_error *(*consume)(void *context, const char *lines, size_t length);
    void *context; /**< passed to consume */
};

/** Creates a printer; copies the options. On success the caller owns `*printer`.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_probe_printer_create(const struct bw_probe_printer_options *options,
                                         const bool selected[BW_PROBES_MAX],
                                         struct bw_probe_printer **printer);
/** Passes on the collected output and frees the printer; NULL is allowed. Returns the first error
 * of the printing; the caller owns it. */
struct bw_error *bw_probe_printer_destroy(struct bw_probe_printer *printer);
/** The consumer, for bw_probes_add(). It lives as long as the printer. */
struct bw_probe_consumer *bw_probe_printer_consumer(struct bw_probe_printer *printer);
/** Passes on the collected output, while other threads may print. */
void bw_probe_printer_flush(struct bw_probe_printer *printer);

/**
 * Statistics: counts and times events instead of printing them, by probe or by layer. Times are in
 * nanoseconds.
 *
 * By probe, there is a row for each selected probe that has fired: the number of its events, of
 * those with an error, and the sum of their `bytes` (or `bytes_out`). If the record of the probe
 * has a duration, there are also the total, least, average and largest time, and a share: the
 * total as part of the totals of all rows. Probes are nested (reading a block calls a layer, which
 * reads from a device): shares compare probes, they do not divide the time of the run. Rows are
 * sorted by total time. For distributions, bpftrace reads the USDT probes.
 *
 * By layer, there is a row for each layer that was called: its calls of any operation, the requests
 * and bytes of its reads, its errors, the time of its calls, and its own time, which excludes the
 * calls that it made itself. Shares are those of own time and add up to 100 %. Times of threads add
 * up: a second in each of two threads is two. Rows are sorted by own time.
 *
 * A sum that does not fit 64 bits is shown as 18446744073709551615.
 *
 * As JSON, the report is one object in one line; members that a probe cannot have are omitted:
 *
 *     {"mode":"probe","probes":[{"probe":"dev-read-done","share_permille":1000,"total_ns":7,
 *      "count":2,"errors":0,"bytes":8192,"min_ns":3,"avg_ns":3,"max_ns":4}]}
 *     {"mode":"xlator","layers":[{"layer":"verify","layer_type":"features/verify",
 *      "share_permille":1000,"own_ns":5,"total_ns":7,"calls":2,...}],"uncounted":0}
 *
 * `share_permille` is present if any time has passed. `uncounted` is the number of calls of layers
 * that were not counted, because there were more than 4096 layers.
 */
struct bw_probe_stats;

/** Creates empty statistics. By probe, `selected` chooses the probes, NULL means all; by layer it
 * is not used. On success the caller owns `*stats`. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_probe_stats_create(bool by_xlator, const bool selected[BW_PROBES_MAX],
                                       struct bw_probe_stats **stats);
/** Frees them; NULL is allowed. */
void bw_probe_stats_destroy(struct bw_probe_stats *stats);
/** The consumer, for bw_probes_add(). It lives as long as the statistics. */
struct bw_probe_consumer *bw_probe_stats_consumer(struct bw_probe_stats *stats);
/** Passes the report to `consume` in one piece: a table or JSON. Other threads may be counting.
 * Returns the error of `consume`, or BW_ERROR_NO_MEMORY. */
struct bw_error *bw_probe_stats_report(const struct bw_probe_stats *stats, bool as_json,
                                       struct bw_error *(*consume)(void *context, const char *text,
                                                                   size_t length),
                                       void *context);

/*
 * The flight recorder: a consumer that keeps the last events as lines, in memory or in a file that
 * survives any end of the process; and the reader of such files, which are called black boxes.
 */

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

/** Creates a recorder in a file that is open for reading and writing; its previous contents are
 * lost. The file gets its full size (2 KiB a slot) at once, so that a full disk is noticed now
 * rather than while events are recorded. */
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

/** Facts about the process and the events in a black box. */
struct bw_recording_facts {
    char program[48];     /**< name and version, printable ASCII */
    uint32_t process;     /**< its id */
    uint32_t signal;      /**< the signal that ended it, if it was recorded; 0: none */
    bool ended;           /**< it ended normally */
    uint64_t begin_real;  /**< when recording began, in nanoseconds since 1970 */
    uint64_t ns;          /**< from then to the end or the signal */
    uint32_t count;       /**< events that can be shown */
    uint32_t torn;        /**< events that were being written */
    uint32_t damaged;     /**< slots with contents that make no sense */
    uint64_t overwritten; /**< older events, for which the ring had no room */
    uint64_t missing;     /**< events that were dropped, because their slot was in use */
};

/** Reads a black box, also of a process that is still running; the file need not be seekable. The
 * contents are not trusted. On success the caller owns `*recording`. BW_ERROR_CORRUPT: it is not a
 * black box, or damaged; BW_ERROR_UNSUPPORTED: it has another version; BW_ERROR_SYSTEM;
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_recording_open(int descriptor, struct bw_recording **recording);

/** Frees it; NULL is allowed. */
void bw_recording_close(struct bw_recording *recording);

/** The facts; valid as long as the recording. */
const struct bw_recording_facts *bw_recording_facts(const struct bw_recording *recording);

/** An event, formatted when it happened. The views are printable UTF-8 without a newline, valid as
 * long as the recording. */
struct bw_recorded {
    uint64_t number;      /**< counted from 1 */
    struct bw_bytes text; /**< seconds since the begin, thread, probe, NAME=VALUE... */
    struct bw_bytes json; /**< an object */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** The event at `index`, from the oldest, 0, to facts->count - 1. */
struct bw_recorded bw_recording_event(const struct bw_recording *recording, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
