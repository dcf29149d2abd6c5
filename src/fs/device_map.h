/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private side of struct bw_device_map: device_map.c makes it, device_place.c looks into it. */
#ifndef BW_FS_DEVICE_MAP_H
#define BW_FS_DEVICE_MAP_H

#include "btrfs-walk/space.h"
#include "btrfs-walk/xlator.h"
#include "fs/fs.h"

struct bw_device_map {
    struct bw_fs *fs;
    struct bw_device_range *ranges; /* ascending by devid and offset */
    size_t count;
    struct bw_moved_range *moved; /* by the remap-tree feature; ascending by `to` */
    size_t moved_count, moved_capacity;
};

/** Reads what relocation has moved, if the file system has the remap-tree feature. */
struct bw_error *bw_device_map_read_moved(struct bw_device_map *map);

#endif
