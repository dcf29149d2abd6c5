/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of one extent, or of the data of an inline extent, from memory to memory. Nothing
 * is known of files here: file_extent.h says how long an extent is and how it is compressed.
 *
 * Sources: the "Compression" chapter of the btrfs documentation, and the kernel's
 * fs/btrfs/compression.h for the numbers and limits. The streams are:
 *
 * - zlib: RFC 1950. The header is checked, but not the sum at the end, which the kernel ignores as
 *   well: the checksum tree covers the stored bytes. Any encoder may have written the stream.
 * - LZO: a little-endian u32 with the length of everything, itself included; then segments, each a
 *   u32 length and LZO1X data for one sector of output. The length of a segment never crosses a
 *   sector boundary of the stream: where fewer than four bytes are left, they are skipped.
 * - zstd: RFC 8878, the first frame. The kernel writes windows of at most 128 KiB (kernel header
 *   btrfs.h, encoded I/O), but reads larger ones, which programs may have handed to it; so do we.
 */
#ifndef BW_FORMAT_COMPRESSION_H
#define BW_FORMAT_COMPRESSION_H

#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "format/disk.h"

/**
 * What decompressing needs besides input and output. Made once a worker, so that an extent costs no
 * allocation; one thread at a time may use it.
 */
struct bw_decompressor;

/** Makes a decompressor for file systems of this sector size, as the superblock has it. */
struct bw_error *bw_decompressor_create(uint32_t sectorsize, struct bw_decompressor **result);

/** Frees a decompressor; NULL is allowed. */
void bw_decompressor_destroy(struct bw_decompressor *decompressor);

/**
 * Fills `output`, as long as the extent says it is (ram_bytes), from `input`, the bytes as they are
 * stored, padding included. Like the kernel, ends without an error when the output is full,
 * whatever the stream has left, and fills with zeros what a complete stream leaves free.
 * BW_ERROR_CORRUPT, with the algorithm and the reason, for a stream that is cut off or invalid, and
 * for lengths no extent can have; the output holds nothing of use then. BW_ERROR_UNSUPPORTED for a
 * `compression` that is not known.
 */
struct bw_error *bw_decompress(struct bw_decompressor *decompressor, unsigned compression,
                               const uint8_t *input, size_t input_length, uint8_t *output,
                               size_t output_length);

#endif
