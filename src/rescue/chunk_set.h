/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of chunks, and facts about chunks: items of lost trees, device extents and block groups. The
 * positions of tree blocks are checked against the set of chunks known so far. */
#ifndef BW_RESCUE_CHUNK_SET_H
#define BW_RESCUE_CHUNK_SET_H

#include "base/vector.h"
#include "rescue/device_scan.h"
#include "rescue/newest_items.h"
#include "xlators/cluster/layout.h"

/** A set of chunks. All zeros is an empty set. */
struct bw_chunk_set {
    struct bw_layout layout;
    struct bw_newest items; /**< of the chunks; only `at` and `size` are used */
};

/** Frees the memory. */
void bw_chunk_set_free(struct bw_chunk_set *set);

/** Adds the item of a chunk, unless it is invalid or overlaps a chunk of the set.
 * BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add(struct bw_chunk_set *set, const struct bw_item *item);

/** Adds the system chunks in a superblock. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_set_add_array(struct bw_chunk_set *set,
                                        const struct bw_superblock *super);

/** The next chunk of a set, where `*at` is 0 before the first; false at the end. A view that lasts
 * until a chunk is added. */
bool bw_chunk_set_next(const struct bw_chunk_set *set, size_t *at, struct bw_chunk *chunk);

/** Bytes of each stripe of a chunk. */
uint64_t bw_stripe_length(const struct bw_chunk *chunk);

/** The copies of an address that can be read directly, in the order of the mirrors. */
struct bw_copies {
    struct bw_piece piece;
    unsigned copy;
    uint64_t devid, offset; /**< of the current copy */
};

/** Starts before the first copy. False if no chunk contains the address: it has no copies. */
bool bw_copies_begin(struct bw_copies *copies, const struct bw_chunk_set *set, uint64_t address);

/** Moves to the next copy; false at the end. */
bool bw_copies_next(struct bw_copies *copies);

/** Whether the position of a block agrees with the chunks. */
enum bw_agreement {
    BW_AGREES,    /**< the chunks put the block there */
    BW_DISAGREES, /**< the chunks put it elsewhere: it is a copy in a file, or stale */
    BW_NO_CHUNK,  /**< no known chunk contains its address */
};

enum bw_agreement bw_chunk_set_test(const struct bw_chunk_set *set,
                                    const struct bw_device_scan *scan,
                                    const struct bw_block_match *match);

/* Chunks without a chunk tree. Surviving leaves of the chunk tree contain the items of most chunks.
 * The other chunks are derived from the device tree, which maps device extents to chunks, and from
 * block groups, which contain length and profile. A leaf is used only if the chunks known so far
 * put it at its position. */

struct bw_disk_device_item;

/** A range of a device that belongs to a chunk. */
struct bw_found_extent {
    uint64_t chunk; /**< logical address of the chunk */
    uint64_t devid, offset, length;
};

BW_VECTOR(bw_extent_list, struct bw_found_extent);

/** Data that a checksum identifies. */
struct bw_data_place {
    uint64_t address; /**< determined by its checksum */
    uint64_t offset;
    size_t image;
};

BW_VECTOR(bw_data_places, struct bw_data_place);

/** Facts about chunks, from the leaves of several trees. All zeros is empty. */
struct bw_chunk_facts {
    struct bw_newest chunks;       /**< items of the chunk tree */
    struct bw_newest devices;      /**< items of the device tree: device extents */
    struct bw_newest groups;       /**< block groups */
    struct bw_extent_list extents; /**< from the device tree, in ascending order of chunks */
    struct bw_data_places seen;    /**< data found on the devices */
};

void bw_chunk_facts_free(struct bw_chunk_facts *facts);

/** The item of a device; NULL if it was not found. */
const struct bw_disk_device_item *bw_chunk_facts_device(const struct bw_chunk_facts *facts,
                                                        uint64_t devid);

/** Settles the items when all leaves were added, and fills `extents`. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_chunk_facts_settle(struct bw_chunk_facts *facts);

#endif
