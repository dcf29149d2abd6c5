/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The consumer that prints: one line an event, for people or as JSON.
 */
#ifndef BW_PROBE_PRINT_H
#define BW_PROBE_PRINT_H

#include <pthread.h>

#include "base/buffer.h"
#include "btrfs-walk/probe.h"

/** A printer; its owner sets the first part and calls bw_probe_printer_init(). */
struct bw_probe_printer {
    bool json;        /**< one object a line; otherwise text */
    bool gather;      /**< write when there is enough; otherwise each line at once */
    uint64_t maximum; /**< lines to print; UINT64_MAX: all */
    /** Takes whole lines; never from two threads at once. An error ends the printing. */
    struct bw_error *(*write)(void *context, const char *lines, size_t length);
    void *context;

    struct bw_probe_consumer consumer; /**< selected: the owner's to set */
    pthread_mutex_t lock;
    struct bw_buffer text;
    uint64_t printed;
    uint64_t begin;         /* time of the first event */
    struct bw_error *error; /* the first one */
};

/** Prepares it. */
void bw_probe_printer_init(struct bw_probe_printer *printer);

/** Writes what was gathered; others may be printing. */
void bw_probe_printer_flush(struct bw_probe_printer *printer);

/** Writes what was gathered and releases the memory. Returns the first error there was; the caller
 * owns it.
 */
struct bw_error *bw_probe_printer_finish(struct bw_probe_printer *printer);

#endif
