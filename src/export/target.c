/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the folder of an extraction and the directories below it. One directory is kept open. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/inode.h"
#include "export/target.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

/*
 * Opening directories below the folder of an extraction. openat2(2) makes the kernel refuse links
 * and all other ways out of the folder. Without it, each component of a path is opened separately,
 * without following links.
 */

enum {
    DIRECTORY_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
    TRIES = 16, /* because other processes may rename directories all the time */
};

static bool is_valid_name(const char *name, size_t length)
{
    bool is_dots = length <= 2 && memcmp(name, "..", length) == 0;
    return length && length <= NAME_MAX && !is_dots && !memchr(name, '\0', length);
}

/* Whether each component of a relative path is a valid name. */
static bool path_is_valid(const char *path, size_t length)
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

/* Opens the next component; closes the previous descriptor if it is `owned`. */
static int open_component(int directory, bool owned, const char *name)
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
        directory = open_component(directory, owned, part);
        if (directory < 0)
            return -1;
    }
    return open_component(directory, owned, part);
}

static int open_part(int directory, char *part, bool step_by_step)
{
    int opened = step_by_step ? -1 : open_part_at_once(directory, part);
    /* some sandboxes return EPERM for unknown system calls */
    bool lacking =
        step_by_step || (opened < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG));
    return lacking ? open_part_by_steps(directory, part) : opened;
}

/*
 * Opens a directory below `folder` for reading; `path` is valid and NUL-terminated. Does not follow
 * links. `step_by_step`: do not use openat2(2). Returns -1 with errno: ELOOP or ENOTDIR if a
 * component is a link.
 */
static int open_below(int folder, const char *path, bool step_by_step)
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

/* Makes an opened directory the current one. */
static void set_directory(struct bw_target *target, int directory)
{
    target->directory = directory;
    target->has_default_acl = fgetxattr(directory, BW_ACL_DEFAULT, NULL, 0) > 0;
}

struct bw_error *bw_target_open(const char *path, const struct bw_target_options *options,
                                struct bw_target *target)
{
    *target = (struct bw_target){
        .options = *options, .folder = -1, .directory = -1, .privileged = geteuid() == 0};
    target->is_new = mkdir(path, 0777) == 0;
    if (!target->is_new && errno != EEXIST)
        return bw_error_from_errno(errno, "cannot make %s", path);
    target->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target->folder < 0)
        return bw_error_from_errno(errno, "cannot open %s as a directory", path);
    set_directory(target, target->folder);
    bw_buffer_append_byte(&target->path, '\0');
    if (target->path.failed) {
        bw_target_close(target);
        return bw_error_no_memory();
    }
    return NULL;
}

static void leave_directory(struct bw_target *target)
{
    if (target->directory != target->folder)
        close(target->directory);
    target->directory = target->folder;
    target->path.length = 0;
    bw_buffer_append_byte(&target->path, '\0');
}

void bw_target_close(struct bw_target *target)
{
    if (!target->path.data && !target->options.missed)
        return;
    leave_directory(target);
    if (target->folder >= 0)
        close(target->folder);
    bw_buffer_free(&target->path);
    *target = (struct bw_target){.folder = -1, .directory = -1};
}

/* Opens a directory, unless it is the current one; `length` is the length of its path. */
static struct bw_error *enter_directory(struct bw_target *target, const char *path, size_t length)
{
    if (target->path.length == length + 1 && memcmp(target->path.data, path, length) == 0)
        return NULL;
    leave_directory(target);
    target->path.length = 0;
    bw_buffer_append(&target->path, path, length);
    bw_buffer_append_byte(&target->path, '\0');
    if (target->path.failed)
        return bw_error_no_memory();
    int opened = length
                     ? open_below(target->folder, target->path.data, target->options.step_by_step)
                     : target->folder;
    if (opened >= 0) {
        set_directory(target, opened);
        return NULL;
    }
    int problem = errno;
    leave_directory(target);
    set_directory(target, target->folder);
    return bw_target_error(problem, "cannot open its directory", path, length);
}

struct bw_error *bw_target_enter(struct bw_target *target, const char *path, size_t length)
{
    if (!path_is_valid(path, length))
        return bw_error_create(BW_ERROR_CORRUPT, "/%.*s: invalid file name", (int)length, path);
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path;
    size_t name_length = (size_t)(path + length - name);
    BW_TRY(enter_directory(target, path, slash ? (size_t)(slash - path) : 0));
    memcpy(target->name, name, name_length);
    target->name[name_length] = '\0';
    return NULL;
}
