/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about block devices and mounts from /sys and /proc. They need no privileges; if they are
 * not available, the results are those for an unused plain device. */
#ifndef BW_BASE_BLOCK_DEVICE_H
#define BW_BASE_BLOCK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/** Reads the number of a device from a file like /sys/block/loop0/dev; false if that fails. */
bool bw_block_device_number(const char *number_file, dev_t *device);

/** Finds the file below a loop device; false if the device is not a loop device, or the file no
 * longer exists. */
bool bw_loop_file(dev_t device, struct stat *status);

/** Where a btrfs is mounted that has its bytes on a file or block device, from an offset on: on the
 * device itself, on a loop device over the file, or on the partition that begins there. Freed by
 * the caller; NULL if it is mounted nowhere. */
char *bw_mount_point(const char *path, uint64_t offset);

#endif
