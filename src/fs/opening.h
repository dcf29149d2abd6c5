/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The steps of opening a file system, in order. src/open.c composes them. */
#ifndef BW_FS_OPENING_H
#define BW_FS_OPENING_H

#include "base/vector.h"
#include "btrfs-walk/graph.h"
#include "fs/image.h"
#include "ondisk/superblock.h"

struct bw_chunk;

/** The steps to run. */
struct bw_opening {
    /** Runs after the images were matched; NULL: only the images are opened. */
    struct bw_error *(*steps)(struct bw_fs *fs, struct bw_image_set *set);
    /** See struct bw_fs. If set, the steps also replace lost trees and superblocks. */
    struct bw_error *(*reopen)(const struct bw_fs_options *options, struct bw_fs **fs);
    /** Replaces the images; NULL: none. Must outlive the file system. */
    const struct bw_image_source *source;
    const struct bw_table_visit *tables; /**< NULL unless only partition tables are read */
    bool lists_devices;                  /**< see struct bw_fs */
};

/** Opens the images, like bw_fs_open(), and runs the steps. (open.c) */
struct bw_error *bw_opening_run(const struct bw_fs_options *options,
                                const struct bw_opening *opening, struct bw_fs **fs);

/** Opens images from paths or a volfile and reads their superblocks: plans the graph and starts the
 * layers below the chunk map. (build_graph.c) */
struct bw_error *bw_build_lower_graph(struct bw_fs *fs, const struct bw_fs_options *options,
                                      struct bw_image_set *set);

/** The number of a child of a layer. */
size_t bw_child_number(const struct bw_xlator *layer, const struct bw_xlator *child);

/** Puts layout/patch above the devices for which bw_fs_options.patches has changed ranges, as far
 * as their layers exist, and starts the layers below the chunk map. */
struct bw_error *bw_place_patches(struct bw_graph *graph, struct bw_xlator *map);

/** Completes the graph above the devices of one file system: matches the images, starts the
 * remaining layers, and sets fs->reader, fs->superblock and fs->images. No tree is read yet. */
struct bw_error *bw_build_upper_graph(struct bw_fs *fs, struct bw_image_set *set);

/** Sends the device ids of newly identified children to the chunk map. */
struct bw_error *bw_announce_devices(const struct bw_fs *fs, struct bw_image *images, size_t count);

/** Whether any image without a superblock may turn out to be a device. */
bool bw_has_unclaimed(const struct bw_fs *fs);

/** Gets the system chunk at `*position` of the superblock, from 0 on, and advances it; `*found` is
 * false at the end. (bootstrap.c) */
struct bw_error *bw_system_chunk_next(const struct bw_superblock *superblock, size_t *position,
                                      struct bw_chunk *chunk, bool *found);

/** Adds the chunks of the superblock to the chunk map. */
struct bw_error *bw_bootstrap_system_chunks(struct bw_fs *fs);

/** Handling of devices while the chunk tree is scanned. */
enum bw_bootstrap_devices {
    BW_DEVICES_IGNORED,
    BW_DEVICES_FOUND,   /**< mark the images of known devices */
    BW_DEVICES_MISSING, /**< also report devices without an image as missing */
};

/** Adds the chunks of fs->chunk_tree to the chunk map. Reports lost blocks. */
struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs, enum bw_bootstrap_devices devices);

/** Reports images of devices that the chunk tree does not contain. */
void bw_bootstrap_report_unknown(struct bw_fs *fs);

/** Ends the identification of images: reports the images that are not devices, and the missing
 * devices, unless that was done before. */
void bw_bootstrap_end(struct bw_fs *fs);

/** Fills the remap layer, if the file system has one. */
struct bw_error *bw_bootstrap_remap(struct bw_fs *fs);

/** Describes a chunk. The caller frees the stripes. */
struct bw_error *bw_chunk_describe(const struct bw_chunk *chunk, struct bw_chunk_info *info);

/** Corrects the uuids of stripes that differ in one bit from that of the image. */
void bw_chunk_correct_uuids(struct bw_fs *fs, struct bw_chunk_info *info);

/** The trees whose roots are in the superblock. */
enum bw_super_root { BW_SUPER_CHUNK_ROOT, BW_SUPER_TREE_ROOT };

