/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file system that serves FUSE requests of the kernel. Because nothing ever changes, the kernel
 * may cache all replies. This program keeps no state about them: the kernel's number of a file
 * identifies it (nodes.c).
 *
 * kernel --> session.c --> operations.c   names, attributes
 *                      --> directories.c  directories
 *                      --> contents.c     data of files --> read_windows.c   read ahead
 *                      --> device_files.c all of them, if devices are shown instead of files
 */
#ifndef BW_MOUNT_MOUNT_H
#define BW_MOUNT_MOUNT_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/space.h"

struct bw_mount;

/** The contents of a mount, and their presentation. */
struct bw_mount_options {
    const struct bw_subvolume *top; /**< its top directory is the top of the mount */
    bool checks_permissions; /**< the kernel checks permissions, including access control lists, as
                              * on any mount; otherwise everything is accessible */
    bool squash_user, squash_group; /**< replace the owner or group of all files... */
    uint32_t user, group;           /**< ...with these */
    struct bw_used_map *used;       /**< only for a mount of devices */
};

/** Creates a mount, which the caller owns. `fs` must outlive it. */
struct bw_error *bw_mount_create(struct bw_fs *fs, const struct bw_mount_options *options,
                                 struct bw_mount **mount);

/** The same for a mount that shows no files of the file system, but each device as a file named by
 * its id, with holes where options->used has nothing in use. */
struct bw_error *bw_mount_create_devices(struct bw_fs *fs, const struct bw_mount_options *options,
                                         struct bw_mount **mount);

/** `mount` may be NULL. */
void bw_mount_destroy(struct bw_mount *mount);

/**
 * Serves the requests from a descriptor of /dev/fuse with several threads, until the file system is
 * unmounted or a signal (SIGHUP, SIGINT, SIGTERM) arrives. Owns the descriptor, and closes it at
 * the end. Damage makes the request fail and is reported. A process can serve only one mount at a
 * time. BW_ERROR_SYSTEM if requests cannot be read; BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_mount_serve(struct bw_mount *mount, int descriptor);

#endif
