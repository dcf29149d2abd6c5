/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of debug layers: stderr, or the file in their option `file`. */
#ifndef BW_XLATORS_DEBUG_SINK_H
#define BW_XLATORS_DEBUG_SINK_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "btrfs-walk/graph.h"

/** The output of a layer, a part of its private state. */
struct bw_sink {
    int descriptor; /**< -1: not open */
    bool owned;     /**< it is a file opened here, not stderr */
    atomic_bool failed;
};

/** Opens the file in the layer's option `file`. Refuses block devices, which may be images. The
 * sink can be closed even after an error. */
struct bw_error *bw_sink_open(const struct bw_xlator *xlator, struct bw_sink *sink);

/**
 * Writes text with one write(2), so that lines of several threads do not mix, and frees it. The
 * first error is reported as a warning of the layer; reads continue.
 */
void bw_sink_write(const struct bw_xlator *xlator, struct bw_sink *sink, struct bw_buffer *text);

void bw_sink_close(const struct bw_xlator *xlator, struct bw_sink *sink);

#endif
