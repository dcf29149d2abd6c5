/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks without a chunk tree. Leaves of the chunk tree that are left have the items of most of
 * them. The others are known from the device tree, which tells whose extent lies where, and from
 * block groups, which tell length and profile. All of these leaves count only
 * where the chunks known so far put them.
 */
#ifndef BW_RESCUE_CHUNK_TREE_H
#define BW_RESCUE_CHUNK_TREE_H

#include "rescue/chunk_set.h"

/** A range of a device that belongs to a chunk. */
struct bw_found_extent {
    uint64_t chunk; /**< its logical address */
    uint64_t devid, offset, length;
};

/** What leaves of several trees say of chunks. All zeros is nothing. */
struct bw_chunk_facts {
    struct bw_newest chunks;         /**< items of the chunk tree */
    struct bw_newest devices;        /**< of the device tree: extents of devices */
    struct bw_newest groups;         /**< block groups */
    struct bw_found_extent *extents; /**< of the device tree: ascending by chunk */
    size_t extent_count;
    struct bw_data_place {
        uint64_t address; /**< by its checksum */
        uint64_t offset;
        size_t image;
    } * seen; /**< data that were seen on the devices */
    size_t seen_count, seen_capacity;
};

void bw_chunk_facts_free(struct bw_chunk_facts *facts);

/** Finds the extents in facts->devices. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_facts_extents(struct bw_chunk_facts *facts);

#endif
