/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decompression of one extent, or of the data of an inline extent, from memory to memory. Knows
 * nothing of files: file_extent.h says how long an extent is and how it is compressed.
 *
 * Sources: the "Compression" chapter of the btrfs documentation and the kernel's
 * fs/btrfs/compression.h for the numbers and limits. The streams themselves:
 *
 *   zlib  RFC 1950. Only its header is checked, not the sum at its end: the kernel skips that too,
 * since the checksum tree covers the stored bytes. Any encoder may have written it, in software or
 * in hardware. LZO   Little-endian: u32 length of all that follows and of itself; then segments,
 * each u32 length and LZO1X data for one sector of output. A segment's length never crosses a
 * sector of the stream: where fewer than four bytes are left, they are skipped. zstd  RFC 8878, the
 * first frame. Windows are promised to be of at most 128 KiB (kernel header btrfs.h, encoded I/O);
 * the kernel reads larger ones, which programs could have handed it, and so does this.
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
