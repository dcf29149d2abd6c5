/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this folder. */
#ifndef BW_MOUNT_INTERNAL_H
#define BW_MOUNT_INTERNAL_H

#define FUSE_USE_VERSION 32
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/map.h"
#include "btrfs-walk/inode.h"
#include "mount/mount.h"

struct bw_readahead;

struct bw_mount {
    struct bw_fs *fs;
    struct bw_mount_options options;
    const struct bw_subvolume **subvolumes; /* ascending by id */
    size_t subvolume_count;
    uint32_t sectorsize;
    struct bw_readahead *readahead;
    atomic_uint wanted; /* lists that are to come with the attributes of files; see operations.c */
    pthread_mutex_t lock; /* of what follows */
    struct bw_map told;   /* hashes of the messages that were reported */
    struct statvfs space;
    bool has_space;
};

/** Cache lifetime of replies in the kernel, in seconds. Long, because nothing changes. */
#define BW_MOUNT_FOREVER UINT64_C(31536000)

/** Adds the operations on an open file to the table of operations. */
void bw_mount_add_contents(struct fuse_lowlevel_ops *operations);

/** All operations. The user data of the session is the struct bw_mount. */
struct fuse_lowlevel_ops bw_mount_operations(void);

/** The mount that a request is for. */
static inline struct bw_mount *bw_mount_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/** The file that the kernel means by a number; false if there can be none. Its type is not known.
 */
bool bw_mount_place(const struct bw_mount *mount, fuse_ino_t node, struct bw_place *place);

/** The number for a file; 0 if it cannot be expressed. */
fuse_ino_t bw_mount_node(const struct bw_mount *mount, const struct bw_place *place);

/** The inode number that programs see: the real one in the subvolume at the top. */
uint64_t bw_mount_number(const struct bw_mount *mount, const struct bw_place *place);

/*
 * Attributes and entries are those of the protocol itself. The functions of libfuse for them take a
 * struct stat, which on machines of 32 bits has another layout where libfuse was built with times
 * of 32 bits.
 */

/** Sets the attributes of a file as they are shown. */
void bw_mount_attributes(const struct bw_mount *mount, const struct bw_place *place,
                         const struct bw_inode *inode, struct fuse_attr *attributes);

/** Sets what the kernel gets to know of a name; false if the file cannot be shown. */
bool bw_mount_entry(const struct bw_mount *mount, const struct bw_place *place,
                    const struct bw_inode *inode, struct fuse_entry_out *entry);

/** The number of errno for an error, which it takes, and reports unless that was done already. */
int bw_mount_problem(struct bw_mount *mount, struct bw_error *error);

/** Answers a request with an error, which it takes; NULL: with success. */
void bw_mount_reply(fuse_req_t request, struct bw_error *error);

#endif
