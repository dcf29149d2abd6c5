/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first half of opening: from paths, or a volfile, to a graph of layers that stands above the
 * devices of one file system. No tree is read yet.
 */
#ifndef BW_FS_WIRE_H
#define BW_FS_WIRE_H

#include "fs/image.h"

/** Plans the graph, makes it, matches the images, and sets fs->reader and fs->superblock. */
struct bw_error *bw_wire(struct bw_fs *fs, const struct bw_fs_options *options,
                         struct bw_image_set *set);

#endif
