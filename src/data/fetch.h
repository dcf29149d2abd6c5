/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the readers of data: the checksums of data (checksums.c), and compressed extents
 * whose mirrors must be tried (mirrors.c).
 */
#ifndef BW_DATA_FETCH_H
#define BW_DATA_FETCH_H

#include "btrfs-walk/graph.h"
#include "data/reader.h"

enum {
    BW_DATA_REQUEST = 64 << 10, /**< maximum length of a request; requests never cross a multiple of
                                 * it */
};

struct bw_decompressor;

/** Counts the sectors of a request that were accepted although they do not match their checksums.
 * Returns their bytes. */
uint64_t bw_data_count_unverified(struct bw_fs *fs, const struct bw_request *request);

/** A compressed extent whose stored bytes were requested. */
struct bw_stored_extent {
    uint64_t logical;     /**< 0: it is inline, and there are no requests */
    const uint8_t *bytes; /**< `length` of them, which the requests read */
    size_t length;
    unsigned compression;
    struct bw_request *requests; /**< in the order of their addresses, and without errors */
    unsigned request_count;
};

/**
 * Decompresses an extent whose bytes do not decompress, from its other mirrors (mirrors.c).
 * Checksums cannot replace this test: they may be absent, lost, or computed from bad bytes.
 * Consumes `first`, the error of the bytes that were read. On success, the extent has the bytes of
 * the good mirrors, and the replacement is reported. Otherwise the error names the extent, and its
 * causes the mirrors.
 */
struct bw_error *bw_data_try_mirrors(struct bw_fs *fs, struct bw_decompressor *decompressor,
                                     const struct bw_stored_extent *extent, uint8_t *output,
                                     size_t length, struct bw_error *first);

/*
 * Checksums of data, by logical address (checksums.c). Continuing from one extent to the next needs
 * no search, because a leaf contains the checksums of some MiB.
 */

/** A position in a checksum tree. Only one thread at a time may use it. */
struct bw_data_checksums {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    size_t tree; /**< index of the tree */
    uint32_t sectorsize;
    uint32_t size; /**< of a checksum, in bytes */
};

/** Initializes; reads nothing yet. */
void bw_data_checksums_init(struct bw_data_checksums *checksums, struct bw_fs *fs);

void bw_data_checksums_free(struct bw_data_checksums *checksums);

/** The checksums of a range. */
struct bw_checksum_run {
    uint64_t length; /**< number of bytes from the beginning of the range that `known` applies to;
                      * at least a sector */
    bool known;      /**< these bytes have checksums */
    uint64_t lost; /**< address of a lost block of the checksum tree that may have contained missing
                    * checksums, in the first `length` bytes or after them; 0: no block is lost */
};

/**
 * Copies the checksums from `logical` on, for at most `length` bytes and up to the first sector
 * without one; both are multiples of the sector size. `result` needs bw_data_checksums.size bytes
 * for each sector. If the first sector has no checksum, run->length is the number of bytes without.
 * Unreadable parts of the tree are reported. Fails only if memory runs out.
 */
struct bw_error *bw_data_checksums_get(struct bw_data_checksums *checksums, uint64_t logical,
                                       uint64_t length, uint8_t *result,
                                       struct bw_checksum_run *run);

#endif
