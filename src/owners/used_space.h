/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space in use, by logical address. */
#ifndef BW_OWNERS_USED_SPACE_H
#define BW_OWNERS_USED_SPACE_H

#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "fs/fs.h"

/** The kinds of space that a set of ranges describes: from BW_USED_LOG to BW_USED_HISTORY. */
#define BW_USED_SETS (BW_USED_HISTORY + 1)

/** A chunk. */
struct bw_used_chunk {
    uint64_t logical, length;
    enum bw_used_kind kind; /**< of its contents, where the extent tree is not known */
    bool free_known;        /**< the free space tree lists the free ranges in it */
};

/** Ranges of a device that the caller has added. */
struct bw_used_extra {
    uint64_t devid;
    struct bw_range_set set;
};

BW_VECTOR(bw_used_extras, struct bw_used_extra);

BW_VECTOR(bw_used_chunks, struct bw_used_chunk);

struct bw_used_map {
    struct bw_fs *fs;
    struct bw_device_map *devices;
    struct bw_used_options options;
    struct bw_used_chunks chunks; /**< ascending by logical address */
    enum {
        BW_CHUNKS_KNOWN,
        BW_CHUNKS_FOUND, /**< the chunk tree is damaged, but no extent of the device tree is unknown
                          */
        BW_CHUNKS_LOST,  /**< the device tree, too */
    } chunk_tree;
    struct bw_range_set sets[BW_USED_SETS];
    struct bw_range_set added[BW_USED_SETS]; /**< what trees refer to although it is not in use */
    struct bw_used_extras extras;
};

/** The kind of the space at an address in a chunk; BW_USED_FREE if it is not in use, also in system
 * chunks. `*end` is cut to where that changes. */
enum bw_used_kind bw_used_kind_at(const struct bw_used_map *map, uint64_t logical, uint64_t *end);

/** Adds what a tree refers to, if it is not in use. bw_used_map_join() makes it count. */
struct bw_error *bw_used_map_refer(struct bw_used_map *map, enum bw_used_kind kind, uint64_t start,
                                   uint64_t length);
struct bw_error *bw_used_map_join(struct bw_used_map *map);

#endif
