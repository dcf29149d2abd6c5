/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The numbers of files, their parents and attributes, and the conversion of errors for the kernel.
 */
#include "mount/internal.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/search.h"

/*
 * Numbers of files. There are two.
 *
 * The kernel refers to a file by a number that only the kernel and this program see. It contains
 * the inode number and the index of the subvolume:
 *
 * 63        62 ... 40              39 ... 0
 * is empty  index of the subvolume inode number; if empty, of the parent directory
 *
 * Programs see a different number as st_ino. On a mount by the kernel's btrfs, each subvolume has
 * its own device number, which is impossible with FUSE: inodes with the same number in two
 * subvolumes would look like hard links. Therefore, only the top subvolume of the mount keeps its
 * inode numbers. In all others, the upper bits are the id of the subvolume, so numbers are the same
 * at the next mount.
 */

enum { INODE_BITS = 40, SUBVOLUME_BITS = 23 };

#define EMPTY           (UINT64_C(1) << 63)
#define INODE_MASK      ((UINT64_C(1) << INODE_BITS) - 1)
#define MOST_SUBVOLUMES (UINT64_C(1) << SUBVOLUME_BITS)

bool bw_mount_place(const struct bw_mount *mount, fuse_ino_t node, struct bw_place *place)
{
    const uint64_t inode = node & INODE_MASK, subvolume = (node & ~EMPTY) >> INODE_BITS;
    if (node == FUSE_ROOT_ID)
        *place = bw_place_top(mount->options.top);
    else if (subvolume >= mount->subvolumes.count)
        return false;
    else if (node & EMPTY)
        *place = (struct bw_place){mount->subvolumes.items[subvolume], BW_EMPTY_DIRECTORY,
                                   BW_FILE_DIRECTORY, inode};
    else
        *place = (struct bw_place){mount->subvolumes.items[subvolume], inode, BW_FILE_UNKNOWN, 0};
    return true;
}

/* The kernel's number of a file; 0 if it cannot be represented. */
static fuse_ino_t node_of(const struct bw_mount *mount, const struct bw_place *place)
{
    const uint64_t id = bw_subvolume_id(place->subvolume);
    const struct bw_place top = bw_place_top(mount->options.top);
    const uint64_t empty = place->inode == BW_EMPTY_DIRECTORY ? EMPTY : 0;
    const uint64_t inode = empty ? place->directory : place->inode;
    const uint64_t subvolume = BW_FIRST_INDEX(i, mount->subvolumes.count,
                                              bw_subvolume_id(mount->subvolumes.items[i]) >= id);
    if (place->subvolume == top.subvolume && place->inode == top.inode)
        return FUSE_ROOT_ID;
    if (inode > INODE_MASK || subvolume >= MOST_SUBVOLUMES)
        return 0;
    return empty | subvolume << INODE_BITS | inode;
}

struct bw_place bw_mount_parent(const struct bw_mount *mount, const struct bw_place *place)
{
    const struct bw_place top = bw_place_top(place->subvolume);
    struct bw_place parent = {top.subvolume, place->directory, BW_FILE_DIRECTORY, 0};
    struct bw_subvolume_info info = {0};
    if (place->inode == top.inode && top.subvolume != mount->options.top) {
        bw_error_free(bw_subvolume_get(mount->fs, top.subvolume, &info));
        parent.subvolume = bw_subvolume_by_id(mount->fs, info.parent);
        parent.inode = info.directory;
    } else if (place->inode != top.inode && place->inode != BW_EMPTY_DIRECTORY) {
        /* A directory has one name. */
        struct bw_hard_links *links;
        BW_AUTO_ERROR struct bw_error *error = bw_hard_links_open(mount->fs, place, &links);
        const struct bw_inode_name *name = error ? NULL : bw_hard_links_next(links);
        if (name)
            parent.inode = name->directory;
        bw_error_free(bw_hard_links_close(links));
    }
    return parent.subvolume && parent.inode ? parent : *place;
}

