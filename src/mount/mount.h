/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file system that answers the kernel's FUSE requests. Nothing ever changes, so that the kernel
 * may remember all that it was told, and this side remembers nothing of what it has told: the
 * number by which the kernel refers to a file says which one it is (mount.c).
 *
 *     kernel --> session.c --> operations.c   names, attributes
 *                          --> operations.c   directories
 *                          --> contents.c     data of files --> readahead.c   read ahead
 */
#ifndef BW_MOUNT_MOUNT_H
#define BW_MOUNT_MOUNT_H

#include "btrfs-walk/fs.h"

struct bw_mount;

/** What is shown, and how. */
struct bw_mount_options {
    const struct bw_subvolume *top; /**< whose top directory is the top of the mount */
    bool checks_permissions; /**< the kernel decides who may read what, as on any mount, lists
                                  for access control included; otherwise nobody does */
    bool squash_user, squash_group; /**< show all files as those of... */
    uint32_t user, group;           /**< ...these */
};

/** Makes one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_mount_create(struct bw_fs *fs, const struct bw_mount_options *options,
                                 struct bw_mount **mount);

/** Frees it; NULL is allowed. */
void bw_mount_destroy(struct bw_mount *mount);

/** Loads what bw_mount_serve() would load later: call it before the process is confined. */
void bw_mount_prepare(void);

/**
 * Answers the requests that come from a descriptor of /dev/fuse, with several threads, until the
 * mount is gone or a signal (SIGHUP, SIGINT, SIGTERM) asks for the end. Takes the descriptor, which
 * is closed then. What is damaged is an error of the request, and reported. One mount of a process
 * at a time may be served. BW_ERROR_SYSTEM if no requests can be read, BW_ERROR_NO_MEMORY.
 */
struct bw_error *bw_mount_serve(struct bw_mount *mount, int descriptor);

#endif
