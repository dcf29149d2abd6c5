/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replacements for lost superblocks, devices, chunk trees and root trees, rebuilt from tree blocks
 * found on the devices. src/open.c calls these functions while it opens a file system. The rebuilt
 * trees are in memory (btree/memory.h); readers use them like trees of the image. Each function
 * reports what it has reconstructed. */
#ifndef BW_RESCUE_RESCUE_H
#define BW_RESCUE_RESCUE_H

#include "btree/edit.h"
#include "fs/image.h"
#include "rescue/chunk_set.h"

/** Without bw_fs_options.scan, a search reads at most this number of bytes. */
#define BW_RESCUE_LIMIT (UINT64_C(64) << 30)

/** If no image has a valid superblock and fs->scan is set, makes superblocks for the images.
 * (superblocks.c) */
struct bw_error *bw_rescue_superblocks(struct bw_fs *fs, struct bw_image_set *set);

/** Searches images without a superblock and a partition table for file systems and encrypted
 * volumes that begin where partitions do. BW_ERROR_AMBIGUOUS if there are any: it names the option
 * that opens each. (lost_partitions.c) */
struct bw_error *bw_rescue_partitions(struct bw_fs *fs, const struct bw_image_set *set);

/** Lists the file systems whose tree blocks are on the images in fs->found. Reads the whole
 * devices. (superblocks.c) */
struct bw_error *bw_rescue_find_all(struct bw_fs *fs, struct bw_image_set *set);

/** The same; and reports those without a superblock, each with the option that opens it. */
struct bw_error *bw_rescue_report_others(struct bw_fs *fs, struct bw_image_set *set);

/** If images are unclaimed, identifies them as missing devices by the chunks and checksums that can
 * be read so far. (missing_devices.c) */
struct bw_error *bw_rescue_devices(struct bw_fs *fs);

/** If the chunk tree cannot be read completely, sets fs->chunk_tree. Consumes `why`; returns it if
 * nothing was set. (chunk_tree.c) */
struct bw_error *bw_rescue_chunk_tree(struct bw_fs *fs, struct bw_error *why);

/** Finds the chunks, in the system chunks and the metadata chunks. `found` is empty at first.
 * (chunk_tree.c) */
struct bw_error *bw_rescue_find_chunks(struct bw_fs *fs, struct bw_newest *found);

/** If the current root tree cannot be read completely, sets fs->root_tree. Consumes `why`; returns
 * it if nothing was set. (root_tree.c) */
struct bw_error *bw_rescue_root_tree(struct bw_fs *fs, struct bw_error *why);

/** If bits in keys of root items are flipped, sets fs->root_tree to a copy with the right keys.
 * (root_keys.c) */
struct bw_error *bw_rescue_root_keys(struct bw_fs *fs, bool *corrected);

/** Begins a tree in memory, which replaces a lost one. */
struct bw_error *bw_rescue_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor);

/** The result of a search that ended with `error`. Consumes that and `why`, the error of the loss,
 * unless the search was successful and has reported it. */
struct bw_error *bw_rescue_end(struct bw_error *error, struct bw_error *why);

/* Finds out which extent of which device is which stripe of a chunk, if the chunk item is lost and
 * the profile is striped. The contents decide: the address in a tree block determines its position
 * in the chunk, and so does a checksum of data that matches in exactly one place. */

enum { BW_MOST_STRIPES = 64 }; /**< maximum number of stripes of a chunk to prove */

/** A chunk without an item. */
struct bw_derived_chunk {
    const struct bw_device_scan *scan;
    uint64_t logical, length, type;
    const struct bw_raid_profile *profile;
    const struct bw_found_extent *extents; /**< one per stripe */
    unsigned count;                        /**< number of extents */
    unsigned columns;                      /**< data stripes per row */
    size_t *work;                          /**< remaining budget for all chunks' proofs */
};

/** Sets `order`, which the caller has filled with -1, to the index of the extent for each stripe.
 * False if the order is not proven; then the chunk must not be read. `set` contains the known
 * chunks. */
bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES]);

/** The types that the checksums in an item may have, as a set of BW_CHECKSUM_BIT(); empty if it has
 * no checksums of data. While a tool changes the type, nothing but the data shows which of them an
 * item has. (stripe_search.c) */
unsigned bw_rescue_sum_types(const struct bw_fs *fs, const struct bw_key *key);

/* Device extents without a device tree. If the positions of many blocks differ from their computed
 * offsets in a stripe by the same number, the stripe begins there. */

/** Finds extents of a chunk with known logical, length, profile, scan and work. Sets chunk->extents
 * to `found`, chunk->columns, chunk->count to the number of stripes, and `order` to the index of
 * the extent for each stripe, or -1 if it was not found. False if none was found, or if the blocks
 * contradict each other. */
bool bw_found_extents(struct bw_derived_chunk *chunk, const struct bw_chunk_facts *facts,
                      const struct bw_chunk_set *set, struct bw_found_extent found[BW_MOST_STRIPES],
                      int order[BW_MOST_STRIPES]);

/**
 * Reads the devices, including images that are unclaimed, and searches for the data of chunks that
 * have a block group but are not in `set`, by checksums. Sets facts->seen. BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set);

#endif
