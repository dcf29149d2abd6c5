/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of devices without their free space, as raw images with holes or as qcow2. */
#ifndef BW_EXPORT_DEVICE_COPY_H
#define BW_EXPORT_DEVICE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/space.h"

/** Where the image of a device is written. */
struct bw_device_image {
    /** Writes bytes at an offset of the image file. */
    struct bw_error *(*write)(void *context, uint64_t offset, const void *bytes, size_t length);
    void *context;
    uint64_t kept;   /**< raw: everything before this offset is in the file already */
    bool is_qcow2;   /**< otherwise raw: each byte is written at its own offset */
    bool compressed; /**< with `is_qcow2`: clusters are compressed with zstd */
};

BW_VECTOR(bw_device_ranges, struct bw_address_range);

/** The devices of a file system, and the space to copy. Only one thread at a time may use it. */
struct bw_device_copy;

/** Finds the space in use. `copied` is called with the number of bytes of each piece that was
 * copied. The file system must outlive the copy. */
struct bw_error *bw_device_copy_open(struct bw_fs *fs, void (*copied)(uint64_t bytes),
                                     struct bw_device_copy **result);

/** Searches older generations, and adds the space that they use. `how`: how the file system was
 * opened. `searched` is called repeatedly; false ends the search. */
struct bw_error *
bw_device_copy_add_history(struct bw_device_copy *copy, const struct bw_fs_options *how,
                           bool (*searched)(void *context, uint64_t done, uint64_t total));

/** Opens the device to copy next, and counts its bytes in use. */
struct bw_error *bw_device_copy_begin(struct bw_device_copy *copy,
                                      const struct bw_device_info *device, uint64_t *bytes);

/** Writes the bytes in use of this device, in whole sectors. Sectors that cannot be read become
 * zeros. */
struct bw_error *bw_device_copy_write(struct bw_device_copy *copy,
                                      const struct bw_device_image *image);

/** The unreadable ranges of this device, ascending; valid until the next device begins. */
const struct bw_device_ranges *bw_device_copy_bad(const struct bw_device_copy *copy);

/** Frees it; NULL is allowed. */
void bw_device_copy_close(struct bw_device_copy *copy);

#endif
