/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks that fill up unnoticed: preloaded, it lets close(2) of every written regular file fail with
 * EDQUOT, as NFS and quotas do; or, with FAIL_SYNC in the environment, fsync(2) and syncfs(2) with
 * EIO.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int close(int descriptor)
{
    static int (*original)(int);
    struct stat status;
    if (!original)
        original = (int (*)(int))dlsym(RTLD_NEXT, "close");
    const int fails = !getenv("FAIL_SYNC") && fstat(descriptor, &status) == 0 &&
                      S_ISREG(status.st_mode) &&
                      (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const int result = original(descriptor);
    if (!fails)
        return result;
    errno = EDQUOT;
    return -1;
}

int fsync(int descriptor)
{
    (void)descriptor;
    errno = EIO;
    return getenv("FAIL_SYNC") ? -1 : 0;
}

int syncfs(int descriptor)
{
    return fsync(descriptor);
}
