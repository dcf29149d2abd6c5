/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folder that an extraction writes to. Nothing outside of the folder is made, changed or read,
 * regardless of the names in the image and of links that other processes create meanwhile.
 * Directories are opened relative to a descriptor of the folder without following links. Files are
 * made in them by their last names only. Attributes are restored through descriptors of the new
 * files. Nothing that exists is opened for writing or replaced. System calls cannot prevent one
 * thing: if another process moves a directory out of the folder, files are still made in it until
 * another directory becomes the current one. Only the same user can do this, because new
 * directories are inaccessible to others until their permissions are restored at the end.
 *
 * Paths are relative to the folder: raw bytes without a NUL, without a '/' at either end. The empty
 * path is the folder itself. target_files.h makes the files, target_attributes.h restores their
 * attributes.
 */
#ifndef BW_EXPORT_TARGET_H
#define BW_EXPORT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"

/** How to write. All zeros is the safest way. */
struct bw_target_options {
    bool preserve;      /**< also restore bits that give privileges: setuid, setgid, sticky (of
                         * files), capabilities; device nodes; flags that forbid the user to change
                         * or delete the file */
    bool skip_existing; /**< accept existing files that look the same */
    bool step_by_step;  /**< do not use openat2(2), O_TMPFILE and renameat2(2), which old systems
                           lack */
    uint64_t seed;      /**< a number derived from the image, for the names of unfinished files */
    /** Receives the error if something could not be restored; consumes it. Must not be NULL. */
    void (*missed)(void *context, struct bw_error *error);
    void *context; /**< passed to missed */
};

/** The folder. Only one thread at a time may use it. */
struct bw_target {
    struct bw_target_options options;
    int folder;            /**< descriptor */
    bool is_new;           /**< the folder did not exist before; set by the caller */
    int directory;         /**< descriptor of the current directory; may be `folder` */
    struct bw_buffer path; /**< path of `directory`, followed by a NUL */
    char name[256];        /**< last component of the path used last, NUL-terminated */
    bool privileged;       /**< owners can be restored and device nodes made */
    bool has_default_acl;  /**< new files in the current directory inherit access control lists that
                            * they should not have */
    uint64_t lowered;      /**< number of files that `preserve` would have restored more of */
    uint64_t foreign; /**< number of files with other owners or groups, which only root could have
                       * restored */
};

/** Begins to use a folder; takes its descriptor, also if it fails. */
struct bw_error *bw_target_open(int folder, const struct bw_target_options *options,
                                struct bw_target *target);
/** Closes the folder. `target` may be all zeros. */
void bw_target_close(struct bw_target *target);

/** Waits until everything in the file system of the folder is on the disk. This is faster than
 * doing it for each file, and includes their names. Since Linux 5.8, it reports all errors since
 * the folder was opened. */
struct bw_error *bw_target_sync(const struct bw_target *target);

/**
 * Opens the directory that contains a path, for the following calls, and sets target->name to the
 * last component. BW_ERROR_CORRUPT if a component is not a valid name; BW_ERROR_SYSTEM if the
 * directory does not exist or a component is a symbolic link.
 */
struct bw_error *bw_target_enter(struct bw_target *target, const char *path, size_t length);

/** The error for a path that could not be made or restored. */
static inline struct bw_error *bw_target_error(int number, const char *problem, const char *path,
                                               size_t length)
{
    return bw_error_from_errno(number, "/%.*s: %s", (int)length, path, problem);
}

#endif
