/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a directory of this machine. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"

/* Of an empty subvolume; BTRFS_SUPER_MAGIC and BTRFS_EMPTY_SUBVOL_DIR_OBJECTID of the kernel. */
enum { BTRFS_MAGIC = 0x9123683e & 0x7fffffff, EMPTY_SUBVOLUME_INODE = 2 };

static struct bw_error *path_error(const struct bw_folder *folder, const char *path)
{
    return bw_error_from_errno(errno, "%s%s%s", folder->path, *path ? "/" : "", path);
}

struct bw_error *bw_folder_open(const char *path, struct bw_folder *folder)
{
    *folder = (struct bw_folder){open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path};
    return folder->descriptor < 0 ? bw_error_from_errno(errno, "%s", path) : NULL;
}

void bw_folder_close(struct bw_folder *folder)
{
    if (folder->descriptor >= 0)
        close(folder->descriptor);
    folder->descriptor = -1;
}

static int open_below(const struct bw_folder *folder, const char *path, int flags)
{
    return openat(folder->descriptor, *path ? path : ".",
                  O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
}

/* Names. */

static int by_name(const void *left, const void *right, void *text)
{
    const size_t *a = left, *b = right;
    return strcmp((const char *)text + *a, (const char *)text + *b);
}

struct bw_error *bw_folder_list(const struct bw_folder *folder, const char *path,
                                struct bw_folder_names *names)
{
    names->offsets.count = names->text.length = 0;
    const int descriptor = open_below(folder, path, O_DIRECTORY);
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!directory) {
        struct bw_error *error = path_error(folder, path);
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    struct bw_error *error = NULL;
    const struct dirent *entry;
    while (!error) {
        errno = 0;
        entry = readdir(directory);
        if (!entry && errno)
            error = path_error(folder, path);
        if (!entry)
            break;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        error = bw_sizes_push(&names->offsets, names->text.length);
        bw_buffer_append(&names->text, name, strlen(name) + 1);
        if (!error && names->text.failed)
            error = bw_error_no_memory();
    }
    closedir(directory);
    if (!error && names->offsets.count)
        qsort_r(names->offsets.items, names->offsets.count, sizeof *names->offsets.items, by_name,
                names->text.data);
    return error;
}

void bw_folder_names_free(struct bw_folder_names *names)
{
    bw_buffer_free(&names->text);
    bw_sizes_free(&names->offsets);
    *names = (struct bw_folder_names){0};
}

/* Files. */

struct bw_error *bw_folder_stat(const struct bw_folder *folder, const char *path,
                                struct stat *status)
{
    if (fstatat(folder->descriptor, *path ? path : ".", status, AT_SYMLINK_NOFOLLOW))
        return path_error(folder, path);
    return NULL;
}

bool bw_folder_is_empty_subvolume(const struct bw_folder *folder, const char *path,
                                  const struct stat *status)
{
    struct statfs system;
    if (!S_ISDIR(status->st_mode) || status->st_ino != EMPTY_SUBVOLUME_INODE)
        return false;
    const int descriptor = open_below(folder, path, O_DIRECTORY);
    const bool is_known = descriptor >= 0 && fstatfs(descriptor, &system) == 0;
    if (descriptor >= 0)
        close(descriptor);
    return is_known && (system.f_type & 0x7fffffff) == BTRFS_MAGIC;
}

struct bw_error *bw_folder_readlink(const struct bw_folder *folder, const char *path,
                                    struct bw_buffer *target)
{
    enum { LONGEST = 4096 };
    target->length = 0;
    if (!bw_buffer_reserve(target, LONGEST))
        return bw_error_no_memory();
    const ssize_t length = readlinkat(folder->descriptor, path, target->data, LONGEST);
    if (length < 0)
        return path_error(folder, path);
    target->length = (size_t)length;
    return NULL;
}

struct bw_error *bw_folder_open_file(const struct bw_folder *folder, const char *path,
                                     int *descriptor)
{
    *descriptor = open_below(folder, path, O_NONBLOCK | O_NOATIME);
    if (*descriptor < 0 && errno == EPERM) /* O_NOATIME is for owners */
        *descriptor = open_below(folder, path, O_NONBLOCK);
    return *descriptor < 0 ? path_error(folder, path) : NULL;
}

ssize_t bw_folder_read(int descriptor, void *buffer, size_t length, uint64_t offset)
{
    if (lseek(descriptor, (off_t)offset, SEEK_SET) < 0)
        return -1;
    return bw_read_all(descriptor, buffer, length);
}

/* Attributes. There is no call for a symbolic link below a descriptor, so the path begins with the
 * descriptor's link in /proc. */

bool bw_folder_compares_xattr(const void *name, size_t length)
{
    static const char trusted[] = "trusted.", property[] = "btrfs.";
    return !(length >= sizeof trusted - 1 && memcmp(name, trusted, sizeof trusted - 1) == 0) &&
           !(length >= sizeof property - 1 && memcmp(name, property, sizeof property - 1) == 0);
}

enum { MOST_BYTES = 64 << 10 }; /* of the names, or of a value: limits of the kernel */

struct bw_error *bw_folder_xattrs_read(const struct bw_folder *folder, const char *path,
                                       struct bw_folder_xattrs *xattrs)
{
    BW_AUTO_BUFFER struct bw_buffer full = {0}, names = {0};
    xattrs->list.count = xattrs->text.length = 0;
    bw_buffer_format(&full, "/proc/self/fd/%d/%s", folder->descriptor, path);
    bw_buffer_append_byte(&full, '\0');
    if (full.failed || !bw_buffer_reserve(&names, MOST_BYTES))
        return bw_error_no_memory();
    const ssize_t length = llistxattr(full.data, names.data, MOST_BYTES);
    if (length < 0)
        return errno == ENOTSUP ? NULL : path_error(folder, path);
    for (const char *name = names.data; name < names.data + length; name += strlen(name) + 1) {
        if (!bw_folder_compares_xattr(name, strlen(name)))
            continue;
        struct bw_buffer *text = &xattrs->text;
        struct bw_folder_xattr xattr = {.name = text->length};
        const size_t name_size = strlen(name) + 1;
        if (!bw_buffer_reserve(text, name_size + MOST_BYTES))
            return bw_error_no_memory();
        bw_buffer_append(text, name, name_size);
        xattr.value = text->length;
        const ssize_t got = lgetxattr(full.data, name, text->data + text->length, MOST_BYTES);
        if (got < 0 && errno != ENODATA)
            return path_error(folder, path);
        if (got < 0) { /* it has been removed since */
            text->length = xattr.name;
            continue;
        }
        xattr.length = (size_t)got;
        text->length += (size_t)got;
        BW_TRY(bw_folder_xattr_list_push(&xattrs->list, xattr));
    }
    return NULL;
}

void bw_folder_xattrs_free(struct bw_folder_xattrs *xattrs)
{
    bw_buffer_free(&xattrs->text);
    bw_folder_xattr_list_free(&xattrs->list);
    *xattrs = (struct bw_folder_xattrs){0};
}
