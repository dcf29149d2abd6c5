/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images that were split into parts: disk.img.001 and so on. A name that looks like that of a first
 * part is not enough, since devices of one file system may be called so, too. Only if the first
 * part is too short for what it begins, or does not begin a btrfs, the others are joined to it.
 */
#ifndef BW_FS_SPLIT_H
#define BW_FS_SPLIT_H

#include "fs/fs.h"

/** Adds the files that may be further parts of an image to those that are read. */
struct bw_error *bw_split_inputs(const char *path, struct bw_file_set *inputs);

/** Puts layout/concat above each storage layer of the graph whose image is a first part, and
 * reports that as a note. Parts that were given as images of their own are taken from the layer
 * `map`. BW_ERROR_USAGE if a part is missing between others. */
struct bw_error *bw_splits_join(struct bw_fs *fs, struct bw_xlator *map);

#endif
