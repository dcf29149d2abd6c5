/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mounting an image and serving the kernel, for `mount` and for commands that mount for others. */
#ifndef BW_CLI_MOUNT_MOUNTING_H
#define BW_CLI_MOUNT_MOUNTING_H

#include "cli/command.h"
#include "cli/mount/mount_process.h"
#include "mount/mount.h"

/** A mount that a command makes. */
struct mounting {
    const struct cmd_common *common;
    struct mount_place place;
    struct bw_mount_options options; /**< completed by `prepare` */

    /** Called when the file system is open: sets `options`. */
    struct bw_error *(*prepare)(struct mounting *mounting, struct bw_fs *fs);
    /** Called after mounting, before the first request is served. May be NULL. */
    void (*ready)(struct mounting *mounting);
    void *context; /**< of these functions */

    int channel; /**< initially -1 */
};

/** Opens the image, mounts it and serves the mount until it ends. Returns the exit status. Frees
 * `options.used`. */
int mounting_run(struct mounting *mounting);

#endif
