/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making directories, links and nodes in the folder of an extraction; each by its name in a
 * directory that is held open. */
#include "export/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"

struct bw_error *bw_target_error(int number, const char *what, const char *path, size_t length)
{
    return bw_error_from_errno(number, "/%.*s: %s", (int)length, path, what);
}

/* Goes on in a directory that was opened. */
static void use_directory(struct bw_target *target, int directory)
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
    use_directory(target, target->folder);
    bw_buffer_append_byte(&target->path, '\0');
    if (target->path.failed) {
        bw_target_close(target);
        return bw_error_no_memory();
    }
    return NULL;
}

static void leave(struct bw_target *target)
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
    leave(target);
    if (target->folder >= 0)
        close(target->folder);
    bw_buffer_free(&target->path);
    *target = (struct bw_target){.folder = -1, .directory = -1};
}

/* Opens a directory, unless it is the one that is open; `length` is that of its path. */
static struct bw_error *enter_directory(struct bw_target *target, const char *path, size_t length)
{
    if (target->path.length == length + 1 && memcmp(target->path.data, path, length) == 0)
        return NULL;
    leave(target);
    target->path.length = 0;
    bw_buffer_append(&target->path, path, length);
    bw_buffer_append_byte(&target->path, '\0');
    if (target->path.failed)
        return bw_error_no_memory();
    int opened = length ? bw_target_open_below(target->folder, target->path.data,
                                               target->options.step_by_step)
                        : target->folder;
    if (opened >= 0) {
        use_directory(target, opened);
        return NULL;
    }
    int problem = errno;
    leave(target);
    use_directory(target, target->folder);
    return bw_target_error(problem, "cannot open its directory", path, length);
}

struct bw_error *bw_target_enter(struct bw_target *target, const char *path, size_t length)
{
    if (!bw_target_path_is_valid(path, length))
        return bw_error_create(BW_ERROR_CORRUPT, "/%.*s: no file can have such a name", (int)length,
                               path);
    const char *slash = memrchr(path, '/', length);
    const char *name = slash ? slash + 1 : path;
    size_t name_length = (size_t)(path + length - name);
    BW_TRY(enter_directory(target, path, slash ? (size_t)(slash - path) : 0));
    memcpy(target->name, name, name_length);
    target->name[name_length] = '\0';
    return NULL;
}

/* Whether target->name with its first letter in the other case is the same file: only where case
 * means nothing, or by chance. */
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

/* Whether the open directory lists target->name in exactly these letters. To read all of it takes
 * its time, so that is done only where it can be otherwise. */
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

struct bw_error *bw_target_taken(const struct bw_target *target, const char *path, size_t length)
{
    return bw_target_error(EEXIST,
                           lists_name(target)
                               ? "not written"
                               : "not written: a name that differs only in letters is there",
                           path, length);
}

/* What is there under target->name, links not followed; false if nothing is. */
static bool exists(const struct bw_target *target, struct stat *status)
{
    return fstatat(target->directory, target->name, status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether the user can make, list and open things in a directory. */
static bool is_usable(const struct bw_target *target, const struct stat *status)
{
    return target->privileged || (status->st_mode & 0700) == 0700;
}

/* Whether an earlier run has left a directory, which is there: unfinished, or finished, and then
 * nothing was made in it since, or could have been. */
static bool was_left(const struct bw_target *target, const struct stat *status,
                     const struct bw_inode *inode)
{
    if (!target->options.skip_existing)
        return false;
    if (status->st_uid == geteuid() && (status->st_mode & 07777) == 0700)
        return true;
    if (!inode || !bw_target_has_permissions(target, status, inode))
        return false;
    return !is_usable(target, status) || bw_target_is_same_time(&status->st_mtim, &inode->mtime);
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
    if (!exists(target, &status) || !S_ISDIR(status.st_mode) || !lists_name(target))
        return bw_target_taken(target, path, length);
    *ours = was_left(target, &status, inode);
    if (*ours && !is_usable(target, &status) &&
        fchmodat(target->directory, target->name, 0700, AT_SYMLINK_NOFOLLOW))
        return bw_target_error(errno, "cannot open the directory for the user", path, length);
    return NULL;
}

struct bw_error *bw_target_make_way(struct bw_target *target, const char *path, size_t length,
                                    struct bw_error *(*make)(void *context, const char *path,
                                                             size_t length),
                                    void *context)
{
    for (size_t end = 0; end < length; end++) {
        struct stat status;
        if (path[end] != '/')
            continue;
        BW_TRY(bw_target_enter(target, path, end));
        /* If it is not a directory, the next step fails. */
        if (!exists(target, &status) || (S_ISDIR(status.st_mode) && !is_usable(target, &status)))
            BW_TRY(make(context, path, end));
    }
    return NULL;
}

/* A descriptor of what was made under target->name, or of what was there and is the same. */
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
                : bw_target_taken(target, path, length);
}

static bool is_link_to(const struct bw_target *target, const char *link)
{
    char found[4096];
    ssize_t length = readlinkat(target->directory, target->name, found, sizeof found);
    return length >= 0 && (size_t)length == strlen(link) &&
           memcmp(found, link, (size_t)length) == 0;
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
    if (!made && (!target->options.skip_existing || !is_link_to(target, link)))
        return bw_target_taken(target, path, length);
    return open_itself(target, path, length, &wanted, made, descriptor);
}

struct bw_error *bw_target_make_node(struct bw_target *target, const char *path, size_t length,
                                     mode_t type, dev_t device, int *descriptor)
{
    const struct stat wanted = {.st_mode = type, .st_rdev = device};
    *descriptor = -1;
    if (device && !target->options.preserve)
        return bw_target_error(EPERM, "cannot make the device node", path, length);
    BW_TRY(bw_target_enter(target, path, length));
    bool made = mknodat(target->directory, target->name, type | 0600, device) == 0;
    if (!made && errno != EEXIST)
        return bw_target_error(errno, "cannot make the special file", path, length);
    if (!made && !target->options.skip_existing)
        return bw_target_taken(target, path, length);
    return open_itself(target, path, length, &wanted, made, descriptor);
}

/* A second descriptor of the directory that `existing` is in, and its last name. */
static struct bw_error *open_existing(struct bw_target *target, const char *existing, size_t length,
                                      int *directory, char name[static sizeof target->name])
{
    BW_TRY(bw_target_enter(target, existing, length));
    memcpy(name, target->name, sizeof target->name);
    *directory = fcntl(target->directory, F_DUPFD_CLOEXEC, 0);
    return *directory < 0 ? bw_target_error(errno, "cannot open its directory", existing, length)
                          : NULL;
}

static bool is_same_file(const struct bw_target *target, int directory, const char *name)
{
    struct stat here, there;
    return exists(target, &here) && fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static struct bw_error *link_to(struct bw_target *target, const char *path, size_t length,
                                int directory, const char *name)
{
    BW_TRY(bw_target_enter(target, path, length));
    if (linkat(directory, name, target->directory, target->name, 0) == 0)
        return NULL;
    if (errno != EEXIST)
        return bw_target_error(errno, "cannot make the hard link", path, length);
    return target->options.skip_existing && is_same_file(target, directory, name)
               ? NULL
               : bw_target_taken(target, path, length);
}

struct bw_error *bw_target_make_link(struct bw_target *target, const char *path, size_t length,
                                     const char *existing, size_t existing_length)
{
    int directory;
    char name[sizeof target->name];
    BW_TRY(open_existing(target, existing, existing_length, &directory, name));
    struct bw_error *error = link_to(target, path, length, directory, name);
    close(directory);
    return error;
}
