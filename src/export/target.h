/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folder that an extraction writes into. Whatever the names in an image are, and whatever links
 * others put into it meanwhile, nothing is made, changed or looked at outside of it: directories
 * are opened from a descriptor of the folder without following any link, things are made in them by
 * their last name alone, attributes are restored through a descriptor of what was made, and nothing
 * that exists is opened for writing or replaced. What no system call prevents: whoever moves a
 * directory out of the folder takes along what is still made in it, until something is made in
 * another one. Only the user can do that to directories made here: until their own permissions are
 * restored, at the end, they are closed to all others.
 *
 * Paths are relative to the folder, raw bytes that do not end with NUL, without a '/' at either
 * end; the folder itself is the empty path. target_file.h makes regular files, target_attributes.h
 * restores what is known of them.
 */
#ifndef BW_EXPORT_TARGET_H
#define BW_EXPORT_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"

struct bw_inode;

/** How to write. All zeros is the careful way. */
struct bw_target_options {
    bool preserve;      /**< also bits that give privileges: setuid, setgid, sticky (of files),
                           capabilities; nodes that others than the user may open; flags that
                           forbid the user to change or delete it */
    bool skip_existing; /**< what is there and looks the same is no error */
    bool step_by_step;  /**< do without openat2(2), O_TMPFILE and renameat2(2), which old systems
                           lack */
    uint64_t seed; /**< a number that belongs to the image, for the names of unfinished files */
    /** Takes what could not be restored of something that was made; takes the error. Must not be
     * NULL. */
    void (*missed)(void *context, struct bw_error *error);
    void *context; /**< passed to missed */
};

/** The folder. One thread at a time may use it. */
struct bw_target {
    struct bw_target_options options;
    int folder;            /**< descriptor */
    int directory;         /**< of the directory that was used last; may be `folder` */
    struct bw_buffer path; /**< its path, with a NUL behind it */
    char name[256];        /**< last name of the path that was used last, with a NUL */
    bool privileged;       /**< owners can be restored and device nodes made */
    bool has_default_acl;  /**< what is made in the open directory gets access lists it should not
                              have */
    uint64_t lowered;      /**< files of which `preserve` would have restored more */
    uint64_t foreign; /**< files of other owners or groups, which only root could have restored */
};

/** Opens a folder, making it if there is nothing of that name; links on the way to it are the
 * user's. */
struct bw_error *bw_target_open(const char *path, const struct bw_target_options *options,
                                struct bw_target *target);
/** Closes it; all zeros is allowed. */
void bw_target_close(struct bw_target *target);

/**
 * Opens the directory that a path is in, for the calls that follow, and sets target->name to its
 * last name. BW_ERROR_CORRUPT if the path has a name that no entry can have; BW_ERROR_SYSTEM if
 * there is no such directory or a link is in its place.
 */
struct bw_error *bw_target_enter(struct bw_target *target, const char *path, size_t length);

/**
 * Makes a directory that only the user may enter, until its attributes are restored. One that is
 * there is fine; `*ours` tells whether its attributes are to be restored. They are if it was made
 * now. With `skip_existing` they also are if it belongs to the user and an earlier run has left it:
 * unfinished, or as `inode` wants it (NULL: nobody knows). If the user could not use it, that is
 * changed until then.
 */
struct bw_error *bw_target_make_directory(struct bw_target *target, const char *path, size_t length,
                                          const struct bw_inode *inode, bool *ours);
/** Calls `make` for each directory on the way to a path that is not there, or that the user may not
 * use. */
struct bw_error *bw_target_make_way(struct bw_target *target, const char *path, size_t length,
                                    struct bw_error *(*make)(void *context, const char *path,
                                                             size_t length),
                                    void *context);
/** Makes a symbolic link; `link` ends with NUL. `*descriptor` is of the link itself (O_PATH), the
 * caller's.
 */
struct bw_error *bw_target_make_symlink(struct bw_target *target, const char *path, size_t length,
                                        const char *link, int *descriptor);
/** Makes a device node, fifo or socket of this type (S_IFMT) and device number. `*descriptor` is of
 * the node itself (O_PATH), the caller's. */
struct bw_error *bw_target_make_node(struct bw_target *target, const char *path, size_t length,
                                     mode_t type, dev_t device, int *descriptor);
/** Makes one more name of what was made before as `existing`. */
struct bw_error *bw_target_make_link(struct bw_target *target, const char *path, size_t length,
                                     const char *existing, size_t existing_length);

/** The error for a path that could not be made or restored. */
struct bw_error *bw_target_error(int number, const char *what, const char *path, size_t length)
    __attribute__((returns_nonnull, warn_unused_result));
/** The error for a name that is taken. Says so if it is taken by one that differs in its letters'
 * case. */
struct bw_error *bw_target_taken(const struct bw_target *target, const char *path, size_t length)
    __attribute__((returns_nonnull, warn_unused_result));

#endif
