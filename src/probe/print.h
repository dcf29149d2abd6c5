/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events as lines of text and of JSON: for the printer and for the flight recorder. */
#ifndef BW_PROBE_PRINT_H
#define BW_PROBE_PRINT_H

#include "btrfs-walk/probe.h"
#include "record/rows.h"

/** How the events of each probe are written: rows of its record. */
struct bw_event_format {
    bool json;
    struct bw_rows *rows[BW_PROBES_MAX]; /**< NULL: the probe is not selected */
};

/** Prepares the format for the events of the probes selected. After a failure it can be freed. */
struct bw_error *bw_event_format_init(bool json, const bool selected[BW_PROBES_MAX],
                                      struct bw_event_format *format);
void bw_event_format_free(struct bw_event_format *format);

/** The context that a line is printed in. */
struct bw_event_context {
    uint64_t begin;  /**< in text, times are relative to this one */
    uint64_t number; /**< in JSON, the number of the event; 0: none */
    bool cut;        /**< in JSON: some texts were shortened */
};

/** Appends an event as a line without its end. Allocates nothing if the text has room. */
void bw_event_append(const struct bw_event_format *format, const struct bw_probe_event *event,
                     const struct bw_event_context *context, struct bw_buffer *text);

#endif
