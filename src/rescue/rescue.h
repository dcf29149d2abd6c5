/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replacements for lost superblocks, devices, chunk trees and root trees, rebuilt from tree blocks
 * found on the devices. src/open.c calls these functions while it opens a file system. The rebuilt
 * trees are in memory (btree/memory.h); readers use them like trees of the image. Each function
 * reports what it has reconstructed. */
#ifndef BW_RESCUE_RESCUE_H
#define BW_RESCUE_RESCUE_H

#include "btree/edit.h"
#include "fs/image.h"

/** Without bw_fs_options.scan, a search reads at most this number of bytes. */
#define BW_RESCUE_LIMIT (UINT64_C(64) << 30)

/** If no image has a valid superblock and fs->scan is set, makes superblocks for the images.
 * (superblocks.c) */
struct bw_error *bw_rescue_superblocks(struct bw_fs *fs, struct bw_image_set *set);

/** Lists the file systems whose tree blocks are on the images in fs->found. Reads the whole
 * devices. (superblocks.c) */
struct bw_error *bw_rescue_find_all(struct bw_fs *fs, struct bw_image_set *set);

/** The same; and reports those without a superblock, each with the option that opens it. */
struct bw_error *bw_rescue_report_others(struct bw_fs *fs, struct bw_image_set *set);

/** If images are unclaimed, identifies them as missing devices by the chunks and checksums that can
 * be read so far. (missing_devices.c) */
struct bw_error *bw_rescue_devices(struct bw_fs *fs);

/** If the chunk tree cannot be read completely, sets fs->chunk_tree. Consumes `why`; returns it if
 * nothing was set. (chunk_tree.c) */
struct bw_error *bw_rescue_chunk_tree(struct bw_fs *fs, struct bw_error *why);

/** If the current root of the root tree cannot be read, sets fs->root_tree. Consumes `why`; returns
 * it if nothing was set. (root_tree.c) */
struct bw_error *bw_rescue_root_tree(struct bw_fs *fs, struct bw_error *why);

/** Begins a tree in memory, which replaces a lost one. */
struct bw_error *bw_rescue_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor);

/** The result of a search that ended with `error`. Consumes that and `why`, the error of the loss,
 * unless the search was successful and has reported it. */
struct bw_error *bw_rescue_end(struct bw_error *error, struct bw_error *why);

#endif
