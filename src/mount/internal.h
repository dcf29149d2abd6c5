/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Declarations that the files of this folder share. */
#ifndef BW_MOUNT_INTERNAL_H
#define BW_MOUNT_INTERNAL_H

#define FUSE_USE_VERSION 32
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/hash_table.h"
#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/inode.h"
#include "mount/mount.h"

struct bw_listings;
struct bw_read_files;
struct bw_read_windows;

/** A device that is shown as a file. */
struct bw_mount_device {
    uint64_t devid, size;
    struct bw_device_reader *reader;
    struct bw_range_set used; /**< everything else is a hole */
};

BW_VECTOR(bw_mounted_subvolumes, const struct bw_subvolume *);

BW_VECTOR(bw_mount_devices, struct bw_mount_device);

struct bw_mount {
    struct bw_fs *fs;
    struct bw_mount_options options;
    struct bw_mounted_subvolumes subvolumes; /* ascending by id */
    uint32_t sectorsize;
    struct bw_read_windows *read_windows;
    struct bw_read_files *read_files;
    struct bw_listings *listings;
    bool kernel_opens;               /* the kernel can open files and directories without a
                                      * request */
    struct bw_mount_devices devices; /* if devices are shown: ascending by id */
    atomic_uint wanted;         /* number of listings that will include the attributes of files; see
                                 * directories.c */
    pthread_mutex_t lock;       /* protects the following members */
    struct bw_key_set reported; /* hashes of the messages that were reported */
    struct statvfs space;
    bool has_space;
};

/** Cache lifetime of replies in the kernel, in seconds. It is long, because nothing changes. */
#define BW_MOUNT_FOREVER UINT64_C(31536000)

/** Listings of directories, and the operations on them. NULL if memory runs out. */
struct bw_listings *bw_listings_create(void);
void bw_listings_destroy(struct bw_listings *listings); /**< NULL is allowed */
void bw_mount_add_directories(struct fuse_lowlevel_ops *operations);

/** Records that a program has requested the attributes of a file. */
void bw_mount_note_attributes(struct bw_mount *mount);

/** Files that are read, and the operations on them. NULL if memory runs out. */
struct bw_read_files *bw_read_files_create(void);
void bw_read_files_destroy(struct bw_read_files *files); /**< NULL is allowed */
void bw_mount_add_contents(struct fuse_lowlevel_ops *operations);

/** All operations. The session's user data is the struct bw_mount. */
struct fuse_lowlevel_ops bw_mount_operations(void);

/** The same for a mount that shows devices. */
struct fuse_lowlevel_ops bw_mount_device_operations(void);

/** The mount of a request. */
static inline struct bw_mount *bw_mount_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/** The file with the kernel's number `node`, without its type; false if there can be no such
 * file. */
bool bw_mount_place(const struct bw_mount *mount, fuse_ino_t node, struct bw_place *place);

/** The parent of a directory; the directory itself at the top of the mount, or if the parent is
 * unknown. */
struct bw_place bw_mount_parent(const struct bw_mount *mount, const struct bw_place *place);

/** The inode number that programs see: the real one only in the top-level subvolume of the mount.
 */
uint64_t bw_mount_number(const struct bw_mount *mount, const struct bw_place *place);

/*
 * Attributes and entries use the structures of the protocol. The functions of libfuse use struct
 * stat, whose layout differs on 32-bit machines if libfuse was built with 32-bit times.
 */

/** Gets the inode of a file. The entries of a directory can be readable although its inode is lost:
 * then this reports the damage, and returns an inode that only the superuser may use. */
struct bw_error *bw_mount_inode(struct bw_mount *mount, const struct bw_place *place,
                                struct bw_inode *inode);

/** Sets the attributes of a file for the kernel. */
void bw_mount_attributes(const struct bw_mount *mount, const struct bw_place *place,
                         const struct bw_inode *inode, struct fuse_attr *attributes);

/** Sets the reply to a lookup; false if the file cannot be represented. */
bool bw_mount_entry(const struct bw_mount *mount, const struct bw_place *place,
                    const struct bw_inode *inode, struct fuse_entry_out *entry);

/** A part of a directory listing that is being built. */
struct bw_mount_answer {
    char *bytes;
    size_t used, size;
    bool plus; /**< with attributes */
};

/** Adds an entry with its attributes, or at least its number and type; false if it does not fit.
 * `next` is the offset of the next entry. */
bool bw_mount_answer_add(struct bw_mount_answer *answer, const char *name,
                         const struct fuse_entry_out *entry, uint64_t next);

/** Replies to a request with an error, which is consumed; NULL: with success. */
void bw_mount_reply(fuse_req_t request, struct bw_error *error);

#endif
