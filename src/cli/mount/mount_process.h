/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that mounts and unmounts. The one that reads the image is confined, and can do
 * neither; this one reads nothing but words of the other, and unmounts even if that one crashes.
 */
#ifndef BW_CLI_MOUNT_KEEPER_H
#define BW_CLI_MOUNT_KEEPER_H

#include "btrfs-walk/error.h"

/** Starts it, for a directory and the options of the mount ("ro,fsname=..."): before the process is
 * confined and before it has threads. `*channel` is the descriptor by which they talk. */
struct bw_error *mount_process_start(const char *directory, const char *options, int *channel);

/** Has it mount; the caller owns the descriptor of /dev/fuse. */
struct bw_error *mount_process_mount(int channel, const char *directory, int *descriptor);

/** Has it unmount, and waits for that. When this process ends it does so by itself. */
void mount_process_end(int channel);

#endif
