/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events as lines of text or JSON, for the printer and the flight recorder. */
#ifndef BW_PROBE_PRINT_H
#define BW_PROBE_PRINT_H

#include "btrfs-walk/probe.h"
#include "record/rows.h"

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
