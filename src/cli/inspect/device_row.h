/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of devices, for `devices` and `info`. */
#ifndef BW_CLI_INSPECT_DEVICE_ROW_H
#define BW_CLI_INSPECT_DEVICE_ROW_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/records.h"

/** Room for the paths of the further images of a device, which --alternatives reads; those for
 * which there is no room are not listed. */
struct alternative_paths {
    struct bw_bytes names[32];
};

/** The words for what lies on a range of a device, by enum bw_device_use. */
extern const char *const device_use_words[];

/** The row of a device. It points into `device` and `paths`. The members `generation`, `partition`,
 * `incomplete_chunks` and `side` are absent. */
struct bw_deviceinfo device_row(const struct bw_fs *fs, const struct bw_device_info *device,
                                struct alternative_paths *paths);

#endif
