/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names, attributes, links, extended attributes, and the space of the file system. */
#include "mount/internal.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "btrfs-walk/space.h"

static void init(void *context, struct fuse_conn_info *connection)
{
    struct bw_mount *mount = context;
    const bool lists = mount->options.checks_permissions && !mount->options.squash_user &&
                       !mount->options.squash_group;
    unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
                      FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_IOCTL_DIR |
                      FUSE_CAP_EXPORT_SUPPORT;
    if (lists)
        wanted |= FUSE_CAP_POSIX_ACL;
    connection->want = wanted & connection->capable;
    mount->kernel_opens = (connection->capable & FUSE_CAP_NO_OPEN_SUPPORT) &&
                          (connection->capable & FUSE_CAP_NO_OPENDIR_SUPPORT);
}

static struct bw_error *find_node(const struct bw_mount *mount, fuse_ino_t node,
                                  struct bw_place *place)
{
    if (bw_mount_place(mount, node, place))
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no file %llu", (unsigned long long)node);
}

/* Treats a missing item as damage, because something refers to it. */
static struct bw_error *missing_is_damage(struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_NOT_FOUND)
        return error;
    struct bw_error *damage = bw_error_create(BW_ERROR_CORRUPT, "%s", error->message);
    bw_error_free(error);
    return damage;
}

/* For a file handle, whose file it does not remember, the kernel looks up the names "." and "..".
 */
static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct bw_mount *mount = bw_mount_of(request);
    struct bw_place directory, place;
    struct bw_inode inode;
    struct fuse_entry_out entry = {.entry_valid = BW_MOUNT_FOREVER};
    struct bw_error *error = find_node(mount, parent, &directory);
    if (!error && strcmp(name, ".") == 0)
        place = directory;
    else if (!error && strcmp(name, "..") == 0)
        place = bw_mount_parent(mount, &directory);
    else if (!error)
        error = bw_lookup_name(mount->fs, &directory, name, strlen(name), &place);
    if (!error) {
        error = bw_mount_inode(mount, &place, &inode);
        if (strcmp(name, ".") != 0)
            error = missing_is_damage(error);
    }
    if (error && error->code == BW_ERROR_NOT_FOUND) { /* without a node, the entry means that */
        bw_error_free(error);
        fuse_reply_buf(request, (const char *)&entry, sizeof entry);
    } else if (error) {
        bw_mount_reply(request, error);
    } else if (!bw_mount_entry(mount, &place, &inode, &entry)) {
        fuse_reply_err(request, EOVERFLOW);
    } else {
        if (!S_ISDIR(inode.mode))
            bw_mount_note_attributes(mount);
        fuse_reply_buf(request, (const char *)&entry, sizeof entry);
    }
}

/* Does nothing, because there is no state for the kernel's numbers. */
static void forget(fuse_req_t request, fuse_ino_t node, uint64_t count)
{
    (void)node, (void)count;
    fuse_reply_none(request);
}

static void forget_many(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
    (void)count, (void)forgets;
    fuse_reply_none(request);
}

static void getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *file)
{
    struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    struct bw_inode inode;
    struct fuse_attr_out answer = {.attr_valid = BW_MOUNT_FOREVER};
    (void)file;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error)
        error = bw_mount_inode(mount, &place, &inode);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    bw_mount_attributes(mount, &place, &inode, &answer.attr);
    fuse_reply_buf(request, (const char *)&answer, sizeof answer);
}

static void readlink(fuse_req_t request, fuse_ino_t node)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    BW_AUTO_FREE char *target = NULL;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error)
        error = missing_is_damage(bw_inode_readlink(mount->fs, &place, &target, NULL));
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_readlink(request, target);
}

/* Extended attributes. */

/* Replies with the value of an attribute, or if `name` is NULL with the names of all, each followed
 * by a NUL; if `size` is 0, only with the number of these bytes. */
