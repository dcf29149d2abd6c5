/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Zeros for stdout. If it is a regular file, written at its end, long ranges of zeros become holes,
 * which cost only a seek.
 */
#include "cli/inspect/zeros.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { ZEROS = 256 << 10, SHORTEST_HOLE = 64 << 10 };

static bool can_seek(void)
{
    struct stat status;
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    off_t at = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    return flags >= 0 && !(flags & O_APPEND) && at >= 0 && fstat(STDOUT_FILENO, &status) == 0 &&
           S_ISREG(status.st_mode) && status.st_size <= at;
}

static struct bw_error *seek_forward(struct cmd_zeros *zeros, uint64_t length)
{
    off_t at = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (at < 0 || length > (uint64_t)(INT64_MAX - at))
        return bw_error_from_errno(at < 0 ? errno : EFBIG, "cannot write to stdout");
    if (lseek(STDOUT_FILENO, (off_t)length, SEEK_CUR) < 0)
        return bw_error_from_errno(errno, "cannot write to stdout");
    zeros->open = true;
    return NULL;
}

struct bw_error *cmd_write_zeros(struct cmd_zeros *zeros, struct cmd_output *output,
                                 uint64_t length)
{
    static const char bytes[ZEROS];
    if (length >= SHORTEST_HOLE && (!zeros->is_tested || zeros->sparse)) {
        BW_TRY(cmd_flush(output));
        if (!zeros->is_tested)
            zeros->sparse = can_seek();
        zeros->is_tested = true;
        if (zeros->sparse)
            return seek_forward(zeros, length);
    }
    while (length) {
        size_t part = length < ZEROS ? (size_t)length : ZEROS;
        BW_TRY(cmd_write(output, bytes, part));
        length -= part;
    }
    return NULL;
}

struct bw_error *cmd_end_zeros(struct cmd_zeros *zeros, struct cmd_output *output)
{
    if (!zeros->open)
        return NULL;
    BW_TRY(cmd_flush(output));
    struct stat status;
    off_t at = lseek(STDOUT_FILENO, 0, SEEK_CUR);
    if (at < 0 || fstat(STDOUT_FILENO, &status) ||
        (status.st_size < at && ftruncate(STDOUT_FILENO, at)))
        return bw_error_from_errno(errno, "cannot write to stdout");
    return NULL;
}
