/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trees of hard links: snapshots on a file system without snapshots. All directories are made
 * again, and every file is linked, so a snapshot costs no space.
 *
 * Before a linked file changes, it is copied under a temporary name; then the copy takes its place.
 * If the stream itself has made links to the file, the new tree has several names of it, and the
 * copy has to replace them all. The times of directories do not change.
 */
#include "stream/linked_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/inode.h"

enum {
    NAMES = 64 << 10, /* bytes of names of attributes that are copied at once */
    TARGET = 4096,
    TRIES = 100,    /* names for a copy */
    DEEPEST = 2000, /* levels of directories, each of which takes descriptors and a part of the
                       stack */
};

static struct bw_error *system_error(const char *problem, const char *name)
{
    return bw_error_from_errno(errno, "%s %s", problem, name);
}

static void cleanup_directory(DIR **directory)
{
    if (*directory)
        closedir(*directory);
}

static DIR *open_listing(int directory, const char *name)
{
    int descriptor = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!listing && descriptor >= 0)
        close(descriptor);
    return listing;
}

/* The next entry; NULL at the end. */
static const char *next_name(DIR *listing)
{
    const struct dirent *entry;
    while ((entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    return NULL;
}

/* Attributes. */

void bw_remove_inherited(int directory, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, name);
    lremovexattr(path, BW_ACL_ACCESS);
    lremovexattr(path, BW_ACL_DEFAULT);
}

/* Copies all attributes of a file, as far as the user may set them. The copy may have inherited an
 * access control list. */
static void copy_attributes(int from, const char *name, int to, const char *new_name,
                            const struct stat *status)
{
    char one[PATH_MAX], other[PATH_MAX], names[NAMES], value[NAMES];
    snprintf(one, sizeof one, "/proc/self/fd/%d/%s", from, name);
    snprintf(other, sizeof other, "/proc/self/fd/%d/%s", to, new_name);
    bool owned = fchownat(to, new_name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) == 0;
    if (!S_ISLNK(status->st_mode))
        bw_remove_inherited(to, new_name);
    const mode_t mode = status->st_mode & (owned ? 07777 : 0777);
    if (!S_ISLNK(status->st_mode) && fchmodat(to, new_name, mode, AT_SYMLINK_NOFOLLOW))
        errno = 0; /* the file system has no modes */
    const ssize_t names_length = llistxattr(one, names, sizeof names);
    for (ssize_t at = 0; at < names_length; at += (ssize_t)strlen(names + at) + 1) {
        const ssize_t length = lgetxattr(one, names + at, value, sizeof value);
        if (length >= 0 && lsetxattr(other, names + at, value, (size_t)length, 0) < 0)
            errno = 0; /* as with the first tree, where the receiver has reported it */
    }
    utimensat(to, new_name, (struct timespec[]){status->st_atim, status->st_mtim},
              AT_SYMLINK_NOFOLLOW);
}

/* Copies of files. */

static struct bw_error *copy_bytes(struct bw_linked_tree *tree, int from, int to, const char *name)
{
    if (ioctl(to, FICLONE, from) == 0)
        return NULL;
    for (off_t at = 0;;) {
        const off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0)
            return errno == ENXIO ? NULL : system_error("cannot copy", name);
        off_t hole = lseek(from, data, SEEK_HOLE), source = data, target = data;
        while (source < hole) {
            ssize_t got = copy_file_range(from, &source, to, &target, (size_t)(hole - source), 0);
            if (got <= 0)
                return got ? system_error("cannot copy", name) : NULL;
            tree->copied += (uint64_t)got;
        }
        at = hole;
    }
}

static struct bw_error *copy_regular(struct bw_linked_tree *tree, int directory, const char *name,
                                     const struct stat *status)
{
    struct bw_error *error = NULL;
    int from = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int to = openat(directory, tree->copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (from < 0 || to < 0 || ftruncate(to, status->st_size))
        error = system_error("cannot copy", name);
    if (!error)
        error = copy_bytes(tree, from, to, name);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) && !error)
        error = system_error("cannot copy", name);
    return error;
}

/* Copies a file to tree->copy in the same directory, a name that no file has. */
static struct bw_error *copy_file(struct bw_linked_tree *tree, int directory, const char *name,
                                  const struct stat *status)
{
    char target[TARGET] = {0};
    int problem = 0;
    struct bw_error *error = NULL;
    struct stat other;
    bool is_free = false;
    for (unsigned i = 0; i < TRIES && !is_free; i++) {
        snprintf(tree->copy, sizeof tree->copy, ".btrfs-walk-copy-%u", i);
        is_free = fstatat(directory, tree->copy, &other, AT_SYMLINK_NOFOLLOW) && errno == ENOENT;
    }
    errno = EEXIST;
    if (!is_free)
        return system_error("cannot make", tree->copy);
    if (S_ISREG(status->st_mode))
        error = copy_regular(tree, directory, name, status);
    else if (S_ISLNK(status->st_mode))
        problem = readlinkat(directory, name, target, sizeof target - 1) < 0 ||
                  symlinkat(target, directory, tree->copy);
    else
        problem = mknodat(directory, tree->copy, status->st_mode, status->st_rdev);
    if (problem)
        error = system_error("cannot copy", name);
    if (error)
        unlinkat(directory, tree->copy, 0);
    else
        copy_attributes(directory, name, directory, tree->copy, status);
    return error;
}

/* Making a tree. */

