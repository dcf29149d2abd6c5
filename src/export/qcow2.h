/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images of virtual disks in the format qcow2, version 3, written in one pass. */
#ifndef BW_EXPORT_QCOW2_H
#define BW_EXPORT_QCOW2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

/** Writes bytes at an offset of the file. */
typedef struct bw_error *bw_qcow2_writer(void *context, uint64_t offset, const void *bytes,
                                         size_t length);

struct bw_qcow2;

enum { BW_QCOW2_CLUSTER = 1 << 16 };

/** Begins an image of a disk with `size` bytes, in an empty file. `compressed`: clusters are
 * compressed with zstd, which takes QEMU 5.1 or newer to read. */
struct bw_error *bw_qcow2_create(uint64_t size, bool compressed, bw_qcow2_writer *write,
                                 void *context, struct bw_qcow2 **result);

/** Makes the image an overlay of another one, in the format "raw" or "qcow2": ranges that are never
 * added read as the bytes of this backing file, in clusters of BW_QCOW2_CLUSTER bytes, which
 * therefore must be added whole. The name (at most 1023 bytes) is relative to the folder of the
 * overlay; it must outlive it. */
struct bw_error *bw_qcow2_set_backing(struct bw_qcow2 *image, const char *name, const char *format);

/** Adds bytes of the disk, by ascending offset. Those never added read as zeros. */
struct bw_error *bw_qcow2_add(struct bw_qcow2 *image, uint64_t offset, const void *bytes,
                              size_t length);

/** Writes the rest. */
struct bw_error *bw_qcow2_end(struct bw_qcow2 *image);

/** Frees it; NULL is allowed. */
void bw_qcow2_destroy(struct bw_qcow2 *image);

#endif
