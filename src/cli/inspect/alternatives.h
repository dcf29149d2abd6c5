/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The further images of a device that --alternatives reads. */
#ifndef BW_CLI_INSPECT_ALTERNATIVES_H
#define BW_CLI_INSPECT_ALTERNATIVES_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/record.h"

/** Room for the paths of images; further ones are not listed. */
struct alternative_paths {
    struct bw_bytes names[32];
};

/** The paths of all images of a device but the first; the result points into `paths`. No data:
 * there is only one image. */
struct bw_names alternative_paths_of(const struct bw_fs *fs, uint64_t devid,
                                     struct alternative_paths *paths);

#endif
