/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fetching stored pieces of files for the reader: requests and which parts of them are bad
 * (fetch.c, bad_part.c), checksums (checksums.c), decompression (decode.c).
 */
#ifndef BW_DATA_FETCH_H
#define BW_DATA_FETCH_H

#include "btrfs-walk/xlator.h"
#include "data/reader.h"

enum {
    BW_DATA_REQUEST = 64 << 10, /**< bytes of a request at most; its address is in one such range */
};

struct bw_data_fetch;

struct bw_error *bw_data_fetch_create(struct bw_fs *fs, struct bw_data_fetch **result);
void bw_data_fetch_destroy(struct bw_data_fetch *fetch);

/**
 * Adds a piece of a file that has data to a block, as parts whose bytes are read later: until
 * bw_data_fetch_finish(), parts may only be added to the block. There must be room for the piece.
 * Fails only if memory runs out.
 */
struct bw_error *bw_data_fetch_add(struct bw_data_fetch *fetch, const struct bw_data_file *file,
                                   const struct bw_extent_piece *piece,
                                   struct bw_data_block *block);

/** Reads the bytes. Fails only if memory runs out. */
struct bw_error *bw_data_fetch_finish(struct bw_data_fetch *fetch, struct bw_data_block *block);

/** Forgets what was added. */
void bw_data_fetch_drop(struct bw_data_fetch *fetch);

/* Parts that turn out to be bad, or doubtful (bad_part.c). */

/** Adds to an error the file and the offset in it that it is about; takes and returns it. */
struct bw_error *bw_data_name_error(struct bw_error *error, const struct bw_data_file *file,
                                    uint64_t offset) __attribute__((returns_nonnull));

/** Turns part `at` of a block, which is of `file`, into a bad one; takes the error. */
void bw_data_spoil_part(struct bw_data_block *block, size_t at, const struct bw_data_file *file,
                        struct bw_error *error);

/**
 * Handles the failed request for part `at` of a block, which is of `file`: reads it again sector by
 * sector, if that makes sense, and replaces the part by one for each sector. Takes the request's
 * error. Fails only if memory runs out.
 */
struct bw_error *bw_data_divide_part(struct bw_fs *fs, struct bw_request *failed,
                                     struct bw_data_block *block, size_t at,
                                     const struct bw_data_file *file);

/**
 * To be called for every request for data of `file` that was answered: warns, once a file, of bytes
 * that were computed from parity and that no checksum confirms. They are wrong if the parity is, as
 * it may be after a crash, or after a device was replaced.
 */
void bw_data_check_rebuilt(struct bw_fs *fs, const struct bw_data_file *file,
                           const struct bw_request *request);

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

/** What is known of a range. */
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

/* Decompression (decode.c). */

struct bw_data_decoder;

struct bw_error *bw_data_decoder_create(struct bw_fs *fs, struct bw_data_decoder **result);
/** Frees it; NULL is allowed. */
void bw_data_decoder_destroy(struct bw_data_decoder *decoder);

/** Copies a part of a compressed extent from the extent that was decoded last and kept; false if
 * that is another one. */
bool bw_data_decoded(const struct bw_data_decoder *decoder, const struct bw_data_file *file,
                     const struct bw_extent *extent, uint8_t *output);

/** Decodes a part of an extent from the bytes of the whole extent as they are stored. */
struct bw_error *bw_data_decode(struct bw_data_decoder *decoder, const struct bw_data_file *file,
                                const struct bw_extent_piece *piece, const uint8_t *stored,
                                uint8_t *output);

#endif
