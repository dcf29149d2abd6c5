/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receiving: each command becomes a system call in the folder of its subvolume. The directory of
 * the last path and the file that was written last stay open.
 *
 * Paths come from a stream, so they are hostile: directories are opened below the folder of the
 * subvolume without following links, and everything else is done by the last name alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/btrfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "base/whole_io.h"
#include "btrfs-walk/stream.h"
#include "ondisk/items.h"
#include "stream/linked_tree.h"
#include "stream/stream_reader.h"

enum { ZEROS = 64 << 10 }; /* bytes written at once where a hole is not possible */

/* A subvolume that was received. */
struct received {
    uint8_t uuid[BW_UUID_SIZE];
    uint64_t ctransid;
    char *name; /* path below the folder, until it is placed; then below the top */
    bool placed;
};

/* The last name of a path, and the directory that contains it. */
struct place {
    int directory;
    char name[BW_NAME_MAX + 1];
    const struct bw_stream_attribute *path;
};

BW_VECTOR(received_list, struct received);

struct bw_receiver {
    struct bw_receiver_options options;
    bool is_btrfs, links_snapshots; /* neither: it cannot make snapshots */
    struct bw_receiver_summary summary;
    struct received_list received; /* the last one is being received */
    int top;                       /* the folder of the current subvolume; -1: none */
    int directory;                 /* that was opened last; -1: none */
    struct bw_buffer directory_path;
    int file; /* that was opened last; -1: none */
    struct bw_buffer file_path;
    struct bw_linked_tree linked;
    uint64_t omitted;              /* device nodes that could not be made */
    struct bw_buffer omitted_path; /* of the last one; it is temporary */
    struct bw_buffer too_large;    /* the path of the last file that is */

    struct bw_stream_reader reader;
    struct bw_buffer pending; /* bytes that are not a whole command yet */
    uint64_t start;           /* of these bytes in the stream */
};

static struct bw_error *system_error(const char *problem, const struct bw_stream_attribute *path)
{
    return path->length ? bw_error_from_errno(errno, "%s %.*s", problem, (int)path->length,
                                              (const char *)path->data)
                        : bw_error_from_errno(errno, "%s the top directory", problem);
}

/* Opening. */

static int open_below(int directory, const char *path)
{
    return bw_open_beneath(directory, path, O_RDONLY | O_DIRECTORY, false);
}

static void close_directory(struct bw_receiver *receiver)
{
    if (receiver->directory >= 0)
        close(receiver->directory);
    receiver->directory = -1;
}

static bool is_path(const struct bw_buffer *path, const void *bytes, size_t length)
{
    return path->length == length && (!length || memcmp(path->data, bytes, length) == 0);
}

/* Opens the directory that contains the last name of a path of the current subvolume, unless it is
 * open. */
static struct bw_error *open_parent(struct bw_receiver *receiver,
                                    const struct bw_stream_attribute *path, struct place *place)
{
    const char *text = (const char *)path->data;
    const char *slash = path->length ? memrchr(text, '/', path->length) : NULL;
    const size_t length = slash ? (size_t)(slash - text) : 0;
    const char *name = slash ? slash + 1 : text;
    const size_t name_length = path->length - (slash ? length + 1 : 0);
    *place = (struct place){.directory = receiver->top, .name = ".", .path = path};
    if (receiver->top < 0)
        return bw_error_create(BW_ERROR_CORRUPT, "a command before the first subvolume");
    if (!path->length)
        return NULL;
    if (!bw_name_is_valid((const uint8_t *)name, name_length) || memchr(text, '\0', path->length))
        return bw_error_create(BW_ERROR_CORRUPT, "an invalid path");
    memcpy(place->name, name, name_length);
    place->name[name_length] = '\0';
    if (!length)
        return NULL;

    struct bw_buffer *opened = &receiver->directory_path;
    if (receiver->directory < 0 || !is_path(opened, text, length)) {
        close_directory(receiver);
        BW_TRY(bw_buffer_set(opened, text, length));
        BW_TRY(bw_buffer_end_text(opened));
        receiver->directory = open_below(receiver->top, opened->data);
        if (receiver->directory < 0)
            return system_error("cannot open the directory of", path);
    }
    place->directory = receiver->directory;
    return NULL;
}

