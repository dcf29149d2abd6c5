/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of opening a file system, in their order. src/open.c composes them. */
#ifndef BW_FS_OPENING_H
#define BW_FS_OPENING_H

#include "fs/image.h"

struct bw_chunk;

/** How far a file system is opened, and how. */
struct bw_opening {
    /** Runs once the images were found; NULL: no more is opened. */
    struct bw_error *(*steps)(struct bw_fs *fs, struct bw_image_set *set);
    /** See struct bw_fs. If it is not NULL, the steps also replace lost trees and superblocks. */
    struct bw_error *(*reopen)(const struct bw_fs_options *options, struct bw_fs **fs);
    const struct bw_table_visit *tables; /**< NULL: a file system is to be opened */
};

/** Opens the images, as bw_fs_open(), and runs the steps. (open.c) */
struct bw_error *bw_opening_run(const struct bw_fs_options *options,
                                const struct bw_opening *opening, struct bw_fs **fs);

/** Opens images from paths or a volfile and reads their superblocks: plans the graph and starts the
 * layers below the chunk map. (wire.c) */
struct bw_error *bw_wire_images(struct bw_fs *fs, const struct bw_fs_options *options,
                                struct bw_image_set *set);

/** Completes the graph above the devices of one file system: matches the images, starts the
 * remaining layers, and sets fs->reader, fs->superblock and fs->images. No tree is read yet. */
struct bw_error *bw_wire_graph(struct bw_fs *fs, struct bw_image_set *set);

/** Gives the chunk map the device ids of its children that were identified since the last call. */
struct bw_error *bw_wire_devices(const struct bw_fs *fs, struct bw_image *images, size_t count);

/** Whether any image has no superblock, but may turn out to be a device. */
bool bw_has_unclaimed(const struct bw_fs *fs);

/** Adds the chunks of the superblock to the chunk map. (bootstrap.c) */
struct bw_error *bw_bootstrap_system_chunks(struct bw_fs *fs);

/** Records about devices, made while the chunk tree is scanned. */
enum bw_bootstrap_devices {
    BW_DEVICES_IGNORED,
    BW_DEVICES_FOUND,   /**< which images the chunk tree knows */
    BW_DEVICES_MISSING, /**< that, and devices without an image are reported as missing */
};

/** Adds the chunks of fs->chunk_tree to the chunk map. Reports lost blocks. */
struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs, enum bw_bootstrap_devices devices);

/** Reports images that the chunk tree does not know. */
void bw_bootstrap_report_unknown(struct bw_fs *fs);

/** No image will turn out to be a device any more: reports those that are none, and the devices
 * that are missing, unless that was done. */
void bw_bootstrap_end(struct bw_fs *fs);

/** Fills the remap layer, if the file system has one. */
struct bw_error *bw_bootstrap_remap(struct bw_fs *fs);

/** Describes a chunk. The caller frees the stripes. */
struct bw_error *bw_chunk_describe(const struct bw_chunk *chunk, struct bw_chunk_info *info);

/** Which of the trees that only the superblock knows. */
enum bw_super_root { BW_SUPER_CHUNK_ROOT, BW_SUPER_TREE_ROOT };

/** Refuses a choice of several generations at once, and an impossible one. (root_blocks.c) */
struct bw_error *bw_state_choice_check(const struct bw_state_choice *choice);

/** The backup root that fs->choice leads to; NULL if it leads elsewhere. */
const struct bw_backup_root *bw_chosen_backup(const struct bw_fs *fs);

/** The root that a backup names. BW_ERROR_NOT_FOUND if that cannot be one. */
struct bw_error *bw_backup_root(const struct bw_root_pointer *given, struct bw_root_pointer *root);

/** The root at an address that the caller has given, of the tree `owner`. BW_ERROR_NOT_FOUND if the
 * block there belongs to another tree, or does not have `generation` (0: any). */
struct bw_error *bw_named_root(struct bw_fs *fs, uint64_t owner, uint64_t bytenr,
                               uint64_t generation, struct bw_root_pointer *root);

/** Reads the root block of the chunk tree or root tree; the error says why it cannot be used.
 * (root_blocks.c) */
struct bw_error *bw_root_try(const struct bw_fs *fs, const struct bw_tree *tree);

/** Sets the newest backup of this root that can be read and is not older than generation `since`,
 * and reports that with `why`. Consumes `why`; returns it if no backup qualifies. */
struct bw_error *bw_root_fall_back(struct bw_fs *fs, enum bw_super_root which, uint64_t since,
                                   struct bw_tree *tree, struct bw_error *why);

/** Lets the chunk map of the graph look up where data lie in the raid stripe tree, if the file
 * system has that feature; after the root tree was read. (stripe_tree.c) */
struct bw_error *bw_stripe_tree_attach(struct bw_fs *fs);

/** Frees it; NULL is allowed. Nothing may be read any more. */
void bw_stripe_tree_destroy(struct bw_stripe_tree *stripes);

#endif
