/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where debug layers write to: stderr, or the file their option `file` names. */
#ifndef BW_XLATORS_DEBUG_SINK_H
#define BW_XLATORS_DEBUG_SINK_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "btrfs-walk/graph.h"

/** Lives in the private state of its layer. */
struct bw_sink {
    int descriptor; /**< -1: not open */
    bool owned;     /**< it is a file of ours, not stderr */
    atomic_bool failed;
};

/** Opens the file of the layer's option `file`. A block device is refused: it might be an image.
 * The sink can be closed also after a failure. */
struct bw_error *bw_sink_open(const struct bw_xlator *xlator, struct bw_sink *sink);

/**
 * Writes text with one write(2), so that the lines of several threads do not mix, and frees it. The
 * first failure is reported as a warning of the layer; reads continue.
 */
void bw_sink_write(const struct bw_xlator *xlator, struct bw_sink *sink, struct bw_buffer *text);

/** Closes it. */
void bw_sink_close(struct bw_sink *sink);

#endif
