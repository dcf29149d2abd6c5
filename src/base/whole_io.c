/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/whole_io.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Without an offset: at the position of the descriptor. */
static bool write_whole(int descriptor, const void *bytes, size_t length, const uint64_t *offset)
{
    const char *next = bytes;
    for (size_t done = 0; done < length;) {
        ssize_t written;
        if (offset)
            written = pwrite(descriptor, next + done, length - done, (off_t)(*offset + done));
        else
            written = write(descriptor, next + done, length - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0)
            errno = EIO;
        if (written == 0 || (written < 0 && errno != EINTR))
            return false;
    }
    return true;
}

static ssize_t read_whole(int descriptor, void *bytes, size_t length, const uint64_t *offset)
{
    char *next = bytes;
    size_t done = 0;
    while (done < length) {
        ssize_t got;
        if (offset)
            got = pread(descriptor, next + done, length - done, (off_t)(*offset + done));
        else
            got = read(descriptor, next + done, length - done);
        if (got == 0)
            break;
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return -1;
    }
    return (ssize_t)done;
}

bool bw_write_all(int descriptor, const void *bytes, size_t length)
{
    return write_whole(descriptor, bytes, length, NULL);
}

bool bw_write_at(int descriptor, const void *bytes, size_t length, uint64_t offset)
{
    return write_whole(descriptor, bytes, length, &offset);
}

ssize_t bw_read_all(int descriptor, void *bytes, size_t length)
{
    return read_whole(descriptor, bytes, length, NULL);
}

ssize_t bw_read_at(int descriptor, void *bytes, size_t length, uint64_t offset)
{
    return read_whole(descriptor, bytes, length, &offset);
}

int bw_memory_file(uint64_t size)
{
    const int file = memfd_create("btrfs-walk", MFD_CLOEXEC);
    if (file < 0 || bw_resize_file(file, size))
        return file;
    const int problem = errno;
    close(file);
    errno = problem;
    return -1;
}

bool bw_file_may_have(uint64_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= size)
        return true;
    errno = EFBIG;
    return false;
}

bool bw_resize_file(int descriptor, uint64_t size)
{
    return bw_file_may_have(size) && ftruncate(descriptor, (off_t)size) == 0;
}
