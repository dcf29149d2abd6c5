/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening files for writing, and refusing to where an image might be. */
#include "btrfs-walk/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/disk.h"
#include "format/superblock.h"

static bool has_magic_at(int descriptor, uint64_t offset)
{
    bw_le64 magic;
    return lseek(descriptor, (off_t)(offset + offsetof(struct bw_disk_superblock, magic)),
                 SEEK_SET) >= 0 &&
           read(descriptor, &magic, sizeof magic) == sizeof magic &&
           bw_get64(magic) == BW_SUPERBLOCK_MAGIC;
}

static bool holds_superblock(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool found = false;
    for (unsigned copy = 0; descriptor >= 0 && !found && copy < BW_SUPERBLOCK_COPIES; copy++)
        found = has_magic_at(descriptor, bw_superblock_offset(copy));
    if (descriptor >= 0)
        close(descriptor);
    return found;
}

static struct bw_error *refuse_image(const char *path, const struct stat *status)
{
    if (S_ISBLK(status->st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is a block device, not a file to write to",
                               path);
    if (S_ISREG(status->st_mode) && status->st_size > 0 && holds_superblock(path))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s holds a btrfs superblock: an image is never written to", path);
    return NULL;
}

struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor)
{
    struct stat status;
    /* Asked before it is opened: closing a device that was open for writing sets off udev. */
    struct bw_error *error = stat(path, &status) ? NULL : refuse_image(path, &status);
    if (error)
        return error;
    int opened =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (append ? O_APPEND : 0), 0666);
    if (opened < 0)
        return bw_error_from_errno(errno, "cannot open %s for writing", path);
    error = fstat(opened, &status) ? bw_error_from_errno(errno, "cannot stat %s", path)
                                   : refuse_image(path, &status);
    if (error)
        close(opened);
    else
        *descriptor = opened;
    return error;
}