static struct bw_error *too_deep(const char *name)
{
    return bw_error_create(BW_ERROR_UNSUPPORTED,
                           "%s: cannot link files in more than %d nested directories", name,
                           DEEPEST);
}

/* Makes a directory and all below it, with links to the files. */
static struct bw_error *make_tree(struct bw_linked_tree *tree, int from, const char *name, int to,
                                  const char *new_name)
{
    struct stat status;
    const char *entry;
    struct bw_error *error = NULL;
    if (tree->depth == DEEPEST)
        return too_deep(new_name);
    if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) || mkdirat(to, new_name, 0700))
        return system_error("cannot make", new_name);
    __attribute__((cleanup(cleanup_directory))) DIR *old = open_listing(from, name);
    __attribute__((cleanup(cleanup_directory))) DIR *new = open_listing(to, new_name);
    if (!old || !new)
        return system_error("cannot open", new_name);
    bw_remove_inherited(dirfd(new), "."); /* or new directories in it would inherit it, too */
    tree->depth++;
    while (!error && (entry = next_name(old))) {
        struct stat found;
        if (fstatat(dirfd(old), entry, &found, AT_SYMLINK_NOFOLLOW)) {
            error = system_error("cannot link", entry);
        } else if (S_ISDIR(found.st_mode)) {
            error = make_tree(tree, dirfd(old), entry, dirfd(new), entry);
        } else {
            tree->links++;
            if (linkat(dirfd(old), entry, dirfd(new), entry, 0))
                error = system_error("cannot link", entry);
        }
    }
    tree->depth--;
    copy_attributes(from, name, to, new_name, &status);
    return error;
}

struct bw_error *bw_linked_tree_make(struct bw_linked_tree *tree, int from, int folder,
                                     const char *name)
{
    bw_number_set_free(&tree->own);
    return make_tree(tree, from, ".", folder, name);
}

/* Changing files. */

static struct bw_error *note_inode(struct bw_number_set *set, int directory, const char *name)
{
    struct stat status;
    bool is_new;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? NULL : system_error("cannot read", name); /* was not made */
    return bw_number_set_insert(set, status.st_ino, &is_new);
}

struct bw_error *bw_linked_tree_add(struct bw_linked_tree *tree, int directory, const char *name)
{
    return note_inode(&tree->own, directory, name);
}

struct bw_error *bw_linked_tree_add_link(struct bw_linked_tree *tree, int directory,
                                         const char *name)
{
    return note_inode(&tree->named, directory, name);
}

/* The times of directories do not change when a file takes the place of its original. */

static void restore_times(int directory, const struct stat *status)
{
    futimens(directory, (struct timespec[]){status->st_atim, status->st_mtim});
}

/* Puts links to a file in the place of all names that another one has below a directory, or removes
 * them if `from` is -1. */
static struct bw_error *replace_below(struct bw_linked_tree *tree, int directory, const char *name,
                                      const struct stat *file, int from)
{
    const char *entry;
    struct bw_error *error = NULL;
    if (tree->depth == DEEPEST)
        return too_deep(name);
    __attribute__((cleanup(cleanup_directory))) DIR *listing = open_listing(directory, name);
    if (!listing)
        return system_error("cannot open", name);
    const int below = dirfd(listing);
    struct stat before;
    if (fstat(below, &before))
        return system_error("cannot read", name);
    tree->depth++;
    while (!error && (entry = next_name(listing))) {
        struct stat status;
        if (fstatat(below, entry, &status, AT_SYMLINK_NOFOLLOW))
            error = system_error("cannot read", entry);
        else if (S_ISDIR(status.st_mode))
            error = replace_below(tree, below, entry, file, from);
        else if (status.st_ino == file->st_ino && status.st_dev == file->st_dev &&
                 (unlinkat(below, entry, 0) ||
                  (from >= 0 && linkat(from, tree->copy, below, entry, 0))))
            error = system_error("cannot link", entry);
    }
    tree->depth--;
    restore_times(below, &before);
    return error;
}

struct bw_error *bw_linked_tree_own(struct bw_linked_tree *tree, int top, int directory,
                                    const char *name)
{
    struct stat status, before;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? NULL : system_error("cannot read", name);
    if (S_ISDIR(status.st_mode) || bw_number_set_has(&tree->own, status.st_ino))
        return NULL;
    if (fstat(directory, &before))
        return system_error("cannot read the directory of", name);

    const bool has_links = bw_number_set_has(&tree->named, status.st_ino);
    struct bw_error *error = copy_file(tree, directory, name, &status);
    if (!error)
        error = note_inode(&tree->own, directory, tree->copy);
    if (!error && !has_links && renameat(directory, tree->copy, directory, name))
        error = system_error("cannot replace", name);
    if (!error && has_links) {
        error = note_inode(&tree->named, directory, tree->copy);
        if (!error)
            error = replace_below(tree, top, ".", &status, directory);
        if (unlinkat(directory, tree->copy, 0) && !error)
            error = system_error("cannot remove", tree->copy);
    }
    restore_times(directory, &before);
    return error;
}

struct bw_error *bw_linked_tree_remove(struct bw_linked_tree *tree, int top,
                                       const struct stat *file)
{
    return replace_below(tree, top, ".", file, -1);
}

void bw_linked_tree_free(struct bw_linked_tree *tree)
{
    bw_number_set_free(&tree->own);
    bw_number_set_free(&tree->named);
}
