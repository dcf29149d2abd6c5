/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing a file without a name (O_TMPFILE) and linking it where it belongs when it is complete.
 * File systems that have no such files get one with a name of its own, which is renamed.
 */
#include "export/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"

enum { TRIES = 100 };

bool bw_target_has_file(struct bw_target *target, const char *path, size_t length, uint64_t size,
                        const struct timespec *mtime)
{
    struct stat status;
    struct bw_error *error = bw_target_enter(target, path, length);
    if (error) {
        bw_error_free(error);
        return false;
    }
    return fstatat(target->directory, target->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && (uint64_t)status.st_size == size &&
           bw_target_is_same_time(&status.st_mtim, mtime);
}

/* Made of the name that the file gets in the end, so that a later run finds what this one leaves if
 * it is killed. The seed keeps it apart from names that come from other images. */
static void name_temporary(struct bw_target_file *file, unsigned attempt)
{
    const struct bw_target *target = file->target;
    XXH64_hash_t hash = XXH64(target->name, strlen(target->name), target->options.seed + attempt);
    snprintf(file->temporary, sizeof file->temporary, ".btrfs-walk-%016" PRIx64 ".part", hash);
}

/* Removes the temporary file that an earlier run has left; one that is still running holds a lock.
 */
static bool remove_left(const struct bw_target_file *file)
{
    struct stat status;
    int directory = file->target->directory;
    if (!file->target->options.skip_existing)
        return false;
    int left = openat(directory, file->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (left < 0)
        return false;
    bool removed = fstat(left, &status) == 0 && S_ISREG(status.st_mode) &&
                   status.st_uid == geteuid() && flock(left, LOCK_EX | LOCK_NB) == 0 &&
                   unlinkat(directory, file->temporary, 0) == 0;
    close(left);
    return removed;
}

static int open_temporary(struct bw_target_file *file)
{
    for (unsigned attempt = 0; attempt < TRIES; attempt++) {
        bool again = true;
        name_temporary(file, attempt);
        for (unsigned i = 0; again && i < 2; i++) {
            int opened = openat(file->target->directory, file->temporary,
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
            if (opened >= 0)
                flock(opened, LOCK_EX | LOCK_NB);
            if (opened >= 0 || errno != EEXIST)
                return opened;
            again = remove_left(file);
        }
    }
    errno = EEXIST;
    return -1;
}

static int open_unnamed(const struct bw_target *target)
{
    if (target->options.step_by_step) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(target->directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

struct bw_error *bw_target_file_begin(struct bw_target *target, const char *path, size_t length,
                                      const struct bw_inode *inode, struct bw_target_file *file)
{
    struct stat status;
    *file = (struct bw_target_file){.target = target, .descriptor = -1};
    BW_TRY(bw_target_enter(target, path, length));
    /* Found out at once, and not when all is written. */
    if (fstatat(target->directory, target->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return bw_target_taken(target, path, length);
    if (errno == ENAMETOOLONG)
        return bw_target_error(errno, "cannot make the file", path, length);
    file->descriptor = open_unnamed(target);
    if (file->descriptor < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
        file->descriptor = open_temporary(file);
    if (file->descriptor < 0) {
        *file->temporary = '\0'; /* if it is there, it is another one's */
        return bw_target_error(errno, "cannot make the file", path, length);
    }
    bw_target_set_flags(file->descriptor, inode, BW_FLAGS_EMPTY);
    return NULL;
}

struct bw_error *bw_target_file_write(struct bw_target_file *file, uint64_t offset,
                                      const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        ssize_t written = pwrite(file->descriptor, next, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return bw_error_from_errno(written ? errno : EIO, "cannot write");
        next += written;
        offset += (uint64_t)written;
        length -= (size_t)written;
        file->end = offset > file->end ? offset : file->end;
    }
    return NULL;
}

void bw_target_file_remove(const struct bw_target_file *file)
{
    if (*file->temporary)
        unlinkat(file->target->directory, file->temporary, 0);
}

void bw_target_file_abandon(struct bw_target_file *file)
{
    if (file->descriptor < 0)
        return;
    bw_target_file_remove(file);
    *file->temporary = '\0';
    close(file->descriptor);
    file->descriptor = -1;
}

/* Without a name before. */
static int link_unnamed(const struct bw_target_file *file)
{
    char number[40];
    snprintf(number, sizeof number, "/proc/self/fd/%d", file->descriptor);
    int result =
        linkat(AT_FDCWD, number, file->target->directory, file->target->name, AT_SYMLINK_FOLLOW);
    if (result && errno == ENOENT) /* no /proc: root may do it like this */
        result = linkat(file->descriptor, "", file->target->directory, file->target->name,
                        AT_EMPTY_PATH);
    return result;
}

static int rename_temporary(struct bw_target_file *file)
{
    int directory = file->target->directory;
    const char *name = file->target->name;
    int result = -1;
    errno = EINVAL;
    if (!file->target->options.step_by_step)
        result = (int)syscall(SYS_renameat2, directory, file->temporary, directory, name,
                              RENAME_NOREPLACE);
    if (result && (errno == EINVAL || errno == ENOSYS)) {
        result = linkat(directory, file->temporary, directory, name, 0);
        if (result == 0)
            unlinkat(directory, file->temporary, 0);
    }
    if (result == 0)
        *file->temporary = '\0';
    return result;
}

struct bw_error *bw_target_file_finish(struct bw_target_file *file, const char *path, size_t length,
                                       uint64_t size, const struct bw_target_attributes *attributes)
{
    struct bw_error *error = NULL;
    if (size != file->end && ftruncate(file->descriptor, (off_t)size))
        error = bw_target_error(errno, "cannot set its size", path, length);
    if (!error)
        bw_target_restore(file->target, file->descriptor, path, length, attributes);
    if (!error && (*file->temporary ? rename_temporary(file) : link_unnamed(file)))
        error = errno == EEXIST ? bw_target_taken(file->target, path, length)
                                : bw_target_error(errno, "cannot give it its name", path, length);
    bw_target_file_abandon(file);
    return error;
}
