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
 * path is the folder itself. target_files.c makes the files, target_attributes.c restores their
 * attributes.
 */
#ifndef BW_EXPORT_TARGET_H
#define BW_EXPORT_TARGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"
#include "btrfs-walk/inode.h"

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
    bool has_no_owners;    /**< EPERM means that the file system has no owners
                            * or permissions: it is FAT or exFAT, or root uses FUSE */
    bool has_default_acl;  /**< new files in the current directory inherit access control lists that
                            * they should not have */
    uint64_t lowered;      /**< number of files that `preserve` would have restored more of */
    uint64_t foreign; /**< number of files with other owners or groups, which only root could have
                       * restored */
    uint64_t without_owner;  /**< number of files in a file system without owners and permissions */
    uint64_t without_xattrs; /**< number of files with attributes that the file system cannot store;
                              * `preserve` reports each attribute instead */
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

/* The attributes of files in a target: owner, permissions, flags, extended attributes and times. */

/** When flags can be set. */
enum bw_flag_time {
    BW_FLAGS_EMPTY,   /**< before anything is written: flags for the storage of data */
    BW_FLAGS_ANY,     /**< at any time */
    BW_FLAGS_PROTECT, /**< after everything else: immutable, append-only */
};

/** Sets those flags of an inode that the open file lacks, one by one. False with errno if one could
 * not be set. */
bool bw_target_set_flags(int descriptor, const struct bw_inode *inode, enum bw_flag_time when);

/** Attributes to restore. */
struct bw_target_attributes {
    const struct bw_inode *inode;
    const struct bw_xattr *xattrs; /**< each name is NUL-terminated and contains no other NUL */
    size_t xattr_count;
};

/** Whether every file system can store this time. Others clamp it, without an error. */
bool bw_target_is_always_stored(const struct timespec *time);

/** Whether two times are equal, within the precision of the folder's file system. */
bool bw_target_is_same_time(const struct timespec *there, const struct timespec *wanted);

/** Whether an existing directory already has the owner and permissions that would be restored. */
bool bw_target_has_permissions(const struct bw_target *target, const struct stat *status,
                               const struct bw_inode *inode);

/**
 * Restores all attributes, as far as the user may, except those of bw_target_restore_last(). The
 * file is in the current directory; `descriptor` is O_PATH for a symbolic link or a special file.
 * Attributes that could not be restored are reported to the target's `missed` with `path`, which is
 * relative to the folder.
 */
void bw_target_restore(struct bw_target *target, int descriptor, const char *path, size_t length,
                       const struct bw_target_attributes *attributes);

/** Restores the last attributes of an open file: see bw_target_restore_last(). */
void bw_target_restore_end(struct bw_target *target, int descriptor, const struct stat *status,
                           const char *path, size_t length,
                           const struct bw_target_attributes *attributes);

/** Whether an inode is a device node that is only made with `preserve`. */
bool bw_target_leaves_out(const struct bw_target *target, const struct bw_inode *inode);

/** Whether a file gets flags that forbid changing, linking or deleting it (immutable, append-only),
 * which needs `preserve`. */
bool bw_target_is_protected(const struct bw_target *target, const struct bw_inode *inode);

/* Directories, links, nodes and regular files that are made in a target. */

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
 * node without `preserve`, unless it is a character device with number 0: overlayfs uses them as
 * whiteouts, and every user may make them. */
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

/** Whether a file with this size and modification time exists, as the file system stores it. */
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

/*
 * A process that makes files which cannot be opened. Symbolic links, special files and directories
 * without permissions cannot be opened, so the system calls that restore their attributes use a
 * path or an O_PATH descriptor, which exists for any file. A confined process must not make such
 * calls, because an attacker could change any file of the user with them. Instead, it sends orders
 * to a maker: a process that never reads the image, and applies the rules of target.h to each
 * order.
 */

/** An order. */
struct bw_target_order {
    const char *path; /**< relative to the folder */
    size_t length;    /**< in bytes */
    const char *link; /**< target of a symbolic link; otherwise NULL */
    /** The type of the inode determines what to make: a symbolic link or a special file, with these
     * attributes; or a directory, whose attributes are restored later. NULL: a directory with
     * unknown attributes. */
    const struct bw_target_attributes *attributes;
};

/** The confined process's connection to the maker. */
struct bw_target_maker {
    struct bw_target *target; /**< its options receive errors of attributes */
    int channel;              /**< socket to the maker; -1: the process makes everything itself */
    /** Receives the error of a failed order of bw_target_make_later(); consumes it. The call that
     * detects the failure returns the result of this function. */
    struct bw_error *(*failed)(void *context, struct bw_error *error);
    void *context;                  /**< passed to failed */
    struct bw_buffer text, answers; /**< orders to send, and replies received */
    uint32_t waiting, sent; /**< number of orders not sent yet, and of orders without a reply */
};

/**
 * Makes a symbolic link, a special file or a directory, like bw_target_make_symlink(),
 * bw_target_make_node() and bw_target_make_directory(), and restores the attributes of the first
 * two. `*ours` is set for a directory. BW_ERROR_SYSTEM with EIO if the maker has ended.
 */
struct bw_error *bw_target_make(struct bw_target_maker *maker, const struct bw_target_order *order,
                                bool *ours);

/** Makes a symbolic link in an existing directory, without waiting for the result: several orders
 * are sent at once. Without a maker, returns the result of the order. */
struct bw_error *bw_target_make_later(struct bw_target_maker *maker,
                                      const struct bw_target_order *order);

/** Waits for all pending orders. */
struct bw_error *bw_target_make_rest(struct bw_target_maker *maker);

/** Frees its memory and closes its channel. */
void bw_target_maker_close(struct bw_target_maker *maker);

/** The maker: executes the orders from a channel, until its end or the first invalid message.
 * Replaces the function `missed` in the target's options. */
void bw_target_serve_orders(struct bw_target *target, int channel);

#endif