/* A file that is not complete does not keep its names. */
static void remove_incomplete(struct bw_receiver *receiver)
{
    const struct bw_stream_attribute path = {.data = (const uint8_t *)receiver->file_path.data,
                                             .length = (uint32_t)receiver->file_path.length};
    struct place place;
    struct stat status;
    BW_AUTO_ERROR struct bw_error *error = open_parent(receiver, &path, &place);
    if (error || fstatat(place.directory, place.name, &status, AT_SYMLINK_NOFOLLOW) ||
        unlinkat(place.directory, place.name, 0))
        return;
    if (status.st_nlink > 1)
        error = bw_linked_tree_remove(&receiver->linked, receiver->top, &status);
}

/* Some systems, as NFS, report only here that a disk is full. */
static struct bw_error *close_file(struct bw_receiver *receiver)
{
    const int file = receiver->file;
    receiver->file = -1;
    if (file < 0 || close(file) == 0)
        return NULL;
    struct bw_error *error = bw_error_from_errno(
        errno, "cannot write %.*s", (int)receiver->file_path.length, receiver->file_path.data);
    remove_incomplete(receiver);
    return error;
}

/* Makes sure that changing a file does not change one of another subvolume. */
static struct bw_error *own_file(struct bw_receiver *receiver, const struct place *place)
{
    if (!receiver->links_snapshots)
        return NULL;
    return bw_linked_tree_own(&receiver->linked, receiver->top, place->directory, place->name);
}

/* Opens the file of a path for writing, unless it is open. A device node that a stream has made
 * must not be opened: writing to it would change the device. */
