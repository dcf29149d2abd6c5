/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks without a chunk tree. Leaves of the chunk tree that are left have the items of most of
 * them. The others are known from the device tree, which tells whose extent lies where, and from
 * block groups, which tell length and profile (derived_chunks.c). All of these leaves count only
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

/**
 * Adds the chunks to a set that have a block group and extents of devices, but no item. Where the
 * order of their stripes matters, it has to be proven by blocks that were seen in them. Those that
 * cannot be known are reported, unless `fs` is NULL. Proofs take from `work`, and fail when none is
 * left. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_chunks_derive(struct bw_fs *fs, const struct bw_device_scan *scan,
                                  const struct bw_chunk_facts *facts, size_t *work,
                                  struct bw_chunk_set *set);

/** The uuid of a device; zeros if it is not known. */
void bw_chunk_facts_uuid(const struct bw_device_scan *scan, const struct bw_chunk_facts *facts,
                         uint64_t devid, uint8_t uuid[BW_UUID_SIZE]);

#endif
