/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data whose space was used again. If the roots of trees are not proven, an older root of a
 * subvolume may lead to files that were deleted since. Where other files have reused their space,
 * the data match the checksums there, because both belong to the other files.
 *
 * A leaf proves that an extent was in use when the leaf was written. So if two extents overlap, the
 * one in the older leaf was freed before the newer leaf was written. Extents are the same if their
 * address, length and generation are the same, as in snapshots and reflinks. Preallocated space
 * proves nothing: writing into it changes the generation of the extent.
 */
#ifndef BW_FS_REUSED_EXTENTS_H
#define BW_FS_REUSED_EXTENTS_H

#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "ondisk/items.h"

/** A part of a data extent that a leaf refers to. */
struct bw_seen_extent {
    uint64_t logical;    /**< of the whole extent */
    uint64_t generation; /**< transaction that wrote it */
    uint64_t leaf;       /**< generation of the newest leaf that refers to it */
    uint32_t stored;     /**< bytes of the whole extent on disk */
    uint32_t offset;     /**< of the part, from `logical` */
    uint32_t length;     /**< of the part on disk */
};

BW_VECTOR(bw_seen_extents, struct bw_seen_extent);

/** Adds the extents in a leaf of a subvolume. Memory: 40 to 80 bytes for each part of an extent,
 * however many leaves repeat it. `sectorsize`: as bw_file_extent_decode() needs it. Fails only if
 * memory runs out. */
struct bw_error *bw_seen_extents_add_leaf(struct bw_seen_extents *seen, const struct bw_node *leaf,
                                          uint64_t generation, uint32_t sectorsize);

/** After the last leaf: keeps only those whose space was used again. Fails only if memory runs
 * out. */
struct bw_error *bw_seen_extents_settle(struct bw_seen_extents *seen);

/** Whether the data of an extent are among those that settle() has kept. */
bool bw_extent_is_reused(const struct bw_seen_extents *reused, const struct bw_extent *extent);

#endif
