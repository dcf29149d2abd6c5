/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening files for writing, and refusing to where an image might be. */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct bw_error *refuse_block_device(const char *path, const struct stat *status)
{
    return S_ISBLK(status->st_mode)
               ? bw_error_create(BW_ERROR_USAGE, "%s is a block device, not a file to write to", path)
               : NULL;
}

struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor)
{
    struct stat status;
    /* Asked before it is opened: closing a device that was open for writing sets off udev. */
    struct bw_error *error = stat(path, &status) ? NULL : refuse_block_device(path, &status);
    if (error)
        return error;
    int opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (append ? O_APPEND : 0), 0666);
    if (opened < 0)
        return bw_error_from_errno(errno, "cannot open %s for writing", path);
    error = fstat(opened, &status) ? bw_error_from_errno(errno, "cannot stat %s", path)
                                   : refuse_block_device(path, &status);
    if (error)
        close(opened);
    else
        *descriptor = opened;
    return error;
}
