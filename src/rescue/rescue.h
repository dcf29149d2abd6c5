/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replacements of lost superblocks, devices, chunk trees and root trees, rebuilt from tree blocks
 * found on the devices. src/open.c calls these functions while it opens a file system. The rebuilt
 * trees are in memory (btree/memory.h); readers use them like trees of the image. Each function
 * reports what it has reconstructed. */
#ifndef BW_RESCUE_RESCUE_H
#define BW_RESCUE_RESCUE_H

#include "btree/edit.h"
#include "fs/image.h"

/** Without bw_fs_options.scan, a search reads no more than this. */
#define BW_RESCUE_LIMIT (UINT64_C(64) << 30)

/** No image has a good superblock, and fs->scan is set: gives images one. (superblocks.c) */
struct bw_error *bw_rescue_superblocks(struct bw_fs *fs, struct bw_image_set *set);

/** Images are unclaimed: makes those devices that are proven to be missing ones, by the chunks and
 * checksums that can be read so far. (missing_devices.c) */
struct bw_error *bw_rescue_devices(struct bw_fs *fs);

/** Called if the chunk tree cannot be read completely: sets fs->chunk_tree. Consumes `why`, and
 * returns it if it sets nothing. (chunk_tree.c) */
struct bw_error *bw_rescue_chunk_tree(struct bw_fs *fs, struct bw_error *why);

/** The present root of the root tree cannot be read: sets fs->root_tree, likewise. (root_tree.c) */
struct bw_error *bw_rescue_root_tree(struct bw_fs *fs, struct bw_error *why);

/** Begins a tree in memory, which takes the place of a lost one. */
struct bw_error *bw_rescue_begin_tree(struct bw_fs *fs, uint64_t id, struct bw_tree_editor *editor);

/** The result of a search that ended with `error`: consumes that, and `why`, the error of the loss,
 * unless the search was a success and has reported it. */
struct bw_error *bw_rescue_end(struct bw_error *error, struct bw_error *why);

#endif
