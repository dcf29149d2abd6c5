/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that mounts and unmounts. The process that reads the image is confined and can do
 * neither. This process reads only messages from the other one, and unmounts even if that crashes.
 */
#ifndef BW_CLI_MOUNT_MOUNT_PROCESS_H
#define BW_CLI_MOUNT_MOUNT_PROCESS_H

#include <stdbool.h>

#include "btrfs-walk/error.h"

/** Where to mount. */
struct mount_place {
    char *directory; /**< absolute */
    /** NULL: none. Otherwise the path of a socket: nbdkit serves the files of the mount there, and
     * the directory is removed at the end. The mount ends if nbdkit does. */
    char *socket;
    char *nbdkit; /**< its path */
};

/** Starts the process, before the caller is confined and has threads. `options` are the mount
 * options ("ro,fsname=..."). `*channel` is the socket to the process. */
struct bw_error *mount_process_start(const struct mount_place *place, const char *options,
                                     int *channel);

/** Makes the process mount; the caller owns the descriptor of /dev/fuse. nbdkit serves the file
 * named by the number `first` to clients that do not choose one. */
struct bw_error *mount_process_mount(int channel, const char *directory, uint64_t first,
                                     int *descriptor);

/** Makes the process unmount, and waits for it. It also unmounts if the caller ends. False if
 * nbdkit had ended before. */
bool mount_process_end(int channel);

#endif
