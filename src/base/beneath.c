/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening and renaming files beneath a directory. */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

enum {
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY,
    TRIES = 16, /* because other processes may rename directories all the time */
};

/* The length of the first part of a path that is short enough for a system call; it ends at a '/'
 * or at the end. */
static size_t part_length(const char *path)
{
    size_t length = strnlen(path, PATH_MAX - 1);
    if (!path[length] || path[length] == '/')
        return length;
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

static int open_part_at_once(int directory, const char *part, int flags)
{
#ifdef SYS_openat2
    const struct open_how how = {
        .flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < TRIES; i++) {
        long opened = syscall(SYS_openat2, directory, part, &how, sizeof how);
        if (opened >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)opened;
    }
    return -1;
#else
    (void)directory, (void)part, (void)flags;
    errno = ENOSYS;
    return -1;
#endif
}

/* Closes a descriptor without a change of errno. */
static void close_silently(int descriptor)
{
    const int problem = errno;
    close(descriptor);
    errno = problem;
}

/* Opens the next component; closes the previous descriptor if it is `owned`. */
static int open_component(int directory, bool owned, const char *name, int flags)
{
    int opened = -1;
    if (strcmp(name, "..") == 0)
        errno = EXDEV;
    else
        opened = openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (owned)
        close_silently(directory);
    return opened;
}

static int open_part_by_steps(int directory, char *part, int flags)
{
    bool owned = false;
    char *slash;
    if (*part == '/') {
        errno = EXDEV;
        return -1;
    }
    for (; (slash = strchr(part, '/')); part = slash + 1, owned = true) {
        *slash = '\0';
        directory = open_component(directory, owned, part, DIRECTORY_FLAGS);
        if (directory < 0)
            return -1;
    }
    return open_component(directory, owned, part, flags);
}

int bw_open_beneath(int directory, const char *path, int flags, bool step_by_step)
{
    char part[PATH_MAX];
    int last = directory;
    do {
        const size_t length = part_length(path);
        memcpy(part, path, length);
        part[length] = '\0';
        path += length + (path[length] == '/');
        const int part_flags = *path ? DIRECTORY_FLAGS : flags;
        int opened = step_by_step ? -1 : open_part_at_once(last, part, part_flags);
        /* some sandboxes return EPERM for unknown system calls */
        if (step_by_step || (opened < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG)))
            opened = open_part_by_steps(last, part, part_flags);
        if (last != directory)
            close_silently(last);
        last = opened;
    } while (last >= 0 && *path);
    return last;
}

int bw_open_sole(int directory, const char *name)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct stat status;
    for (int i = 0; i < TRIES; i++) { /* because other processes may remove or make the file */
        int opened = openat(directory, name, flags | O_CREAT | O_EXCL, 0666);
        if (opened >= 0 || errno != EEXIST)
            return opened;
        opened = openat(directory, name, flags);
        if (opened < 0 && errno == ENOENT)
            continue;
        if (opened < 0)
            return -1;
        if (fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink <= 1)
            return opened;
        close(opened);
        break;
    }
    errno = EEXIST;
    return -1;
}

/* Without links and the flag of renameat2(2), as on FAT in user space: an empty file takes the name
 * first, so that nothing else is replaced. */
static int rename_over_placeholder(int directory, const char *name, const char *new_name)
{
    const int placeholder =
        openat(directory, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (placeholder < 0)
        return -1;
    close(placeholder);
    const int result = renameat(directory, name, directory, new_name);
    const int problem = errno;
    if (result)
        unlinkat(directory, new_name, 0);
    errno = problem;
    return result;
}

int bw_rename_new(int directory, const char *name, const char *new_name, bool step_by_step)
{
    int result = -1;
    errno = EINVAL;
    if (!step_by_step)
        result =
            (int)syscall(SYS_renameat2, directory, name, directory, new_name, RENAME_NOREPLACE);
    if (!result || (errno != EINVAL && errno != ENOSYS))
        return result;
    result = linkat(directory, name, directory, new_name, 0);
    if (!result)
        unlinkat(directory, name, 0);
    else if (errno == EPERM || errno == ENOSYS || errno == EOPNOTSUPP)
        result = rename_over_placeholder(directory, name, new_name);
    return result;
}
