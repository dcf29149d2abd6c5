/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of whole files, from their beginning to their end: zstd, gzip, and if the program
 * was built with their libraries, lz4 and xz. A file may consist of several frames.
 */
#ifndef BW_BASE_UNPACK_H
#define BW_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

struct bw_unpacker;

/** A format. */
struct bw_packing;

/** How many bytes of a file bw_packing_find() needs. */
enum { BW_PACKING_HEAD = 8 };

/** The format of a file that begins with these bytes; NULL: none that can be decompressed. */
const struct bw_packing *bw_packing_find(const uint8_t *bytes, size_t length);

/** Its name: "zstd". */
const char *bw_packing_name(const struct bw_packing *packing);

/** Bytes that bw_unpack() reads and writes. */
struct bw_unpacking {
    const uint8_t *input;
    size_t input_length; /**< reduced by the bytes used, and `input` moved past them */
    uint8_t *output;
    size_t output_length; /**< likewise */
};

/** Begins to decompress a file. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_unpacker_create(const struct bw_packing *packing, struct bw_unpacker **made);

void bw_unpacker_destroy(struct bw_unpacker *unpacker);

/** Decompresses until the output is full or the input is used up. BW_ERROR_CORRUPT: the data are
 * damaged; the output before is correct if the format has checksums.
 * BW_ERROR_UNSUPPORTED: they need more than 256 MiB of memory. */
struct bw_error *bw_unpack(struct bw_unpacker *unpacker, struct bw_unpacking *bytes);

/** Whether the input so far ends with the end of a frame, so that the file may end here. */
bool bw_unpacker_is_complete(const struct bw_unpacker *unpacker);

#endif
