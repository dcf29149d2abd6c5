/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of one extent, or of the data of an inline extent, from memory to memory. The
 * length of an extent and its compression are in its item (items.h).
 *
 * Sources: the "Compression" chapter of the btrfs documentation, and the kernel's
 * fs/btrfs/compression.h for the numbers and limits. The streams are:
 *
 * - zlib: RFC 1950. The header is checked, but not the sum at the end, which the kernel ignores as
 *   well: the checksum tree covers the stored bytes. Any encoder may have written the stream.
 * - LZO: a little-endian u32 with the length of everything, itself included; then segments, each a
 *   u32 length and LZO1X data for one sector of output. The length of a segment never crosses a
 *   sector boundary of the stream: where fewer than four bytes are left, they are skipped. Inline
 *   data are one segment without padding.
 * - zstd: RFC 8878, the first frame. The kernel writes windows of at most 128 KiB (kernel header
 *   btrfs.h, encoded I/O), but reads larger ones, which programs may have handed to it; so do we.
 */
#ifndef BW_ONDISK_COMPRESSION_H
#define BW_ONDISK_COMPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "ondisk/disk.h"

/**
 * The state that decompression needs. Each worker creates one, so that an extent costs no
 * allocation. One thread at a time may use it.
 */
struct bw_decompressor;

/** Makes a decompressor for file systems of this sector size, as a valid superblock has it. */
struct bw_error *bw_decompressor_create(uint32_t sectorsize, struct bw_decompressor **result);

/** Frees a decompressor; NULL is allowed. */
void bw_decompressor_destroy(struct bw_decompressor *decompressor);

/**
 * Decompresses `input`, the stored bytes including padding, into `output`, which has the decoded
 * length of the extent (ram_bytes). As in the kernel, it is no error if the stream holds more
 * than fits into the output, and if a complete stream holds less, the rest is filled with zeros,
 * unless the data are inline in a tree block. Stored extents are whole sectors, but those of send
 * streams, which end anywhere: the kernel pads them when it receives them.
 *
 * BW_ERROR_CORRUPT, naming the algorithm and the reason, if the stream is cut off or invalid, or a
 * length is more than an extent can have; `output` is undefined then. BW_ERROR_UNSUPPORTED if the
 * compression is unknown.
 */
struct bw_error *bw_decompress(struct bw_decompressor *decompressor, unsigned compression,
                               bool is_inline, const uint8_t *input, size_t input_length,
                               uint8_t *output, size_t output_length);

#endif
