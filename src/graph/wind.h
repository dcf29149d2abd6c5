/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames above the graph: for a search, or the read of a block, that causes calls of layers. */
#ifndef BW_GRAPH_WIND_H
#define BW_GRAPH_WIND_H

#include "btrfs-walk/graph.h"
#include "btrfs-walk/image.h"
#include "probe/probe.h"

/** A frame above the topmost layer, with depth 0 and its own call number. */
struct bw_frame bw_frame_above(const struct bw_frame *parent, struct bw_probes *probes);

/** The same for calls that read tree blocks, which other calls may read again. */
struct bw_frame bw_frame_above_blocks(const struct bw_frame *parent, struct bw_probes *probes);

/** The probes of the graph that contains a layer. */
struct bw_probes *bw_xlator_probes(const struct bw_xlator *xlator);

/** An image that is read by calling functions. They must be safe from any thread. */
struct bw_image_source {
    const char *name; /**< the name in messages */
    uint64_t size;    /**< bytes */
    /** Reads `length` bytes; the range is inside of the image. */
    struct bw_error *(*read)(void *context, uint64_t offset, void *buffer, size_t length);
    void *context;
};

struct bw_patch;
struct bw_keys;

/** What the layers of a graph may need besides their options. Nothing is owned, and all of it may
 * be missing. */
struct bw_graph_inputs {
    struct bw_servers *servers;            /**< servers of images */
    const struct bw_image_source *source;  /**< replaces the images */
    const struct bw_patch *const *patches; /**< bw_fs_options.patches, by the image's number */
    size_t patch_count;
    struct bw_search_limit *search_limit; /**< bw_fs_options.search_limit */
    struct bw_keys *keys;                 /**< keys of encrypted volumes */
    /** bw_fs_options.decompressed */
    void (*decompressed)(void *context, uint64_t done, uint64_t total);
    void *decompressed_context;
};

/** The inputs of the graph that contains a layer. */
const struct bw_graph_inputs *bw_xlator_inputs(const struct bw_xlator *xlator);

/** The file of the first storage layer below a layer, or the name of that layer if it has none. */
const char *bw_xlator_image(const struct bw_xlator *xlator);

/** Sets what a layer shows, from its `init`. */
__attribute__((format(printf, 2, 3))) void bw_xlator_set_title(struct bw_xlator *xlator,
                                                               const char *format, ...);

/** The operation `title` of a layer that has set it. */
const char *bw_xlator_title(struct bw_xlator *xlator);

/** Sets the size of a layer, from its `init`. */
void bw_xlator_set_size(struct bw_xlator *xlator, uint64_t size);

/** The operation `size` of a layer that has set it. */
uint64_t bw_xlator_own_size(struct bw_xlator *xlator);

/** Reads a range of a layer with device addresses as raw bytes. */
struct bw_error *bw_read_raw(const struct bw_frame *frame, struct bw_xlator *xlator,
                             uint64_t offset, void *buffer, size_t length);

/** The same for signatures and other optional bytes: false if the layer ends before the end of the
 * range, or cannot read it. */
bool bw_try_read_raw(const struct bw_frame *frame, struct bw_xlator *xlator, uint64_t offset,
                     void *buffer, size_t length);

/** Number of requests that a layer handles at a time if it has to copy them. */
enum { BW_BATCH = 64 };

/** Size of the next batch when `left` requests remain. */
static inline size_t bw_next_batch(size_t left)
{
    return left < BW_BATCH ? left : BW_BATCH;
}

#endif
