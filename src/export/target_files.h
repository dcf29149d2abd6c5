/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Directories, links, nodes and regular files that are made in a target. */
#ifndef BW_EXPORT_TARGET_FILES_H
#define BW_EXPORT_TARGET_FILES_H

#include <stdatomic.h>

#include "export/target_attributes.h"

/**
 * Makes a directory that only the user can access until its attributes are restored. An existing
 * directory is accepted. `*ours`: its attributes must be restored at the end, because it was made
 * now; or, with `skip_existing`, because it belongs to the user and an earlier run made it: it is
 * unfinished, or has the attributes of `inode` (NULL: unknown). If the user cannot access it, its
 * mode is changed until then.
 */
struct bw_error *bw_target_make_directory(struct bw_target *target, const char *path, size_t length,
                                          const struct bw_inode *inode, bool *ours);
/** Calls `make` for each directory in a path that does not exist, or that the user cannot access.
 */
struct bw_error *bw_target_make_replacing(struct bw_target *target, const char *path, size_t length,
                                          struct bw_error *(*make)(void *context, const char *path,
                                                                   size_t length),
                                          void *context);
/** Makes a symbolic link; `link` is NUL-terminated. `*descriptor` refers to the link itself
 * (O_PATH); the caller closes it. */
struct bw_error *bw_target_make_symlink(struct bw_target *target, const char *path, size_t length,
                                        const char *link, int *descriptor);
/** Makes a device node, fifo or socket of this type (S_IFMT) and device number. `*descriptor`
 * refers to the node itself (O_PATH); the caller closes it. BW_ERROR_SYSTEM with EPERM for a device
 * node without `preserve`, unless its number is 0, which is not a device. */
struct bw_error *bw_target_make_node(struct bw_target *target, const char *path, size_t length,
                                     mode_t type, dev_t device, int *descriptor);
/** Makes a hard link to `existing`, which was made before. */
struct bw_error *bw_target_make_link(struct bw_target *target, const char *path, size_t length,
                                     const char *existing, size_t existing_length);

/** The last step for a directory, after everything in it was made: restores all attributes,
 * including these flags. For a regular file, after all its hard links were made: restores these
 * flags. */
void bw_target_restore_last(struct bw_target *target, const char *path, size_t length,
                            const struct bw_target_attributes *attributes);

/** A file that is being written. Meanwhile, its target must not be used otherwise. */
struct bw_target_file {
    struct bw_target *target;
    int descriptor;     /**< -1: no file */
    uint64_t end;       /**< end of the data written so far */
    atomic_bool named;  /**< it has a temporary name; for handlers of signals */
    char temporary[40]; /**< that name, or one that was tried */
};

/** Whether a file with this size and modification time exists. */
bool bw_target_has_file(struct bw_target *target, const char *path, size_t length, uint64_t size,
                        const struct timespec *mtime);

/** Begins a file; `inode` determines how its data is stored. BW_ERROR_SYSTEM with EEXIST if its
 * name exists. */
struct bw_error *bw_target_file_begin(struct bw_target *target, const char *path, size_t length,
                                      const struct bw_inode *inode, struct bw_target_file *file);

/** Writes bytes at an offset; ranges never written are holes. */
struct bw_error *bw_target_file_write(struct bw_target_file *file, uint64_t offset,
                                      const void *bytes, size_t length);

/** Completes the file with this size, attributes and name (the path passed to
 * bw_target_file_begin()). If it fails, the file is removed. */
struct bw_error *bw_target_file_finish(struct bw_target_file *file, const char *path, size_t length,
                                       uint64_t size,
                                       const struct bw_target_attributes *attributes);

/** Removes the temporary name, and does nothing else: for handlers of signals that end the
 * program. */
void bw_target_file_remove(const struct bw_target_file *file);

/** Discards the file. */
void bw_target_file_abandon(struct bw_target_file *file);

#endif
