/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking up the checksums of data in the checksum tree, by logical address. Reading on from one
 * extent to the next costs no search: a leaf holds the checksums of some MiB.
 */
#ifndef BW_DATA_CHECKSUMS_H
#define BW_DATA_CHECKSUMS_H

#include "btree/find_leaf.h"

struct bw_fs;

/** A place in a checksum tree. One thread at a time may use it. */
struct bw_data_checksums {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    size_t tree; /**< which tree that is */
    uint32_t sectorsize;
    uint32_t size; /**< of a checksum, in bytes */
};

/** Starts; nothing is read yet. */
void bw_data_checksums_init(struct bw_data_checksums *checksums, struct bw_fs *fs);

/** Frees what it holds. */
void bw_data_checksums_free(struct bw_data_checksums *checksums);

/** What is known of a range. */
struct bw_checksum_run {
    uint64_t length; /**< bytes from its beginning on that are alike; at least a sector */
    bool known;      /**< whether they have checksums */
    uint64_t lost;   /**< address of the block of the checksum tree that would tell of what is not
                        known, at the beginning or behind `length`, and is lost; 0: none is */
};

/**
 * Copies the checksums of as many sectors as have them, from `logical` on, for at most `length`
 * bytes; both are multiples of the sector size. `result` takes bw_data_checksums.size for each
 * sector. If the first sector has none, tells for how many bytes there are none. Parts of the tree
 * that cannot be read are reported, and have none. Fails only for want of memory.
 */
struct bw_error *bw_data_checksums_get(struct bw_data_checksums *checksums, uint64_t logical,
                                       uint64_t length, uint8_t *result,
                                       struct bw_checksum_run *run);

#endif
