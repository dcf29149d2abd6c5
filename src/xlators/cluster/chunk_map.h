/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How fs/open fills a cluster/chunk-map layer. The bootstrap is visible there: name the devices, add the
 * system chunks of the superblock, walk the chunk tree through the half-filled map, add what it holds. Not
 * thread-safe until the filling is over.
 */
#ifndef BW_XLATORS_CLUSTER_CHUNK_MAP_H
#define BW_XLATORS_CLUSTER_CHUNK_MAP_H

#include "btrfs-walk/xlator.h"
#include "format/chunk.h"

/** Says which device a child of the layer is. Devices are told apart by id and uuid. One that is `stale`
 * missed writes: it is read where nothing better is left. */
struct bw_error *bw_chunk_map_add_device(struct bw_xlator *xlator, uint64_t devid,
                                         const uint8_t uuid[BW_UUID_SIZE], size_t child, bool stale);

/** Adds a chunk, or replaces the one with the same logical address. BW_ERROR_CORRUPT if it overlaps another.
 */
struct bw_error *bw_chunk_map_add_chunk(struct bw_xlator *xlator, const struct bw_chunk *chunk);

#endif