uint64_t bw_mount_number(const struct bw_mount *mount, const struct bw_place *place)
{
    const uint64_t id = bw_subvolume_id(place->subvolume);
    if (place->subvolume == mount->options.top)
        return place->inode;
    if (id < MOST_SUBVOLUMES && place->inode <= INODE_MASK)
        return id << INODE_BITS | place->inode;
    /* Numbers too large to occur in practice: a hash with its highest bit set, which no other
     * number has. Two of these could be equal by chance. */
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
    const uint64_t mixed = (id * odd ^ place->inode) * odd;
    return (mixed ^ mixed >> 32) | EMPTY;
}

void bw_mount_attributes(const struct bw_mount *mount, const struct bw_place *place,
                         const struct bw_inode *inode, struct fuse_attr *attributes)
{
    const struct bw_mount_options *options = &mount->options;
    const uint64_t allocated = inode->bytes + mount->sectorsize - 1;
    *attributes = (struct fuse_attr){
        .ino = bw_mount_number(mount, place),
        .mode = inode->mode,
        .nlink = inode->link_count,
        .uid = inode->uid,
        .gid = inode->gid,
        .rdev = (uint32_t)makedev(bw_inode_major(inode), bw_inode_minor(inode)),
        .size = inode->size,
        .blksize = mount->sectorsize,
        .blocks = allocated / mount->sectorsize * (mount->sectorsize / 512),
        .atime = (uint64_t)inode->atime.tv_sec,
        .atimensec = (uint32_t)inode->atime.tv_nsec,
        .mtime = (uint64_t)inode->mtime.tv_sec,
        .mtimensec = (uint32_t)inode->mtime.tv_nsec,
        .ctime = (uint64_t)inode->ctime.tv_sec,
        .ctimensec = (uint32_t)inode->ctime.tv_nsec,
    };
    if (options->squash_user)
        attributes->uid = options->user;
    if (options->squash_group)
        attributes->gid = options->group;
}

bool bw_mount_entry(const struct bw_mount *mount, const struct bw_place *place,
                    const struct bw_inode *inode, struct fuse_entry_out *entry)
{
    *entry = (struct fuse_entry_out){.nodeid = node_of(mount, place),
                                     .attr_valid = BW_MOUNT_FOREVER,
                                     .entry_valid = BW_MOUNT_FOREVER};
    bw_mount_attributes(mount, place, inode, &entry->attr);
    return entry->nodeid != 0;
}

/* Number of messages remembered, because each is reported only once. Further messages are not
 * reported. */
enum { MOST_MESSAGES = 10000 };

/* The errno for an error. Consumes the error, and reports it unless it was reported before, because
 * programs often repeat a failing request. */
static int report_problem(struct bw_mount *mount, struct bw_error *error)
{
    const enum bw_error_code code = error->code;
    if (code == BW_ERROR_NOT_FOUND || code == BW_ERROR_NO_MEMORY) {
        bw_error_free(error);
        return code == BW_ERROR_NOT_FOUND ? ENOENT : ENOMEM;
    }
    uint64_t hash = 1;
    for (const char *at = error->message; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    bool is_new = false;
    struct bw_error *failed = NULL;
    pthread_mutex_lock(&mount->lock);
    if (mount->reported.count < MOST_MESSAGES)
        failed = bw_key_set_add(&mount->reported, hash, &is_new);
    pthread_mutex_unlock(&mount->lock);
    if (!failed && is_new)
        bw_fs_report(mount->fs, BW_DAMAGE, error);
    else
        bw_error_free(error);
    bw_error_free(failed);
    return EIO;
}

struct bw_error *bw_mount_inode(struct bw_mount *mount, const struct bw_place *place,
                                struct bw_inode *inode)
{
    struct bw_error *error = bw_inode_get(mount->fs, place, inode);
    if (!error || error->code == BW_ERROR_NO_MEMORY || place->type != BW_FILE_DIRECTORY)
        return error;
    if (error->code == BW_ERROR_NOT_FOUND)
        error->code = BW_ERROR_CORRUPT; /* something refers to it */
    report_problem(mount, error);
    *inode = (struct bw_inode){.mode = S_IFDIR | 0700, .link_count = 1};
    return NULL;
}

void bw_mount_reply(fuse_req_t request, struct bw_error *error)
{
    fuse_reply_err(request, error ? report_problem(bw_mount_of(request), error) : 0);
}
