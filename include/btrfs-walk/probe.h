/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Probes: named points of the pipeline where a record can be watched, without root and without cost
 * as long as nobody does. A consumer says which probes it wants and gets their records.
 *
 *     struct bw_probes *probes;
 *     struct bw_probe_consumer consumer = {.take = mine};
 *     bw_probes_create(&probes);
 *     bw_probes_select("block-*,!block-verify", consumer.selected);
 *     bw_probes_add(probes, &consumer);
 *     bw_fs_open(&(struct bw_fs_options){..., .probes = probes}, &fs);
 *
 * The same probes are there as USDT (provider btrfswalk) for bpftrace, perf and gdb.
 */
#ifndef BTRFS_WALK_PROBE_H
#define BTRFS_WALK_PROBE_H

#include "btrfs-walk/error.h"
#include "btrfs-walk/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Room for a flag a probe; there are fewer. */
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
    bool coarse;                       /**< happens seldom: the flight recorder has it always */
    struct bw_attributes attributes;
    const char *documentation; /**< a phrase */
};

/** All probes in order; `count` gets their number. */
const struct bw_probe *bw_probe_table(unsigned *count);

/** The members of its record that have a translation for this probe; all others are never there. */
uint64_t bw_probe_members(const struct bw_probe *probe);

/** Name of the translator. */
const char *bw_probe_input(const struct bw_probe *probe);

/** Something that happened. All of it ends with the call it is passed to. */
struct bw_probe_event {
    const struct bw_probe *probe;
    const void *record; /**< the structure of probe->record */
    uint64_t members;   /**< members that are there: translated, and wanted by a consumer */
    uint64_t time;      /**< by the clock of the probes: nanoseconds of the monotonic clock */
};

/** Who watches. */
struct bw_probe_consumer {
    /** Takes an event; may be called by several threads at once. */
    void (*take)(struct bw_probe_consumer *consumer, const struct bw_probe_event *event);
    bool selected[BW_PROBES_MAX]; /**< by number of the probe */
    /** By number of the probe: lazy members it wants besides all others. */
    uint64_t lazy[BW_PROBES_MAX];
    struct bw_probe_consumer *next; /**< for the library's own use */
};

/** The probes of a file system, and who watches them. */
struct bw_probes;

/** Makes a set of probes that nobody watches. */
struct bw_error *bw_probes_create(struct bw_probes **probes);
/** Frees it; NULL is allowed. Consumers stay their owners'. */
void bw_probes_destroy(struct bw_probes *probes);

/** Adds a consumer, which must outlive the probes. Only before a file system is opened with them.
 */
void bw_probes_add(struct bw_probes *probes, struct bw_probe_consumer *consumer);

/** Another clock, in nanoseconds: for tests that want the same times each run. */
void bw_probes_set_clock(struct bw_probes *probes, uint64_t (*clock)(void));

/**
 * Adds probes to a selection: patterns with `*`, `?` and `[a-z]`, separated by commas; `!PATTERN` takes
 * away, and if the first one does, everything is selected before. BW_ERROR_USAGE if a pattern
 * matches no probe.
 */
struct bw_error *bw_probes_select(const char *patterns, bool selected[BW_PROBES_MAX]);

#ifdef __cplusplus
}
#endif
#endif