static void reply_attributes(fuse_req_t request, fuse_ino_t node, const char *name, size_t size)
{
    const struct bw_mount *mount = bw_mount_of(request);
    BW_AUTO_BUFFER struct bw_buffer bytes = {0};
    struct bw_xattrs *xattrs = NULL;
    struct bw_place place;
    bool found = !name;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error && place.inode != BW_EMPTY_DIRECTORY)
        error = bw_xattrs_open(mount->fs, &place, &xattrs);
    for (const struct bw_xattr *xattr; xattrs && (xattr = bw_xattrs_next(xattrs));) {
        if (memchr(xattr->name, '\0', xattr->name_length)) /* no system call can specify this name
                                                            */
            continue;
        if (!name) {
            bw_buffer_append(&bytes, xattr->name, xattr->name_length);
            bw_buffer_append_byte(&bytes, '\0');
        } else if (!found && xattr->name_length == strlen(name) &&
                   memcmp(xattr->name, name, xattr->name_length) == 0) {
            found = true;
            bw_buffer_append(&bytes, xattr->value, xattr->value_length);
        }
    }
    error = bw_error_first(error, bw_xattrs_close(xattrs));
    if (!error && bytes.failed)
        error = bw_error_no_memory();
    if (error)
        bw_mount_reply(request, error);
    else if (!found)
        fuse_reply_err(request, ENODATA);
    else if (!size)
        fuse_reply_xattr(request, bytes.length);
    else if (bytes.length > size)
        fuse_reply_err(request, ERANGE);
    else
        fuse_reply_buf(request, bytes.data, bytes.length);
}

static void getxattr(fuse_req_t request, fuse_ino_t node, const char *name, size_t size)
{
    reply_attributes(request, node, name, size);
}

static void listxattr(fuse_req_t request, fuse_ino_t node, size_t size)
{
    reply_attributes(request, node, NULL, size);
}

/* Flags, for lsattr(1). Requests of btrfs are not supported, because the tools that send them
 * accept only mounts of the type btrfs. */
static void get_flags(fuse_req_t request, fuse_ino_t node, int command, void *argument,
                      struct fuse_file_info *file, unsigned how, const void *input,
                      size_t input_size, size_t output_size)
{
    const struct bw_mount *mount = bw_mount_of(request);
    struct bw_place place;
    struct bw_inode inode;
    (void)argument, (void)file, (void)how, (void)input, (void)input_size;
    struct bw_error *error = find_node(mount, node, &place);
    if (!error)
        error = bw_inode_get(mount->fs, &place, &inode);
    if (error) {
        bw_mount_reply(request, error);
        return;
    }
    if ((unsigned)command != FS_IOC_GETFLAGS || output_size < sizeof(uint32_t) ||
        place.inode == BW_EMPTY_DIRECTORY) {
        fuse_reply_err(request, ENOTTY);
        return;
    }
    const uint32_t flags = bw_inode_file_flags(&inode);
    fuse_reply_ioctl(request, 0, &flags, sizeof flags);
}

/* Space. */

/* The result of statfs(2) as on a mount by the kernel. */
static void statfs(fuse_req_t request, fuse_ino_t node)
{
    struct bw_mount *mount = bw_mount_of(request);
    struct bw_usage *usage = NULL;
    struct bw_space space = {0};
    const uint64_t block = mount->sectorsize;
    struct bw_error *error = NULL;
    (void)node;
    pthread_mutex_lock(&mount->lock);
    if (!mount->has_space)
        error = bw_fs_usage(mount->fs, &usage);
    if (!mount->has_space && !error)
        error = bw_fs_space(mount->fs, usage, &space);
    if (!mount->has_space && !error) {
        mount->space = (struct statvfs){
            .f_bsize = (unsigned long)block,
            .f_frsize = (unsigned long)block,
            .f_blocks = space.size / block,
            .f_bfree = space.free / block,
            .f_bavail = space.available / block,
            .f_namemax = 255,
        };
        mount->has_space = true;
    }
    pthread_mutex_unlock(&mount->lock);
    bw_usage_free(usage);
    if (error)
        bw_mount_reply(request, error);
    else
        fuse_reply_statfs(request, &mount->space);
}

struct fuse_lowlevel_ops bw_mount_operations(void)
{
    struct fuse_lowlevel_ops operations = {
        .init = init,
        .lookup = lookup,
        .forget = forget,
        .forget_multi = forget_many,
        .getattr = getattr,
        .readlink = readlink,
        .getxattr = getxattr,
        .listxattr = listxattr,
        .statfs = statfs,
        .ioctl = get_flags,
    };
    bw_mount_add_directories(&operations);
    bw_mount_add_contents(&operations);
    return operations;
}
