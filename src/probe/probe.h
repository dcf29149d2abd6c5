/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guards and functions for code that fires probes, and the format of events as lines. An unwatched
 * probe costs a test of two numbers; its arguments are not evaluated. probes.def has an example.
 */
#ifndef BW_PROBE_PROBE_H
#define BW_PROBE_PROBE_H

#include <stdatomic.h>

#include "btrfs-walk/probe.h"
#include "record/record_types.h"

/** Numbers of the probes: BW_PROBE_block__read__done. */
enum bw_probe_number {
#define PROBE(id, name, record, translator, primary, secondary, grain, documentation) BW_PROBE_##id,
#include "probe/probes.def"
#undef PROBE
    BW_PROBE_COUNT
};

struct bw_probes {
    bool armed[BW_PROBES_MAX];       /**< selected by a consumer */
    uint64_t wanted[BW_PROBES_MAX];  /**< lazy members that consumers need */
    struct bw_probe_consumer *first; /**< the consumers; unchanged while a file system is open */
    uint64_t (*clock)(void);
    atomic_uint_fast64_t calls; /**< last number of a call */
};

/** Initializes a set without consumers. */
void bw_probes_init(struct bw_probes *probes);

/** The current time, from the clock of the probes. */
static inline uint64_t bw_probes_now(const struct bw_probes *probes)
{
    return probes->clock();
}

/** A new number for a call; never 0. */
static inline uint64_t bw_probes_call(struct bw_probes *probes)
{
    return atomic_fetch_add_explicit(&probes->calls, 1, memory_order_relaxed) + 1;
}

/* Semaphores count the external tracers that watch a probe. The kernel or a debugger changes
 * them. */
#ifdef BW_USDT
#define PROBE(id, name, record, translator, primary, secondary, grain, documentation) \
    extern volatile unsigned short btrfswalk_##id##_semaphore;
#include "probe/probes.def"
#undef PROBE
#define BW_SEMAPHORE(id) btrfswalk_##id##_semaphore
#else
#define BW_SEMAPHORE(id) 0
#endif

/* Functions that fire probes; cold, in probes.c. */
#define PROBE(id, name, record, translator, primary, secondary, grain, documentation)         \
    void bw_fire_##id(struct bw_probes *probes, const struct bw_xlate *xlate, const void *in) \
        __attribute__((cold, noinline));
#include "probe/probes.def"
#undef PROBE

/** Whether a consumer or a tracer watches a probe. */
#define BW_PROBE_ON(probes, id) \
    __builtin_expect((probes)->armed[BW_PROBE_##id] || BW_SEMAPHORE(id), 0)

/** The current time if the probe at the end of this operation is watched; otherwise 0. */
#define BW_PROBE_START(probes, id) (BW_PROBE_ON(probes, id) ? bw_probes_now(probes) : 0)

/** Fires a probe. The input of the translator is evaluated only if the probe is watched. */
#define BW_PROBE(probes, id, translator, ...)                                                     \
    do {                                                                                          \
        if (BW_PROBE_ON(probes, id))                                                              \
            bw_fire_##id((probes), &bw_##translator##_xlate, bw_input_##translator(__VA_ARGS__)); \
    } while (0)

/* Events as lines of text or JSON, for the printer and the flight recorder. */

struct bw_buffer;
struct bw_rows;

/** The format of events: rows of the record of each probe. */
struct bw_event_format {
    bool json;
    struct bw_rows *rows[BW_PROBES_MAX]; /**< NULL if the probe is not selected */
};

/** Initializes the format for events of the selected probes. It can be freed even after an error.
 */
struct bw_error *bw_event_format_init(bool json, const bool selected[BW_PROBES_MAX],
                                      struct bw_event_format *format);
void bw_event_format_free(struct bw_event_format *format);

/** Facts about an event that its record does not contain. */
struct bw_event_context {
    uint64_t begin;  /**< in text, times are relative to this */
    uint64_t number; /**< in JSON, the number of the event; 0: omitted */
    bool cut;        /**< in JSON: some texts were shortened */
};

/** Appends an event as a line without a newline. Allocates no memory if the text has enough room.
 */
void bw_event_append(const struct bw_event_format *format, const struct bw_probe_event *event,
                     const struct bw_event_context *context, struct bw_buffer *text);

#endif
