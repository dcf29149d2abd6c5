/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames for what stands above the graph: a search, or the read of a block, that the calls of
 * layers belong to. */
#ifndef BW_GRAPH_WIND_H
#define BW_GRAPH_WIND_H

#include "btrfs-walk/servers.h"
#include "btrfs-walk/xlator.h"
#include "probe/probe.h"

/** A frame above the topmost layer, whose depth stays 0; with a call of its own. */
struct bw_frame bw_frame_above(const struct bw_frame *parent, struct bw_probes *probes);

/** The probes of the graph a layer is in. */
struct bw_probes *bw_xlator_probes(const struct bw_xlator *xlator);

/** The servers of images of the graph a layer is in; NULL: there are none. */
struct bw_servers *bw_xlator_servers(const struct bw_xlator *xlator);

/** How many requests a layer handles at a time when it has to copy them into a batch of its own. */
enum { BW_BATCH = 64 };

/** How many of the requests that are left the next batch takes. */
static inline size_t bw_next_batch(size_t left)
{
    return left < BW_BATCH ? left : BW_BATCH;
}

#endif
