/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that mounts and unmounts. The process that reads the image is confined and can do
 * neither. This process reads only messages from the other one, and unmounts even if that crashes.
 */
#ifndef BW_CLI_MOUNT_MOUNT_PROCESS_H
#define BW_CLI_MOUNT_MOUNT_PROCESS_H

#include "btrfs-walk/error.h"

/** Starts the process, before the caller is confined and has threads. `directory` is absolute;
 * `options` are the mount options ("ro,fsname=..."). `*channel` is the socket to the process. */
struct bw_error *mount_process_start(const char *directory, const char *options, int *channel);

/** Makes the process mount; the caller owns the descriptor of /dev/fuse. */
struct bw_error *mount_process_mount(int channel, const char *directory, int *descriptor);

/** Makes the process unmount, and waits for it. It also unmounts if the caller ends. */
void mount_process_end(int channel);

#endif