/** Checks that the choice selects at most one generation, and a possible one. (root_blocks.c) */
struct bw_error *bw_generation_choice_check(const struct bw_generation_choice *choice);

/** The backup root that fs->choice selects, or NULL. */
const struct bw_backup_root *bw_chosen_backup(const struct bw_fs *fs);

/** Copies a root from a backup. BW_ERROR_NOT_FOUND if it is invalid. */
struct bw_error *bw_backup_root(const struct bw_root_pointer *given, struct bw_root_pointer *root);

/** Makes a root from an address that the user has given, for tree `owner`. BW_ERROR_NOT_FOUND if
 * the block at the address belongs to another tree, or does not have `generation` (0: any). */
struct bw_error *bw_named_root(struct bw_fs *fs, uint64_t owner, uint64_t bytenr,
                               uint64_t generation, struct bw_root_pointer *root);

/** Reads the root block of the chunk tree or root tree; the error explains why it cannot be used.
 * (root_blocks.c) */
struct bw_error *bw_root_verify(const struct bw_fs *fs, const struct bw_tree *tree);

/** Selects the newest readable backup of this root that is not older than generation `since`, and
 * reports it together with `why`. Consumes `why`; returns it if there is no such backup. */
struct bw_error *bw_root_fall_back(struct bw_fs *fs, enum bw_super_root which, uint64_t since,
                                   struct bw_tree *tree, struct bw_error *why);

/** Connects the chunk map to the raid stripe tree, which it searches for the location of data, if
 * the file system has that feature. Call it after the root tree was read. (stripe_tree.c) */
struct bw_error *bw_stripe_tree_attach(struct bw_fs *fs);

/** Frees the connection; `stripes` may be NULL. Nothing may be read afterwards. */
void bw_stripe_tree_destroy(struct bw_stripe_tree *stripes);

/*
 * Images that contain devices in other formats: the layers that show these devices are found and
 * stacked before any superblock is read. (stack.c)
 */

/** A container that could not be opened. */
struct bw_stack_failure {
    struct bw_xlator *device; /**< the container, a child of the chunk map */
    struct bw_error *why;
};

BW_VECTOR(bw_stack_failures, struct bw_stack_failure);

/** The arguments of bw_stack_build(), and what it has found. */
struct bw_stack {
    struct bw_fs *fs;
    struct bw_xlator *map;
    const struct bw_fs_options *options;
    bool used_partition;      /**< bw_fs_options.partition was used to select a container */
    struct bw_error *skipped; /**< why a volume beside others cannot be shown; NULL: none */
    struct bw_stack_failures failures;
};

/**
 * Replaces each child of `map` that is a container by the devices in it, until there are no more
 * containers. Volumes without a btrfs are dropped if another volume has one. Leaves disks to
 * fs/disk.c if a partition contains a btrfs directly. BW_ERROR_AMBIGUOUS if volumes contain
 * different file systems and the options select none. Containers that cannot be opened remain, with
 * a failure.
 */
struct bw_error *bw_stack_build(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_stack *stack);

/** Takes the error of a container out of the stack; NULL if the device has none. */
struct bw_error *bw_stack_take_failure(struct bw_stack *stack, const struct bw_xlator *device);

void bw_stack_free(struct bw_stack *stack);

/** The titles of the layers from an image to a device, such as "GPT partition 3 > LUKS2"; NULL if
 * no layer has one. Freed by the caller. */
struct bw_error *bw_stack_title(struct bw_xlator *device, char **title);

/*
 * Superblocks of zoned devices, where no block can be overwritten: each copy is a log in two zones;
 * when one zone is full, the other is emptied. The newest entry is valid. The length of zones is
 * not stored in an image, so the entry must be searched for. (superblock_log.c)
 */

/** The log to search. */
struct bw_superblock_log {
    struct bw_xlator *storage;
    unsigned copy; /**< 0 to 2 */
    /** A good superblock at its offset on devices without zones: an old entry of the log. May be
     * NULL. */
    const struct bw_superblock *known;
};

/** An entry in the log. */
struct bw_superblock_entry {
    uint64_t offset;
    uint64_t newer_bad; /**< offset of a newer, bad entry; 0: none is known */
};

/** Finds the newest good entry; without `known`, returns a bad one if there is no good one. False
 * if there is no log. */
bool bw_superblock_log_find(const struct bw_superblock_log *log, struct bw_superblock_entry *entry);

#endif
