/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way down from the folder of an extraction. openat2(2) lets the kernel refuse links and
 * whatever else would lead out; where there is none, each name is opened by itself and no link with
 * it.
 */
#include "export/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

enum {
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    TRIES = 16, /* other processes may be renaming directories all the time */
};

static bool is_valid_name(const char *name, size_t length)
{
    bool is_dots = length <= 2 && memcmp(name, "..", length) == 0;
    return length && length <= NAME_MAX && !is_dots && !memchr(name, '\0', length);
}

bool bw_target_path_is_valid(const char *path, size_t length)
{
    const char *end = path + length;
    for (;;) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        const char *name_end = slash ? slash : end;
        if (!is_valid_name(path, (size_t)(name_end - path)))
            return false;
        if (!slash)
            return true;
        path = slash + 1;
    }
}

/* Where the first part of a path ends that is short enough for a system call: at its end or at a
 * '/'. */
static size_t part_length(const char *path)
{
    size_t length = strnlen(path, PATH_MAX - 1);
    if (!path[length] || path[length] == '/')
        return length;
    while (length && path[length - 1] != '/')
        length--;
    return length ? length - 1 : 0;
}

static int open_part_at_once(int directory, const char *part)
{
#ifdef SYS_openat2
    const struct open_how how = {
        .flags = DIRECTORY_FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < TRIES; i++) {
        long opened = syscall(SYS_openat2, directory, part, &how, sizeof how);
        if (opened >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)opened;
    }
    return -1;
#else
    (void)directory, (void)part;
    errno = ENOSYS;
    return -1;
#endif
}

/* Of the descriptors on the way only the last one stays open. */
static int step(int directory, bool owned, const char *name)
{
    int opened = openat(directory, name, DIRECTORY_FLAGS);
    int problem = errno;
    if (owned)
        close(directory);
    errno = problem;
    return opened;
}

static int open_part_by_steps(int directory, char *part)
{
    bool owned = false;
    char *slash;
    for (; (slash = strchr(part, '/')); part = slash + 1, owned = true) {
        *slash = '\0';
        directory = step(directory, owned, part);
        if (directory < 0)
            return -1;
    }
    return step(directory, owned, part);
}

static int open_part(int directory, char *part, bool step_by_step)
{
    int opened = step_by_step ? -1 : open_part_at_once(directory, part);
    /* Some sandboxes answer EPERM for calls they do not know. */
    bool lacking =
        step_by_step || (opened < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG));
    return lacking ? open_part_by_steps(directory, part) : opened;
}

int bw_target_open_below(int folder, const char *path, bool step_by_step)
{
    char part[PATH_MAX];
    int directory = folder;
    while (*path) {
        size_t length = part_length(path);
        memcpy(part, path, length);
        part[length] = '\0';
        int opened = open_part(directory, part, step_by_step);
        int problem = errno;
        if (directory != folder)
            close(directory);
        errno = problem;
        if (opened < 0)
            return -1;
        directory = opened;
        path += length + (path[length] == '/');
    }
    return directory == folder ? fcntl(folder, F_DUPFD_CLOEXEC, 0) : directory;
}
