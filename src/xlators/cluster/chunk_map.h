/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fs/open fills a cluster/chunk-map layer. The bootstrap is visible there: name the devices,
 * add the system chunks of the superblock, walk the chunk tree through the half-filled map, add
 * what it holds. Not thread-safe until the filling is over.
 */
#ifndef BW_XLATORS_CLUSTER_CHUNK_MAP_H
#define BW_XLATORS_CLUSTER_CHUNK_MAP_H

#include "btrfs-walk/xlator.h"
#include "format/chunk.h"
#include "format/stripe_extent.h"

/** Says which device a child of the layer is. Devices are told apart by id and uuid. One that is
 * `stale` missed writes: it is read where nothing better is left. */
struct bw_error *bw_chunk_map_add_device(struct bw_xlator *xlator, uint64_t devid,
                                         const uint8_t uuid[BW_UUID_SIZE], size_t child,
                                         bool stale);

/** Adds a chunk, or replaces the one with the same logical address. BW_ERROR_CORRUPT if it overlaps
 * another.
 */
struct bw_error *bw_chunk_map_add_chunk(struct bw_xlator *xlator, const struct bw_chunk *chunk);

/** Who knows the raid stripe tree. */
struct bw_stripe_source {
    /** Finds the extent that holds a logical address. If there is none, or it cannot be told, that
     * is the error, and extent->length is for how many bytes it is so. Safe from any thread. */
    struct bw_error *(*find)(void *context, const struct bw_frame *frame, uint64_t logical,
                             struct bw_stripe_extent *extent);
    void *context;
};

/** From now on the source says where data lie, as far as that is not for the chunks to say. It must
 * stay as long as the layer. */
void bw_chunk_map_set_stripe_source(struct bw_xlator *xlator,
                                    const struct bw_stripe_source *source);

#endif
