/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetching stored pieces of files for the reader: requests, their bad
 * parts, decompression (reader.c), and checksums (checksums.c).
 */
#ifndef BW_DATA_FETCH_H
#define BW_DATA_FETCH_H

#include "btrfs-walk/xlator.h"
#include "data/reader.h"

enum {
    BW_DATA_REQUEST = 64 << 10, /**< bytes of a request at most; its address is in one such range */
};

struct bw_data_fetch;

/*
 * Checksums of data, by logical address (checksums.c). Continuing from one extent to the next costs
 * no search: a leaf holds the checksums of some MiB.
 */

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

/** Facts about a range. */
struct bw_checksum_run {
    uint64_t length; /**< bytes from its beginning on that `known` is about; at least a sector */
    bool known;      /**< whether they have checksums */
    uint64_t lost;   /**< address of a lost block of the checksum tree that may have had the
                        checksums that are missing, here or after `length`; 0: none is lost */
};

/**
 * Copies the checksums from `logical` on, for at most `length` bytes and up to the first sector
 * that has none; both are multiples of the sector size. `result` takes bw_data_checksums.size bytes
 * for each sector. If the first sector has none, run->length is the number of bytes without. Parts
 * of the tree that cannot be read are reported. Fails only if memory runs out.
 */
struct bw_error *bw_data_checksums_get(struct bw_data_checksums *checksums, uint64_t logical,
                                       uint64_t length, uint8_t *result,
                                       struct bw_checksum_run *run);

#endif
