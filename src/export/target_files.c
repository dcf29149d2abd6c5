/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes directories, links, nodes and regular files by their last names in the current directory of
 * a target. Nothing is replaced: a name that exists is an error, unless an earlier run has made the
 * same there.
 *
 * A regular file gets its name only when it is complete. Where files without a name do not exist,
 * it has a temporary one meanwhile.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/whole_io.h"
#include "export/target.h"

/* Directories, links and nodes. */

/* Whether names may be case-insensitive: target->name with its first letter in the other case is
 * the same file. This may also be the case by chance. */
static bool may_ignore_case(const struct bw_target *target)
{
    char other[sizeof target->name];
    struct stat here, there;
    bool ascii = true;
    size_t letter = SIZE_MAX;
    memcpy(other, target->name, sizeof other);
    for (size_t i = 0; other[i]; i++) {
        ascii = ascii && !(other[i] & 0x80);
        if (letter == SIZE_MAX && ((other[i] | 0x20) >= 'a' && (other[i] | 0x20) <= 'z'))
            letter = i;
    }
    if (letter == SIZE_MAX)
        return !ascii;
    other[letter] ^= 0x20;
    return fstatat(target->directory, other, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(target->directory, target->name, &here, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Whether the current directory contains target->name in exactly this case. Reading the whole
 * directory takes long, so it is read only if names may be case-insensitive. */
static bool lists_name(const struct bw_target *target)
{
    if (!may_ignore_case(target))
        return true;
    int opened = openat(target->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = opened < 0 ? NULL : fdopendir(opened);
    if (!directory) {
        if (opened >= 0)
            close(opened);
        return true;
    }
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(directory));)
        found = strcmp(entry->d_name, target->name) == 0;
    closedir(directory);
    return found;
}

/* The error for a name that exists already. Mentions it if that name differs in case. */
static struct bw_error *exists_error(const struct bw_target *target, const char *path,
                                     size_t length)
{
    return bw_target_error(
        EEXIST,
        lists_name(target) ? "not written" : "not written: a name that differs only in case exists",
        path, length);
}

/* Gets the status of target->name without following links; false if it does not exist. */
static bool name_exists(const struct bw_target *target, struct stat *status)
{
    return fstatat(target->directory, target->name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether the user can create, list and open files in a directory. */
static bool is_usable(const struct bw_target *target, const struct stat *status)
{
    return target->privileged || (status->st_mode & 0700) == 0700;
}

struct bw_error *bw_target_make_directory(struct bw_target *target, const char *path, size_t length,
                                          const struct bw_inode *inode, bool *ours)
{
    struct stat status;
    BW_TRY(bw_target_enter(target, path, length));
    *ours = mkdirat(target->directory, target->name, 0700) == 0;
    if (*ours)
        return NULL;
    if (errno != EEXIST)
        return bw_target_error(errno, "cannot make the directory", path, length);
    if (!name_exists(target, &status) || !S_ISDIR(status.st_mode) || !lists_name(target))
        return exists_error(target, path, length);

    /* Whether an earlier run made it. Either it is unfinished, with mode 0700; or finished, and
     * nothing was created in it since: its time has not changed, or the user could not have done
     * it. */
    const bool is_unfinished = status.st_uid == geteuid() && (status.st_mode & 07777) == 0700;
    const bool is_finished =
        inode && bw_target_has_permissions(target, &status, inode) &&
        (!is_usable(target, &status) || bw_target_is_same_time(&status.st_mtim, &inode->mtime));
    *ours = target->options.skip_existing && (is_unfinished || is_finished);
    if (*ours && !is_usable(target, &status) &&
        fchmodat(target->directory, target->name, 0700, AT_SYMLINK_NOFOLLOW))
        return bw_target_error(errno, "cannot open the directory for the user", path, length);
    return NULL;
}

struct bw_error *bw_target_make_replacing(struct bw_target *target, const char *path, size_t length,
                                          struct bw_error *(*make)(void *context, const char *path,
                                                                   size_t length),
                                          void *context)
{
    for (size_t end = 0; end < length; end++) {
        struct stat status;
        if (path[end] != '/')
            continue;
        BW_TRY(bw_target_enter(target, path, end));
        /* a file of another type makes the next step fail */
        if (!name_exists(target, &status) ||
            (S_ISDIR(status.st_mode) && !is_usable(target, &status)))
            BW_TRY(make(context, path, end));
    }
    return NULL;
}

/* Opens target->name, which was just made, or existed and must be the same kind of file. */
static struct bw_error *open_itself(const struct bw_target *target, const char *path, size_t length,
                                    const struct stat *wanted, bool made, int *descriptor)
{
    struct stat status;
    *descriptor = openat(target->directory, target->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (*descriptor < 0)
        return bw_target_error(errno, "cannot restore its attributes", path, length);
    bool same = fstat(*descriptor, &status) == 0 && (status.st_mode & S_IFMT) == wanted->st_mode &&
                status.st_rdev == wanted->st_rdev && (!made || status.st_nlink == 1);
    if (same)
        return NULL;
    close(*descriptor);
    *descriptor = -1;
    return made ? bw_target_error(ESTALE, "it has been replaced", path, length)
                : exists_error(target, path, length);
}

struct bw_error *bw_target_make_symlink(struct bw_target *target, const char *path, size_t length,
                                        const char *link, int *descriptor)
{
    const struct stat wanted = {.st_mode = S_IFLNK};
    *descriptor = -1;
    BW_TRY(bw_target_enter(target, path, length));
    bool made = symlinkat(link, target->directory, target->name) == 0;
    if (!made && errno != EEXIST)
        return bw_target_error(errno, "cannot make the symbolic link", path, length);
    if (!made) {
        char found[4096];
        const ssize_t found_length =
            readlinkat(target->directory, target->name, found, sizeof found);
        const bool is_same = found_length >= 0 && (size_t)found_length == strlen(link) &&
                             memcmp(found, link, (size_t)found_length) == 0;
        if (!target->options.skip_existing || !is_same)
            return exists_error(target, path, length);
    }
    return open_itself(target, path, length, &wanted, made, descriptor);
}

struct bw_error *bw_target_make_node(struct bw_target *target, const char *path, size_t length,
                                     mode_t type, dev_t device, int *descriptor)
{
    const struct stat wanted = {.st_mode = type, .st_rdev = device};
    const bool is_device = device || S_ISBLK(type);
    *descriptor = -1;
    if (is_device && !target->options.preserve)
        return bw_error_create(BW_ERROR_SYSTEM,
                               "/%.*s: device nodes are made only with the option preserve",
                               (int)length, path);
    BW_TRY(bw_target_enter(target, path, length));
    const bool made = mknodat(target->directory, target->name, type | 0600, device) == 0;
    int reason = made ? 0 : errno;
    if (reason == EPERM && is_device)
        return bw_error_create(BW_ERROR_SYSTEM, "/%.*s: only root can make device nodes",
                               (int)length, path);
    /* FUSE drivers of FAT and exFAT make an empty file instead, which the kernel rejects. */
    struct stat status;
    if (reason == EIO && name_exists(target, &status) && S_ISREG(status.st_mode) &&
        status.st_size == 0 && unlinkat(target->directory, target->name, 0) == 0)
        reason = EOPNOTSUPP;
    if (reason && reason != EEXIST)
        return bw_target_error(reason, "cannot make the special file", path, length);
    if (!made && !target->options.skip_existing)
        return exists_error(target, path, length);
    return open_itself(target, path, length, &wanted, made, descriptor);
}

struct bw_error *bw_target_make_link(struct bw_target *target, const char *path, size_t length,
                                     const char *existing, size_t existing_length)
{
    /* The directory and the last name of the file, before the target enters the other directory. */
    char name[sizeof target->name];
    BW_TRY(bw_target_enter(target, existing, existing_length));
    memcpy(name, target->name, sizeof target->name);
    const int directory = fcntl(target->directory, F_DUPFD_CLOEXEC, 0);
    if (directory < 0)
        return bw_target_error(errno, "cannot open its directory", existing, existing_length);

    struct bw_error *error = bw_target_enter(target, path, length);
    if (!error && linkat(directory, name, target->directory, target->name, 0)) {
        struct stat here, there;
        if (errno != EEXIST)
            error = bw_target_error(errno, "cannot make the hard link", path, length);
        else if (!target->options.skip_existing || !name_exists(target, &here) ||
                 fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) ||
                 here.st_dev != there.st_dev || here.st_ino != there.st_ino)
            error = exists_error(target, path, length);
    }
    close(directory);
    return error;
}

/*
 * Writing a file without a name (O_TMPFILE), and linking it when it is complete. File systems
 * without such files get a temporary name, which is renamed.
 */

enum { TEMPORARY_TRIES = 100 };

/* Whether the file system stores `wanted` as `there`, because it cannot represent it. A file that
 * is made for this question shows it, where files without names are possible. */
static bool is_stored_time(const struct bw_target *target, const struct timespec *there,
                           const struct timespec *wanted)
{
    const struct timespec times[2] = {*wanted, *wanted};
    struct stat status;
    if (bw_target_is_always_stored(wanted) || target->options.step_by_step)
        return false;
    const int tried = openat(target->directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (tried < 0)
        return false;
    const bool is_same = !futimens(tried, times) && !fstat(tried, &status) &&
                         bw_target_is_same_time(there, &status.st_mtim);
    close(tried);
    return is_same;
}

bool bw_target_has_file(struct bw_target *target, const char *path, size_t length, uint64_t size,
                        const struct timespec *mtime)
{
    struct stat status;
    BW_AUTO_ERROR struct bw_error *error = bw_target_enter(target, path, length);
    return !error && name_exists(target, &status) && S_ISREG(status.st_mode) &&
           (uint64_t)status.st_size == size &&
           (bw_target_is_same_time(&status.st_mtim, mtime) ||
            is_stored_time(target, &status.st_mtim, mtime));
}

/* Removes the temporary file of an earlier run, unless it is locked because that run has not
 * ended. */
static bool remove_leftover(const struct bw_target_file *file)
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

/* Opens a file with a temporary name. The name is derived from the final name, so a later run finds
 * it if this one is killed. The seed distinguishes extractions of different images. */
static int open_temporary(struct bw_target_file *file)
{
    const struct bw_target *target = file->target;
    for (unsigned attempt = 0; attempt < TEMPORARY_TRIES; attempt++) {
        const XXH64_hash_t hash =
            XXH64(target->name, strlen(target->name), target->options.seed + attempt);
        snprintf(file->temporary, sizeof file->temporary, ".btrfs-walk-%016" PRIx64 ".part", hash);
        bool again = true;
        for (unsigned i = 0; again && i < 2; i++) {
            int opened = openat(target->directory, file->temporary,
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
            atomic_store(&file->named, opened >= 0);
            if (opened >= 0)
                flock(opened, LOCK_EX | LOCK_NB);
            if (opened >= 0 || errno != EEXIST)
                return opened;
            again = remove_leftover(file);
        }
    }
    errno = EEXIST;
    return -1;
}

struct bw_error *bw_target_file_begin(struct bw_target *target, const char *path, size_t length,
                                      const struct bw_inode *inode, struct bw_target_file *file)
{
    struct stat status;
    file->target = target;
    file->descriptor = -1;
    file->end = 0;
    atomic_store(&file->named, false);
    BW_TRY(bw_target_enter(target, path, length));
    /* check now, not after everything was written */
    if (name_exists(target, &status))
        return exists_error(target, path, length);
    if (errno == ENAMETOOLONG)
        return bw_target_error(errno, "cannot make the file", path, length);
    bool lacks_unnamed = target->options.step_by_step;
    if (!lacks_unnamed) {
        file->descriptor = openat(target->directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
        lacks_unnamed = file->descriptor < 0 && (errno == EOPNOTSUPP || errno == EISDIR ||
                                                 errno == ENOENT || errno == EINVAL);
    }
    if (lacks_unnamed)
        file->descriptor = open_temporary(file);
    if (file->descriptor < 0)
        return bw_target_error(errno, "cannot make the file", path, length);
    bw_target_set_flags(file->descriptor, inode, BW_FLAGS_EMPTY);
    return NULL;
}

/* Returns errno of a write at `offset`, or of a new size. If the file system stores holes, and has
 * no space for the holes of this file, it returns EFBIG: other files may fit. */
static int growth_problem(const struct bw_target_file *file, uint64_t offset)
{
    const int problem = errno;
    if (problem == ENOSPC && offset > file->end && ftruncate(file->descriptor, (off_t)offset))
        return errno == ENOSPC ? EFBIG : errno;
    return problem;
}

struct bw_error *bw_target_file_write(struct bw_target_file *file, uint64_t offset,
                                      const void *bytes, size_t length)
{
    if (!bw_write_at(file->descriptor, bytes, length, offset))
        return bw_error_from_errno(growth_problem(file, offset), "cannot write");
    file->end = bw_max(file->end, offset + length);
    return NULL;
}

void bw_target_file_remove(const struct bw_target_file *file)
{
    if (atomic_load(&file->named))
        unlinkat(file->target->directory, file->temporary, 0);
}

void bw_target_file_abandon(struct bw_target_file *file)
{
    bw_target_file_remove(file);
    atomic_store(&file->named, false);
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

/* Links a file that has no name yet. */
static int link_unnamed(const struct bw_target_file *file)
{
    char number[40];
    snprintf(number, sizeof number, "/proc/self/fd/%d", file->descriptor);
    int result =
        linkat(AT_FDCWD, number, file->target->directory, file->target->name, AT_SYMLINK_FOLLOW);
    if (result && errno == ENOENT) /* without /proc; root may do this */
        result = linkat(file->descriptor, "", file->target->directory, file->target->name,
                        AT_EMPTY_PATH);
    return result;
}

static int rename_temporary(struct bw_target_file *file)
{
    const struct bw_target *target = file->target;
    const int result = bw_rename_new(target->directory, file->temporary, target->name,
                                     target->options.step_by_step);
    if (!result)
        atomic_store(&file->named, false);
    return result;
}

static struct bw_error *close_written(struct bw_target_file *file, const char *path, size_t length)
{
    const int descriptor = file->descriptor;
    file->descriptor = -1;
    return close(descriptor) ? bw_target_error(errno, "cannot write", path, length) : NULL;
}

struct bw_error *bw_target_file_finish(struct bw_target_file *file, const char *path, size_t length,
                                       uint64_t size, const struct bw_target_attributes *attributes)
{
    struct bw_error *error = NULL;
    if (size != file->end && ftruncate(file->descriptor, (off_t)size))
        error = bw_target_error(growth_problem(file, size), "cannot set its size", path, length);
    if (!error)
        bw_target_restore(file->target, file->descriptor, path, length, attributes);
    /* Some file systems, such as NFS, report only here that a disk is full. A file without a name
     * must get its name first. */
    if (!error && file->named)
        error = close_written(file, path, length);
    if (!error && (file->named ? rename_temporary(file) : link_unnamed(file))) {
        error = errno == EEXIST ? exists_error(file->target, path, length)
                                : bw_target_error(errno, "cannot give it its name", path, length);
    } else if (!error && file->descriptor >= 0) {
        error = close_written(file, path, length);
        if (error) /* its contents are not complete */
            unlinkat(file->target->directory, file->target->name, 0);
    }
    bw_target_file_abandon(file);
    return error;
}

/* Restoring the last attributes. */

/* Opens a directory or regular file for its last attributes. Reports an error if it is another type
 * of file by now. `length` is 0 for the folder itself. */
static int open_again(struct bw_target *target, const char *path, size_t length,
                      const struct bw_inode *inode, struct stat *status)
{
    static const int how = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    struct bw_error *error = length ? bw_target_enter(target, path, length) : NULL;
    int descriptor = -1;
    if (!error) {
        descriptor = length ? openat(target->directory, target->name, how)
                            : openat(target->folder, ".", how);
        errno = descriptor < 0 ? errno : ESTALE;
        if (descriptor >= 0 && fstat(descriptor, status) == 0 &&
            (status->st_mode & S_IFMT) == (inode->mode & S_IFMT))
            return descriptor;
        error = bw_target_error(errno, "cannot restore its attributes", path, length);
    }
    if (descriptor >= 0)
        close(descriptor);
    target->options.missed(target->options.context, error);
    return -1;
}

void bw_target_restore_last(struct bw_target *target, const char *path, size_t length,
                            const struct bw_target_attributes *attributes)
{
    struct stat status;
    int descriptor = open_again(target, path, length, attributes->inode, &status);
    if (descriptor < 0)
        return;
    bw_target_restore_end(target, descriptor, &status, path, length, attributes);
    close(descriptor);
}