static struct bw_error *open_file(struct bw_receiver *receiver,
                                  const struct bw_stream_attribute *path)
{
    struct place place;
    struct stat status;
    if (receiver->file >= 0 && is_path(&receiver->file_path, path->data, path->length))
        return NULL;
    BW_TRY(close_file(receiver));
    BW_TRY(open_parent(receiver, path, &place));
    BW_TRY(own_file(receiver, &place));
    if (fstatat(place.directory, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(status.st_mode))
        return bw_error_create(BW_ERROR_CORRUPT, "%.*s is not a regular file", (int)path->length,
                               (const char *)path->data);
    receiver->file =
        openat(place.directory, place.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (receiver->file < 0)
        return system_error("cannot write", path);
    return bw_buffer_set(&receiver->file_path, path->data, path->length);
}

/* Subvolumes. */

static struct received *find_received(struct bw_receiver *receiver, const uint8_t *uuid)
{
    for (size_t i = receiver->received.count; i-- > 0;)
        if (memcmp(receiver->received.items[i].uuid, uuid, BW_UUID_SIZE) == 0)
            return &receiver->received.items[i];
    return NULL;
}

static int open_received(const struct bw_receiver *receiver, const struct received *received)
{
    return open_below(received->placed ? receiver->options.top : receiver->options.folder,
                      received->name);
}

static struct bw_error *end_subvolume(struct bw_receiver *receiver)
{
    struct bw_error *error = close_file(receiver);
    close_directory(receiver);
    if (receiver->top >= 0 && receiver->top != receiver->options.top)
        close(receiver->top);
    receiver->top = -1;
    return error;
}

/* Makes the folder of a subvolume, for the commands that follow. */
static struct bw_error *begin_subvolume(struct bw_receiver *receiver,
                                        const struct bw_stream_command *command)
{
    const struct bw_stream_attribute *path = &command->attributes[BW_ATTRIBUTE_PATH];
    char name[BW_NAME_MAX + 1] = {0};
    const struct received *parent = NULL;
    BW_TRY(end_subvolume(receiver));
    receiver->too_large.length = 0;
    const bool is_top = path->length == 1 && *path->data == '.';
    if (!is_top && !bw_name_is_valid(path->data, path->length))
        return bw_error_create(BW_ERROR_CORRUPT, "an invalid name of a subvolume");
    memcpy(name, path->data, path->length);
    if (command->type == BW_COMMAND_SNAPSHOT) {
        parent = find_received(receiver, command->attributes[BW_ATTRIBUTE_CLONE_UUID].data);
        if (!parent || is_top)
            return bw_error_create(BW_ERROR_NOT_FOUND, "%s: its parent was not received", name);
    }
    const int folder = receiver->options.folder;
    struct btrfs_ioctl_vol_args_v2 arguments = {0};
    memcpy(arguments.name, name, strlen(name));
    if (parent) {
        struct bw_error *error = NULL;
        const int from = open_received(receiver, parent);
        if (from < 0)
            return bw_error_from_errno(errno, "cannot open %s", parent->name);
        arguments.fd = from;
        if (receiver->links_snapshots)
            error = bw_linked_tree_make(&receiver->linked, from, folder, name);
        else if (!receiver->is_btrfs)
            error = bw_error_create(BW_ERROR_UNSUPPORTED, "%s: snapshots need btrfs", name);
        else if (ioctl(folder, BTRFS_IOC_SNAP_CREATE_V2, &arguments))
            error = bw_error_from_errno(errno, "cannot make the snapshot %s", name);
        close(from);
        BW_TRY(error);
    } else if (!is_top && receiver->is_btrfs) {
        if (ioctl(folder, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments))
            return bw_error_from_errno(errno, "cannot make the subvolume %s", name);
    } else if (!is_top && mkdirat(folder, name, 0755)) {
        return bw_error_from_errno(errno, "cannot make %s", name);
    }

    struct received received = {.ctransid = bw_command_number(command, BW_ATTRIBUTE_CTRANSID),
                                .placed = is_top};
    memcpy(received.uuid, command->attributes[BW_ATTRIBUTE_UUID].data, BW_UUID_SIZE);
    received.name = strdup(name);
    if (!received.name || received_list_reserve(&receiver->received, 1)) {
        free(received.name);
        return bw_error_no_memory();
    }
    receiver->received.items[receiver->received.count++] = received;
    receiver->summary.subvolumes++;
    receiver->top = is_top ? receiver->options.top : open_below(folder, name);
    if (receiver->top >= 0 && !parent)
        bw_remove_inherited(receiver->top, ".");
    return receiver->top < 0 ? bw_error_from_errno(errno, "cannot open %s", name) : NULL;
}

/* Names. */

static struct bw_error *make_inode(struct bw_receiver *receiver,
                                   const struct bw_stream_command *command)
{
    const struct bw_stream_attribute *path = &command->attributes[BW_ATTRIBUTE_PATH];
    struct place place;
    BW_TRY(open_parent(receiver, path, &place));
    switch (command->type) {
    case BW_COMMAND_MKDIR:
        if (mkdirat(place.directory, place.name, 0700))
            return system_error("cannot make", path);
        return NULL;
    case BW_COMMAND_MKFILE: /* it stays open for the data that follow */
        BW_TRY(close_file(receiver));
        receiver->file = openat(place.directory, place.name,
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (receiver->file < 0)
            return system_error("cannot make", path);
        BW_TRY(bw_buffer_set(&receiver->file_path, path->data, path->length));
        break;
    case BW_COMMAND_SYMLINK: {
        const struct bw_stream_attribute *link = &command->attributes[BW_ATTRIBUTE_PATH_LINK];
        BW_AUTO_FREE char *target = strndup((const char *)link->data, link->length);
        if (!target)
            return bw_error_no_memory();
        if (symlinkat(target, place.directory, place.name))
            return system_error("cannot make", path);
        break;
    }
    default: { /* if the user may not make device nodes, they are omitted */
        const uint64_t number = bw_command_number(command, BW_ATTRIBUTE_RDEV);
        const dev_t device = makedev((unsigned)(number >> 8) & 0xfff,
                                     (unsigned)((number & 0xff) | (number >> 12 & 0xfff00)));
        uint32_t type = (uint32_t)bw_command_number(command, BW_ATTRIBUTE_MODE) & S_IFMT;
        if (command->type == BW_COMMAND_MKFIFO)
            type = S_IFIFO;
        if (command->type == BW_COMMAND_MKSOCK)
            type = S_IFSOCK;
        if (type != S_IFIFO && type != S_IFSOCK && type != S_IFCHR && type != S_IFBLK)
            return bw_error_create(BW_ERROR_CORRUPT, "a node of an unknown type");
        if (mknodat(place.directory, place.name, type | 0600, device) == 0)
            break;
        if (errno != EPERM || !receiver->options.missed)
            return system_error("cannot make", path);
        receiver->omitted++;
        return bw_buffer_set(&receiver->omitted_path, path->data, path->length);
    }
    }
    if (receiver->links_snapshots)
        return bw_linked_tree_add(&receiver->linked, place.directory, place.name);
    return NULL;
}

static struct bw_error *rename_or_link(struct bw_receiver *receiver,
                                       const struct bw_stream_command *command)
{
    const bool links = command->type == BW_COMMAND_LINK;
    struct place from, to;
    BW_TRY(open_parent(
        receiver, &command->attributes[links ? BW_ATTRIBUTE_PATH_LINK : BW_ATTRIBUTE_PATH], &from));
    const int directory = dup(from.directory);
    if (directory < 0)
        return system_error("cannot open", from.path);
    struct bw_error *error = open_parent(
        receiver, &command->attributes[links ? BW_ATTRIBUTE_PATH : BW_ATTRIBUTE_PATH_TO], &to);
    if (!error && links) {
        if (linkat(directory, from.name, to.directory, to.name, 0))
            error = system_error("cannot make the link", to.path);
        else if (receiver->links_snapshots)
            error = bw_linked_tree_add_link(&receiver->linked, to.directory, to.name);
    } else if (!error && renameat(directory, from.name, to.directory, to.name)) {
        error = system_error("cannot rename", from.path);
        if (error->system == ENOENT && receiver->omitted &&
            is_path(&receiver->omitted_path, from.path->data, from.path->length)) {
            receiver->options.missed(
                receiver->options.context,
                bw_error_create(BW_ERROR_SYSTEM, "%.*s: only root can make device nodes",
                                (int)to.path->length, (const char *)to.path->data));
            receiver->omitted_path.length = 0;
        }
    }
    close(directory);
    if (links)
        return error;
    close_directory(receiver); /* it may have moved */
    if (error || receiver->file < 0 ||
        !is_path(&receiver->file_path, from.path->data, from.path->length))
        return bw_error_first(error, close_file(receiver));
    return bw_buffer_set(&receiver->file_path, to.path->data, to.path->length);
}

static struct bw_error *remove_name(struct bw_receiver *receiver,
                                    const struct bw_stream_command *command)
{
    const int flags = command->type == BW_COMMAND_RMDIR ? AT_REMOVEDIR : 0;
    struct place place;
    BW_TRY(close_file(receiver));
    BW_TRY(open_parent(receiver, &command->attributes[BW_ATTRIBUTE_PATH], &place));
    struct bw_error *error = unlinkat(place.directory, place.name, flags)
                                 ? system_error("cannot remove", place.path)
                                 : NULL;
    if (flags)
        close_directory(receiver);
    return error;
}

/* Contents. */

static struct bw_error *write_bytes(struct bw_receiver *receiver, const uint8_t *bytes,
                                    size_t length, uint64_t offset)
{
    if (bw_write_at(receiver->file, bytes, length, offset))
        return NULL;
    return bw_error_from_errno(errno, "cannot write %.*s", (int)receiver->file_path.length,
                               receiver->file_path.data);
}

/* Opens the source of a clone. A device node is not opened, because that alone may have effects. */
static struct bw_error *open_source(struct bw_receiver *receiver,
                                    const struct bw_stream_command *command, int *from)
{
    const struct bw_stream_attribute *path = &command->attributes[BW_ATTRIBUTE_CLONE_PATH];
    const struct received *received =
        find_received(receiver, command->attributes[BW_ATTRIBUTE_CLONE_UUID].data);
    BW_AUTO_FREE char *text = strndup((const char *)path->data, path->length);
    if (!text)
        return bw_error_no_memory();
    if (!received)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the source of a clone was not received");
    const bool is_current = received == &receiver->received.items[receiver->received.count - 1];
    const int top = is_current ? receiver->top : open_received(receiver, received);
    const int found = top < 0 ? -1 : bw_open_beneath(top, text, O_PATH, false);
    *from = -1;
    if (found >= 0) {
        struct stat status;
        const bool is_regular = fstat(found, &status) == 0 && S_ISREG(status.st_mode);
        close(found);
        errno = EINVAL;
        if (is_regular)
            *from = bw_open_beneath(top, text, O_RDONLY | O_NONBLOCK, false);
    }
    const int problem = errno;
    if (!is_current && top >= 0)
        close(top);
    errno = problem;
    return *from < 0 ? system_error("cannot open", path) : NULL;
}

/* Clones a range, or copies it where it cannot be cloned. */
static struct bw_error *clone_range(struct bw_receiver *receiver,
                                    const struct bw_stream_command *command)
{
    struct file_clone_range range = {
        .src_offset = bw_command_number(command, BW_ATTRIBUTE_CLONE_OFFSET),
        .src_length = bw_command_number(command, BW_ATTRIBUTE_CLONE_LEN),
        .dest_offset = bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
    };
    int from;
    BW_TRY(open_file(receiver, &command->attributes[BW_ATTRIBUTE_PATH]));
    BW_TRY(open_source(receiver, command, &from));
    range.src_fd = from;
    struct bw_error *error = NULL;
    uint64_t left = range.src_length;
    if (ioctl(receiver->file, FICLONERANGE, &range) == 0) {
        receiver->summary.cloned += left;
        left = 0;
    }
    receiver->summary.written += left;
    off_t in = (off_t)range.src_offset, out = (off_t)range.dest_offset;
    while (left && !error) {
        const ssize_t got = copy_file_range(from, &in, receiver->file, &out,
                                            left < SSIZE_MAX ? (size_t)left : SSIZE_MAX, 0);
        if (got > 0)
            left -= (uint64_t)got;
        else if (!got)
            error = bw_error_create(BW_ERROR_CORRUPT, "the source of a clone is too short");
        else if (errno != EINTR)
            error = bw_error_from_errno(errno, "cannot copy to %.*s",
                                        (int)receiver->file_path.length, receiver->file_path.data);
    }
    close(from);
    return error;
}

static struct bw_error *punch_hole(struct bw_receiver *receiver,
                                   const struct bw_stream_command *command)
{
    static const uint8_t zeros[ZEROS];
    const uint64_t offset = bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
                   length = bw_command_number(command, BW_ATTRIBUTE_SIZE);
    const int mode = (int)bw_command_number(command, BW_ATTRIBUTE_FALLOCATE_MODE);
    BW_TRY(open_file(receiver, &command->attributes[BW_ATTRIBUTE_PATH]));
    if (fallocate(receiver->file, mode, (off_t)offset, (off_t)length) == 0)
        return NULL;
    if (errno != EOPNOTSUPP)
        return system_error("cannot punch a hole into", &command->attributes[BW_ATTRIBUTE_PATH]);
    struct bw_error *error = NULL;
    for (uint64_t done = 0, step; done < length && !error; done += step) {
        step = length - done < sizeof zeros ? length - done : sizeof zeros;
        error = write_bytes(receiver, zeros, (size_t)step, offset + done);
    }
    return error;
}

/* Attributes. */

static struct timespec time_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    const struct bw_stream_time time = bw_command_time(command, type);
    return (struct timespec){(time_t)bw_get64(time.seconds), (long)bw_get32(time.nanoseconds)};
}

/* Restores an attribute. Failures are reported, except those of attributes that mean something only
 * to btrfs. */
static struct bw_error *change_attribute(struct bw_receiver *receiver,
                                         const struct bw_stream_command *command)
{
    static const char property[] = "btrfs.";
    const struct bw_stream_attribute *name = &command->attributes[BW_ATTRIBUTE_XATTR_NAME],
                                     *value = &command->attributes[BW_ATTRIBUTE_XATTR_DATA];
    const struct timespec times[2] = {time_of(command, BW_ATTRIBUTE_ATIME),
                                      time_of(command, BW_ATTRIBUTE_MTIME)};
    const uid_t user = (uid_t)bw_command_number(command, BW_ATTRIBUTE_UID);
    const gid_t group = (gid_t)bw_command_number(command, BW_ATTRIBUTE_GID);
    char path[BW_NAME_MAX + 64], text[BW_NAME_MAX + 1] = {0};
    struct place place;
    struct stat status;
    int failed;
    BW_TRY(open_parent(receiver, &command->attributes[BW_ATTRIBUTE_PATH], &place));

    /* A time of access alone is no reason to copy a file that is linked to the parent's. */
    if (receiver->links_snapshots && command->type == BW_COMMAND_UTIMES &&
        fstatat(place.directory, place.name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISDIR(status.st_mode) && bw_same_time(&times[1], &status.st_mtim))
        return NULL;
    BW_TRY(own_file(receiver, &place));
    switch (command->type) {
    case BW_COMMAND_CHMOD:
        failed = fchmodat(place.directory, place.name,
                          (mode_t)bw_command_number(command, BW_ATTRIBUTE_MODE) & 07777,
                          AT_SYMLINK_NOFOLLOW);
        break;
    case BW_COMMAND_CHOWN: /* only root can give files away; others set groups they belong to */
        failed = fchownat(place.directory, place.name, user, group, AT_SYMLINK_NOFOLLOW);
        if (failed && errno == EPERM && geteuid() != 0)
            failed = fchownat(place.directory, place.name, (uid_t)-1, group, AT_SYMLINK_NOFOLLOW) &&
                     errno != EPERM;
        break;
    case BW_COMMAND_UTIMES:
        failed = utimensat(place.directory, place.name, times, AT_SYMLINK_NOFOLLOW);
        break;
    default: /* extended attributes have no calls with a directory and a name */
        snprintf(path, sizeof path, "/proc/self/fd/%d/%s", place.directory, place.name);
        errno = ENAMETOOLONG;
        failed = name->length > BW_NAME_MAX;
        if (failed)
            break;
        memcpy(text, name->data, name->length);
        if (command->type == BW_COMMAND_SET_XATTR)
            failed = lsetxattr(path, text, value->data, value->length, 0);
        else
            failed = lremovexattr(path, text);
        break;
    }
    const bool is_property =
        name->length >= strlen(property) && memcmp(name->data, property, strlen(property)) == 0;
    if (!failed || (!receiver->is_btrfs && is_property) || (errno == ENOENT && receiver->omitted))
        return NULL;
    struct bw_error *error = system_error("cannot restore an attribute of", place.path);
    if (!receiver->options.missed)
        return error;
    receiver->options.missed(receiver->options.context, error);
    return NULL;
}

/* Commands. */

static struct bw_error *apply_command(struct bw_receiver *receiver,
                                      const struct bw_stream_command *command)
{
    const struct bw_stream_attribute *path = &command->attributes[BW_ATTRIBUTE_PATH];
    switch (command->type) {
    case BW_COMMAND_SUBVOL:
    case BW_COMMAND_SNAPSHOT:
        return begin_subvolume(receiver, command);
    case BW_COMMAND_MKFILE:
    case BW_COMMAND_MKDIR:
    case BW_COMMAND_MKNOD:
    case BW_COMMAND_MKFIFO:
    case BW_COMMAND_MKSOCK:
    case BW_COMMAND_SYMLINK:
        return make_inode(receiver, command);
    case BW_COMMAND_RENAME:
    case BW_COMMAND_LINK:
        return rename_or_link(receiver, command);
    case BW_COMMAND_UNLINK:
    case BW_COMMAND_RMDIR:
        return remove_name(receiver, command);
    case BW_COMMAND_WRITE:
        BW_TRY(open_file(receiver, path));
        receiver->summary.written += command->attributes[BW_ATTRIBUTE_DATA].length;
        return write_bytes(receiver, command->attributes[BW_ATTRIBUTE_DATA].data,
                           command->attributes[BW_ATTRIBUTE_DATA].length,
                           bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET));
    case BW_COMMAND_CLONE:
        return clone_range(receiver, command);
    case BW_COMMAND_TRUNCATE:
        BW_TRY(open_file(receiver, path));
        if (ftruncate(receiver->file, (off_t)bw_command_number(command, BW_ATTRIBUTE_SIZE)))
            return system_error("cannot truncate", path);
        return NULL;
    case BW_COMMAND_FALLOCATE:
        return punch_hole(receiver, command);
    case BW_COMMAND_CHMOD:
    case BW_COMMAND_CHOWN:
    case BW_COMMAND_UTIMES:
    case BW_COMMAND_SET_XATTR:
    case BW_COMMAND_REMOVE_XATTR:
        return change_attribute(receiver, command);
    case BW_COMMAND_END:
        return end_subvolume(receiver);
    case BW_COMMAND_FILEATTR:
    case BW_COMMAND_ENABLE_VERITY:
        return NULL;
    default:
        return bw_error_create(BW_ERROR_UNSUPPORTED, "the command %s is not supported",
                               bw_command_name(command->type) ? bw_command_name(command->type)
                                                              : "of a later protocol");
    }
}

/* Whether a whole command is pending, with the header of a stream before it. One that is too long
 * is not awaited: reading it fails. */
static bool is_whole(const struct bw_receiver *receiver)
{
    const struct bw_buffer *pending = &receiver->pending;
    const bool begins = receiver->reader.version == 0 || receiver->reader.ended;
    const size_t at = (size_t)(receiver->reader.offset - receiver->start) +
                      (begins ? sizeof(struct bw_stream_header) : 0);
    if (pending->length < at + sizeof(struct bw_command_header))
        return false;
    const struct bw_command_header *header = (const void *)(pending->data + at);
    const uint32_t length = bw_get32(header->length);
    return pending->length - at - sizeof *header >= length || length > BW_LONGEST_COMMAND;
}

static struct bw_error *read_pending(void *context, uint64_t offset, void *buffer, uint32_t length)
{
    const struct bw_receiver *receiver = context;
    memcpy(buffer, receiver->pending.data + (offset - receiver->start), length);
    return NULL;
}

/* Errors after which the stream continues. The names of device nodes that were not made are missing
 * afterwards. A file that is too large for the file system is reported once, and stays incomplete.
 */
static struct bw_error *pass_over(struct bw_receiver *receiver,
                                  const struct bw_stream_command *command, struct bw_error *error)
{
    const struct bw_stream_attribute *path = &command->attributes[BW_ATTRIBUTE_PATH];
    const bool is_too_large = error->system == EFBIG && receiver->options.missed;
    if (!is_too_large && !(error->system == ENOENT && receiver->omitted))
        return error;
    if (is_too_large && !is_path(&receiver->too_large, path->data, path->length)) {
        receiver->options.missed(receiver->options.context, error);
        return bw_buffer_set(&receiver->too_large, path->data, path->length);
    }
    bw_error_free(error);
    return NULL;
}

struct bw_error *bw_receiver_add(void *context, const void *bytes, size_t length)
{
    struct bw_receiver *receiver = context;
    struct bw_buffer *pending = &receiver->pending;
    bw_buffer_append(pending, bytes, length);
    BW_TRY(bw_buffer_error(pending));
    while (is_whole(receiver)) {
        struct bw_stream_command command;
        bool got;
        receiver->reader.source.size = receiver->start + pending->length;
        BW_TRY(bw_stream_next(&receiver->reader, &command, &got));
        struct bw_error *error = apply_command(receiver, &command);
        BW_TRY(error ? pass_over(receiver, &command, error) : NULL);
    }
    const size_t used = (size_t)(receiver->reader.offset - receiver->start);
    memmove(pending->data, pending->data + used, pending->length - used);
    pending->length -= used;
    receiver->start += used;
    return NULL;
}

/* Places. */

/* Opens the parent directory of a path, and creates missing directories. */
static struct bw_error *make_way(int top, const char *path, int *directory)
{
    *directory = dup(top);
    for (const char *slash; *directory >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        char name[BW_NAME_MAX + 1] = {0};
        if (!bw_name_is_valid((const uint8_t *)path, (size_t)(slash - path)))
            errno = EINVAL;
        else
            memcpy(name, path, (size_t)(slash - path));
        if (*name && mkdirat(*directory, name, 0755) && errno != EEXIST)
            *name = '\0';
        int next = *name ? open_below(*directory, name) : -1;
        const int problem = errno;
        close(*directory);
        errno = problem;
        *directory = next;
    }
    return *directory < 0 ? bw_error_from_errno(errno, "cannot open the directory of %s", path)
                          : NULL;
}

struct bw_error *bw_receiver_place(struct bw_receiver *receiver, const char *name, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    struct received *received = NULL;
    struct stat status;
    int directory;
    for (size_t i = 0; i < receiver->received.count; i++)
        if (strcmp(receiver->received.items[i].name, name) == 0 &&
            !receiver->received.items[i].placed)
            received = &receiver->received.items[i];
    if (!received)
        return bw_error_create(BW_ERROR_NOT_FOUND, "%s was not received", name);
    BW_TRY(make_way(receiver->options.top, path, &directory));
    struct bw_error *error = NULL;
    if (fstat(directory, &status) ||
        syscall(SYS_renameat2, receiver->options.folder, name, directory, last, RENAME_NOREPLACE))
        error = bw_error_from_errno(errno, "cannot move a subvolume to %s", path);
    else
        futimens(directory, (struct timespec[]){status.st_atim, status.st_mtim});
    close(directory);
    char *copy = strdup(path);
    if (!copy)
        return bw_error_first(error, bw_error_no_memory());
    free(received->name);
    received->name = copy;
    received->placed = true;
    return error;
}

struct bw_error *bw_receiver_protect(struct bw_receiver *receiver, const char *path)
{
    const struct received *received = NULL;
    for (size_t i = receiver->received.count; i-- > 0 && receiver->is_btrfs;)
        if (receiver->received.items[i].placed &&
            strcmp(receiver->received.items[i].name, path) == 0)
            received = &receiver->received.items[i];
    if (!received)
        return NULL;
    struct btrfs_ioctl_received_subvol_args arguments = {.stransid = received->ctransid};
    uint64_t flags = 0;
    const char *problem = NULL;
    memcpy(arguments.uuid, received->uuid, BW_UUID_SIZE);
    int subvolume = open_received(receiver, received);
    if (subvolume < 0)
        return bw_error_from_errno(errno, "cannot open %s", path);
    if (ioctl(subvolume, BTRFS_IOC_SET_RECEIVED_SUBVOL, &arguments) && errno != EPERM)
        problem = "cannot set its received UUID";
    else if (ioctl(subvolume, BTRFS_IOC_SUBVOL_GETFLAGS, &flags))
        problem = "cannot read its flags";
    flags |= BTRFS_SUBVOL_RDONLY;
    if (!problem && ioctl(subvolume, BTRFS_IOC_SUBVOL_SETFLAGS, &flags))
        problem = "cannot be made read-only";
    struct bw_error *error = problem ? bw_error_from_errno(errno, "%s: %s", path, problem) : NULL;
    close(subvolume);
    return error;
}

/* Beginning and end. */

struct bw_error *bw_receiver_create(const struct bw_receiver_options *options,
                                    struct bw_receiver **result)
{
    struct statfs status;
    struct bw_receiver *receiver = calloc(1, sizeof *receiver);
    if (!receiver)
        return bw_error_no_memory();
    receiver->top = receiver->directory = receiver->file = -1;
    struct bw_error *error = BW_TAKE_OPTIONS(&receiver->options, options);
    if (!error && fstatfs(receiver->options.folder, &status))
        error = bw_error_from_errno(errno, "the folder");
    if (error) {
        free(receiver);
        return error;
    }
    receiver->is_btrfs = (uint32_t)status.f_type == BTRFS_SUPER_MAGIC;
    receiver->links_snapshots = receiver->options.link_snapshots && !receiver->is_btrfs;
    bw_stream_reader_init(&receiver->reader, &(struct bw_stream_source){read_pending, receiver, 0});
    *result = receiver;
    return NULL;
}

bool bw_receiver_makes_snapshots(const struct bw_receiver *receiver)
{
    return receiver->is_btrfs;
}

void bw_receiver_summary(const struct bw_receiver *receiver, struct bw_receiver_summary *summary)
{
    *summary = receiver->summary;
    summary->linked = receiver->linked.links;
    summary->written += receiver->linked.copied;
}

void bw_receiver_destroy(struct bw_receiver *receiver)
{
    if (!receiver)
        return;
    if (receiver->file >= 0) /* the stream broke off */
        remove_incomplete(receiver);
    bw_error_free(end_subvolume(receiver));
    for (size_t i = 0; i < receiver->received.count; i++)
        free(receiver->received.items[i].name);
    received_list_free(&receiver->received);
    bw_stream_reader_free(&receiver->reader);
    bw_linked_tree_free(&receiver->linked);
    bw_buffer_free(&receiver->directory_path);
    bw_buffer_free(&receiver->file_path);
    bw_buffer_free(&receiver->omitted_path);
    bw_buffer_free(&receiver->too_large);
    bw_buffer_free(&receiver->pending);
    free(receiver);
}
