/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of opening a file system (open.c), in their order. */
#ifndef BW_FS_OPENING_H
#define BW_FS_OPENING_H

#include "fs/image.h"

struct bw_chunk;
struct bw_disk_device_item;

/** From paths, or a volfile, to the images and their superblocks: plans the graph and starts what
 * is below the chunk map. (wire.c) */
struct bw_error *bw_wire_images(struct bw_fs *fs, const struct bw_fs_options *options,
                                struct bw_image_set *set);

/** Whether an image is a dump of btrfs-image, and shown as a device. (metadump.c) */
bool bw_image_is_dump(const struct bw_xlator *storage);

/** If an image that has no superblock is a dump, puts the layer above it that shows it as a device,
 * below the same place of the chunk map; image->bad is NULL then. */
struct bw_error *bw_image_show_dump(const struct bw_fs *fs, struct bw_xlator *map,
                                    struct bw_image *image);

/** From these to a graph of layers above the devices of one file system: matches the images, starts
 * the rest, and sets fs->reader and fs->superblock. No tree is read yet. */
struct bw_error *bw_wire_graph(struct bw_fs *fs, struct bw_image_set *set);

/** Tells the chunk map which devices its children are, as far as that is known and was not told. */
struct bw_error *bw_wire_devices(const struct bw_fs *fs, struct bw_image *images, size_t count);

/** Fills the chunk map; reports missing devices and lost parts of the chunk tree. (bootstrap.c) */
struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs);

/** Once checksums of data can be read: finds devices among the images that are still unclaimed. */
struct bw_error *bw_bootstrap_devices(struct bw_fs *fs);

/** No image will turn out to be a device any more: reports those that are none, and the devices
 * that are missing, unless that was done. */
void bw_bootstrap_end(struct bw_fs *fs);

/** Adds the chunks of fs->choice.chunk_root, a state that was found with the help of the present
 * ones. */
struct bw_error *bw_bootstrap_state(struct bw_fs *fs);

/** Fills the remap layer, if the file system has one. */
struct bw_error *bw_bootstrap_remap(struct bw_fs *fs);

/** What is known of a chunk. The stripes are the caller's to free. */
struct bw_error *bw_chunk_describe(const struct bw_chunk *chunk, struct bw_chunk_info *info);

/** Which of the trees that only the superblock knows. */
enum bw_super_root { BW_SUPER_CHUNK_ROOT, BW_SUPER_TREE_ROOT };

/** Refuses a choice of several states at once, and one that there cannot be. (state.c) */
struct bw_error *bw_state_choice_check(const struct bw_state_choice *choice);

/** The root of one of these trees in the state that was chosen; `root->bytenr` is 0 if that is the
 * present one. Sets fs->is_past with the root tree. BW_ERROR_NOT_FOUND if there is no such state.
 */
struct bw_error *bw_state_root(struct bw_fs *fs, enum bw_super_root which,
                               struct bw_root_pointer *root);

/**
 * Finds the chunk tree or root tree of the state that was chosen. Of the present state it is the
 * newest one whose root block can be read, or what the hooks put in its place, and that is said if
 * it is not the present one: the superblock names those of older transactions, too. The error is
 * that of the root that was wanted if there is none. (roots.c)
 */
struct bw_error *bw_find_super_root(struct bw_fs *fs, enum bw_super_root which,
                                    struct bw_tree *tree);

/** Lets the chunk map of the graph look up where data lie in the raid stripe tree, if the file
 * system has that feature; after the root tree was read. (stripe_tree.c) */
struct bw_error *bw_stripe_tree_attach(struct bw_fs *fs);

/** Frees it; NULL is allowed. Nothing may be read any more. */
void bw_stripe_tree_destroy(struct bw_stripe_tree *stripes);

#endif
