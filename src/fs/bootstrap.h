/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bootstrap of the address map: the chunk tree is read through the map that it fills. Seed the
 * map from the superblock's system chunks, walk the chunk tree, add what it holds; then, with the
 * remap-tree feature, the same for the ranges that relocation has moved.
 */
#ifndef BW_FS_BOOTSTRAP_H
#define BW_FS_BOOTSTRAP_H

#include "fs/image.h"

/** Fills the chunk map; reports missing devices and lost parts of the chunk tree. */
struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs, const struct bw_image_set *set);

/** Fills the remap layer, if the file system has one. */
struct bw_error *bw_bootstrap_remap(struct bw_fs *fs);

#endif
