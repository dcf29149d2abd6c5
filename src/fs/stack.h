/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images that contain devices in other formats: the layers that show these devices are found and
 * stacked before any superblock is read. */
#ifndef BW_FS_STACK_H
#define BW_FS_STACK_H

#include "base/vector.h"
#include "fs/fs.h"

/** A container that could not be opened. */
struct bw_stack_failure {
    struct bw_xlator *device; /**< the container, a child of the chunk map */
    struct bw_error *why;
};

BW_VECTOR(bw_stack_failures, struct bw_stack_failure);

struct bw_stack {
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

#endif
