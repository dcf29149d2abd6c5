/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mount command: common declarations of its files. mount.c is the command, mount_run.c opens
 * the image, mounts it and serves the kernel.
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

#endif
