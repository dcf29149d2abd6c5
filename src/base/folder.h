/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a directory of this machine with everything below it, to compare it with an image.
 * Paths are relative to the directory; the empty path is the directory itself. Symbolic links are
 * never followed below it. A path of more than PATH_MAX bytes is an error of the system.
 */
#ifndef BW_BASE_FOLDER_H
#define BW_BASE_FOLDER_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/vector.h"

/** An open directory; only its functions read it. Several threads may. */
struct bw_folder {
    int descriptor;
    const char *path; /**< for messages; not copied */
};

/** Opens it; errors name the path. */
struct bw_error *bw_folder_open(const char *path, struct bw_folder *folder);
void bw_folder_close(struct bw_folder *folder);

/** Names in a directory. All zeros is none. */
struct bw_folder_names {
    struct bw_buffer text;   /**< the names, each with a NUL */
    struct bw_sizes offsets; /**< in the text, in the order of the names' bytes */
};

/** Replaces `names` by the names in a directory, without "." and "..". */
struct bw_error *bw_folder_list(const struct bw_folder *folder, const char *path,
                                struct bw_folder_names *names);
void bw_folder_names_free(struct bw_folder_names *names);

/** Facts about a file; a symbolic link is not followed. */
struct bw_error *bw_folder_stat(const struct bw_folder *folder, const char *path,
                                struct stat *status);

/** Whether a directory is the empty one that a mount of btrfs shows for a subvolume within a
 * snapshot: its times are made up. */
bool bw_folder_is_empty_subvolume(const struct bw_folder *folder, const char *path,
                                  const struct stat *status);

/** Replaces `target` by the target of a symbolic link. */
struct bw_error *bw_folder_readlink(const struct bw_folder *folder, const char *path,
                                    struct bw_buffer *target);

/** Opens a regular file for reading. */
struct bw_error *bw_folder_open_file(const struct bw_folder *folder, const char *path,
                                     int *descriptor);

/** Reads from an open file until the buffer is full or the file ends. Returns the number of bytes;
 * -1: an error, in errno. */
ssize_t bw_folder_read(int descriptor, void *buffer, size_t length, uint64_t offset);

/** An extended attribute. */
struct bw_folder_xattr {
    size_t name;  /**< in the text, with a NUL */
    size_t value; /**< in the text */
    size_t length;
};

BW_VECTOR(bw_folder_xattr_list, struct bw_folder_xattr);

/** Whether an attribute is compared: not trusted ones ("trusted.*"), which only privileged
 * processes may see, and not properties of btrfs ("btrfs.*"), which other file systems do not have.
 */
bool bw_folder_compares_xattr(const void *name, size_t length);

/** All attributes of a file that the process may see. All zeros is none. */
struct bw_folder_xattrs {
    struct bw_buffer text;
    struct bw_folder_xattr_list list;
};

/** Replaces `xattrs` by the attributes of a file that are compared. None on a file system without
 * attributes. */
struct bw_error *bw_folder_xattrs_read(const struct bw_folder *folder, const char *path,
                                       struct bw_folder_xattrs *xattrs);
void bw_folder_xattrs_free(struct bw_folder_xattrs *xattrs);

#endif
