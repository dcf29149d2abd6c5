/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the folder of an extraction and the directories below it. One directory is kept open. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "btrfs-walk/inode.h"
#include "export/target.h"

enum { EXFAT_MAGIC = 0x2011bab0 }; /* of statfs(2); older headers do not name it */

/* Makes an opened directory the current one. */
static void set_directory(struct bw_target *target, int directory)
{
    target->directory = directory;
    target->has_default_acl = fgetxattr(directory, BW_ACL_DEFAULT, NULL, 0) > 0;
}

struct bw_error *bw_target_open(int folder, const struct bw_target_options *options,
                                struct bw_target *target)
{
    *target = (struct bw_target){
        .options = *options, .folder = folder, .directory = -1, .privileged = geteuid() == 0};
    struct statfs system;
    if (fstatfs(folder, &system) == 0)
        target->has_no_owners = system.f_type == MSDOS_SUPER_MAGIC ||
                                system.f_type == EXFAT_MAGIC ||
                                (target->privileged && system.f_type == FUSE_SUPER_MAGIC);
    set_directory(target, target->folder);
    struct bw_error *error = bw_buffer_terminate(&target->path);
    if (error)
        bw_target_close(target);
    return error;
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

struct bw_error *bw_target_sync(const struct bw_target *target)
{
    return syncfs(target->folder) ? bw_error_from_errno(errno, "cannot write the files to the disk")
                                  : NULL;
}

/* Opens a directory, unless it is the current one; `length` is the length of its path. */
static struct bw_error *enter_directory(struct bw_target *target, const char *path, size_t length)
{
    if (target->path.length == length + 1 && memcmp(target->path.data, path, length) == 0)
        return NULL;
    leave_directory(target);
    target->path.length = 0;
    bw_buffer_append(&target->path, path, length);
    BW_TRY(bw_buffer_terminate(&target->path));
    int opened = length ? bw_open_beneath(target->folder, target->path.data, O_RDONLY | O_DIRECTORY,
                                          target->options.step_by_step)
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
    const char *end = path + length, *next = path;
    for (const char *at; next; next = at ? at + 1 : NULL) {
        at = memchr(next, '/', (size_t)(end - next));
        const size_t size = (size_t)((at ? at : end) - next);
        if (!size || size > NAME_MAX || memchr(next, '\0', size) ||
            (size <= 2 && memcmp(next, "..", size) == 0))
            return bw_error_create(BW_ERROR_CORRUPT, "/%.*s: invalid file name", (int)length, path);
    }
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path;
    size_t name_length = (size_t)(end - name);
    BW_TRY(enter_directory(target, path, slash ? (size_t)(slash - path) : 0));
    memcpy(target->name, name, name_length);
    target->name[name_length] = '\0';
    return NULL;
}
