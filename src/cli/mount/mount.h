/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mount command: common declarations of its files. mount.c is the command, mount_run.c opens
 * the image and serves the kernel, and mount_process.c mounts and unmounts.
 */
#ifndef BW_CLI_MOUNT_MOUNT_H
#define BW_CLI_MOUNT_MOUNT_H

#include "cli/command.h"
#include "mount/mount.h"

/** A running mount command. */
struct mount {
    /* The options. */
    const char *subvolume; /**< NULL: the top-level one */
    bool background, devices;
    struct bw_mount_options how; /**< mount_run() chooses the contents */

    /* While it runs. */
    const struct cmd_common *common;
    const char *directory; /**< where to mount; absolute */
    int channel;           /**< to the process that mounts; -1: it was not started */
    int ready;             /**< with --background: socket to the first process, which waits for the
                            * mount; otherwise -1 */
    int nowhere;           /**< with --background: the null device */
};

/** Mounts on the directory that is the only path, and serves the mount until it is unmounted or a
 * signal arrives; with `background`, in another process. Returns the exit status. */
int mount_run(const struct cmd_common *common, struct mount *mount);

/* The process that mounts and unmounts. The process that reads the image is confined and can do
 * neither. This process reads only messages from the other one, and unmounts even if that
 * crashes. */

/** Starts the process, before the caller is confined and has threads. `directory` is absolute;
 * `options` are the mount options ("ro,fsname=..."). `*channel` is the socket to the process. */
struct bw_error *mount_process_start(const char *directory, const char *options, int *channel);

/** Makes the process mount; the caller owns the descriptor of /dev/fuse. */
struct bw_error *mount_process_mount(int channel, const char *directory, int *descriptor);

/** Makes the process unmount, and waits for it. It also unmounts if the caller ends. */
void mount_process_end(int channel);

#endif
