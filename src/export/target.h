/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The folder that an extraction writes into. Whatever the names in an image are, and whatever links
 * others put into it meanwhile, nothing is made, changed or looked at outside of it: directories
 * are opened from a descriptor of the folder without following any link, things are made in them by
 * their last name alone, attributes are restored through a descriptor of what was made, and nothing
 * that exists is opened for writing or replaced. What no system call prevents: a process that moves
 * a directory out of the folder takes along what is still made in it, until something is made in
 * another one. Only the user can do that to directories made here: until their own permissions are
 * restored, at the end, they are closed to all others.
 *
 * Paths are relative to the folder, raw bytes that do not end with NUL, without a '/' at either
 * end; the folder itself is the empty path. target_attributes.c restores what is known of a file.
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
#include "btrfs-walk/inode.h"

struct bw_inode;

/** How to write. All zeros is the careful way. */
struct bw_target_options {
    bool preserve;      /**< also bits that give privileges: setuid, setgid, sticky (of files),
                           capabilities; device nodes; flags that forbid the user to change or
                           delete it */
    bool skip_existing; /**< an existing file that looks the same is no error */
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
    bool is_new;           /**< the folder was made when it was opened */
    int directory;         /**< of the directory that was used last; may be `folder` */
    struct bw_buffer path; /**< its path, followed by a NUL */
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
 * unfinished, or as `inode` wants it (NULL: unknown). If the user could not use it, that is
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
 * the node itself (O_PATH), the caller's. BW_ERROR_SYSTEM with EPERM for a device node without
 * `preserve`, unless its number is 0, which stands for no device. */
struct bw_error *bw_target_make_node(struct bw_target *target, const char *path, size_t length,
                                     mode_t type, dev_t device, int *descriptor);
/** Makes one more name of what was made before as `existing`. */
struct bw_error *bw_target_make_link(struct bw_target *target, const char *path, size_t length,
                                     const char *existing, size_t existing_length);

/** The error for a path that could not be made or restored. */
static inline struct bw_error *bw_target_error(int number, const char *what, const char *path,
                                               size_t length)
{
    return bw_error_from_errno(number, "/%.*s: %s", (int)length, path, what);
}

/** When flags can be set. */
enum bw_flag_time {
    BW_FLAGS_EMPTY,   /**< before anything is written: how data are stored */
    BW_FLAGS_ANY,     /**< at any time */
    BW_FLAGS_PROTECT, /**< when all is done: immutable, append-only */
};

/** Sets those of an inode that the file of `descriptor` lacks, each by itself. False with errno if
 * one could not be set. */
bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when);

/** What is known. */
struct bw_target_attributes {
    const struct bw_inode *inode;
    const struct bw_xattr *xattrs; /**< a NUL follows each name, and none is in it */
    size_t xattr_count;
};

/** Whether a time there is the one wanted, as far as the file system of the folder tells times. */
bool bw_target_is_same_time(const struct timespec *there, const struct timespec *wanted);

/** Whether a directory that is there has the owner and permissions that it would be given. */
bool bw_target_has_permissions(const struct bw_target *target, const struct stat *status,
                               const struct bw_inode *inode);

/**
 * Restores all of it, as far as the user may, except what bw_target_restore_last() does.
 * `descriptor` is of the file, which is in the open directory; of a symbolic link or a special file
 * it is O_PATH. What could not be restored goes to the target's `missed`, with `path`, as relative
 * to the folder.
 */
void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

/** The last step of that for a file that is open: see bw_target_restore_last(). */
void bw_target_restore_end(struct bw_target *target, int descriptor, const struct stat *status,
                           const char *path, size_t length,
                           const struct bw_target_attributes *attributes);

/** Whether it is a device node that needs `preserve`: it leads out of the folder. */
bool bw_target_leaves_out(const struct bw_target *target, const struct bw_inode *inode);

/** Whether a file is to get flags that forbid changing it, linking to it or deleting it (immutable,
 * append-only): that needs `preserve`. */
bool bw_target_is_protected(const struct bw_target *target, const struct bw_inode *inode);

/** The last step for a directory, when nothing more is made in it: restores all of it, with these
 * flags; and for a regular file that has all its names: restores these flags. */
void bw_target_restore_last(struct bw_target *target, const char *path, size_t length,
                            const struct bw_target_attributes *attributes);

/** A file that is being written. Nothing else may be done with its target meanwhile. */
struct bw_target_file {
    struct bw_target *target;
    int descriptor;     /**< -1: none is being written */
    uint64_t end;       /**< how far it is written */
    char temporary[40]; /**< its name until it is complete; "": it has none */
};

/** Whether the file is there already, of this size and time of change. */
bool bw_target_has_file(struct bw_target *target, const char *path, size_t length, uint64_t size,
                        const struct timespec *mtime);

/** Begins a file; `inode` says how its data are best stored. BW_ERROR_SYSTEM with EEXIST if its
 * name is taken.
 */
struct bw_error *bw_target_file_begin(struct bw_target *target, const char *path, size_t length,
                                      const struct bw_inode *inode, struct bw_target_file *file);

/** Writes bytes at an offset; ranges never written are holes. */
struct bw_error *bw_target_file_write(struct bw_target_file *file, uint64_t offset,
                                      const void *bytes, size_t length);

/** Sets size, attributes and name (the path given at the begin). On failure, the file is removed.
 */
struct bw_error *bw_target_file_finish(struct bw_target_file *file, const char *path, size_t length,
                                       uint64_t size,
                                       const struct bw_target_attributes *attributes);

/** Removes its temporary name, and does nothing else: for handlers of signals that end the program.
 */
void bw_target_file_remove(const struct bw_target_file *file);

/** Discards the file. */
void bw_target_file_abandon(struct bw_target_file *file);

#endif
