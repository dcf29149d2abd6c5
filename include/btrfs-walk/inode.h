/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files of every type: finding them by path or number, their inodes, names and attributes, and the
 * entries of directories.
 *
 * A file is identified by a struct bw_place, a plain value that stays valid as long as the file
 * system is open and needs no release. All functions here may be called by several threads at once.
 *
 * If damage makes something unreadable, the function that was called for it returns an error.
 * Functions that return many results report single losses to the reporter of the file system
 * (bw_fs_options.reporter) and continue.
 */
#ifndef BTRFS_WALK_INODE_H
#define BTRFS_WALK_INODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs;

/** Name of a type ("file", "directory", "symlink"); "unknown" for a number that has no meaning. */
const char *bw_file_type_name(uint8_t type);

/** The type of a file whose inode has this mode (as st_mode); BW_FILE_UNKNOWN if the mode is
 * invalid. */
uint8_t bw_file_type_of_mode(uint32_t mode);

/**
 * Inode number of an entry that names a subvolume which is not there: a snapshot keeps the entries
 * of subvolumes nested in the original, but not the subvolumes. A mount shows an empty directory
 * with this number.
 */
#define BW_EMPTY_DIRECTORY UINT64_C(2)

/** Inode number of the top directory of a subvolume. */
#define BW_TOP_DIRECTORY UINT64_C(256)

/** Identifies a file of any type. */
struct bw_place {
    const struct bw_subvolume *subvolume; /**< the subvolume it is in */
    uint64_t inode;                       /**< its number there, or BW_EMPTY_DIRECTORY */
    uint8_t type;       /**< enum bw_file_type, from its directory entry; the inode may differ */
    uint64_t directory; /**< inode of the directory it was found in; 0 for the top directory of a
                             subvolume, or if the place was found by number */
};

/** The contents of an INODE_ITEM, in host byte order. Source: struct btrfs_inode_item in the
 * kernel's uapi/linux/btrfs_tree.h. */
struct bw_inode {
    uint64_t generation; /**< transaction that created it */
    uint64_t transid;    /**< transaction that changed it last */
    uint64_t size;       /**< bytes of the file */
    uint64_t bytes;      /**< bytes allocated on disk for its data, copies not counted */
    uint64_t device;     /**< number of a device node; see bw_inode_major() */
    uint64_t flags; /**< bits of enum bw_inode_flags; read-only compatible ones in the upper half */
    uint64_t sequence; /**< of the last change, for NFS */
    struct timespec atime, ctime, mtime;
    struct timespec otime; /**< time of creation */
    uint32_t link_count;
    uint32_t uid, gid;
    uint32_t mode;        /**< type and permissions, as st_mode */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Flags of an inode that decide how its data are stored. */
enum bw_inode_flags {
    BW_INODE_NODATASUM = 1 << 0, /**< data have no checksums */
    BW_INODE_NODATACOW = 1 << 1, /**< data are overwritten in place */
    BW_INODE_NOCOMPRESS = 1 << 3,
    BW_INODE_SYNC = 1 << 5,
    BW_INODE_IMMUTABLE = 1 << 6,
    BW_INODE_APPEND = 1 << 7,
    BW_INODE_NODUMP = 1 << 8,
    BW_INODE_NOATIME = 1 << 9,
    BW_INODE_DIRSYNC = 1 << 10,
    BW_INODE_COMPRESS = 1 << 11,
    BW_INODE_SYNOLOGY = 1 << 30, /**< only in kernels of Synology: counts for a quota of a user */
};

/** Name of a flag ("NODATASUM") by its bit, 0 to 63; NULL if the bit has no meaning. */
const char *bw_inode_flag_name(unsigned bit);

/** The flags as FS_IOC_GETFLAGS returns them on a mount: bits FS_NOCOW_FL, FS_IMMUTABLE_FL, ... */
unsigned bw_inode_file_flags(const struct bw_inode *inode);

/** Major number of a device node. */
static inline unsigned bw_inode_major(const struct bw_inode *inode)
{
    return (unsigned)(inode->device >> 20);
}

/** Minor number of a device node. */
static inline unsigned bw_inode_minor(const struct bw_inode *inode)
{
    return (unsigned)(inode->device & 0xfffff);
}

/** A time as nanoseconds since 1970, limited to the range of 64 bits (the years 1678 to 2262). */
int64_t bw_time_nanoseconds(const struct timespec *time);

/** The top directory of a subvolume. */
struct bw_place bw_place_top(const struct bw_subvolume *subvolume);

/**
 * Finds a path.
 *
 * It begins at the top directory of `from` (NULL: the top-level subvolume), with or without a '/'.
 * "..", repeated slashes and symbolic links work as on a mount of `from` at /. The last component
 * is followed if it is a symbolic link and either `follow` is set or a '/' comes after it. Lost
 * directory entries are replaced by the names stored with the inodes.
 *
 * BW_ERROR_NOT_FOUND if the file does not exist, or there are too many links on the way; other
 * errors if the relevant part of the tree cannot be read.
 */
struct bw_error *bw_lookup(const struct bw_fs *fs, const struct bw_subvolume *from,
                           const char *path, bool follow, struct bw_place *place);

/** Finds one name in a directory, `length` raw bytes. Symbolic links are not followed. Errors as of
 * bw_lookup(). */
struct bw_error *bw_lookup_name(const struct bw_fs *fs, const struct bw_place *directory,
                                const char *name, size_t length, struct bw_place *place);

/** Finds an inode by its number. Its type is taken from the inode. Errors as bw_inode_get(). */
struct bw_error *bw_lookup_number(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  uint64_t number, struct bw_place *place);

/** Reads the inode of a file. A BW_EMPTY_DIRECTORY gets an inode as on a mount, with the owner and
 * times of the directory that contains it. BW_ERROR_NOT_FOUND if the inode does not exist,
 * BW_ERROR_CORRUPT if it is invalid, other errors if it cannot be read. */
struct bw_error *bw_inode_get(const struct bw_fs *fs, const struct bw_place *place,
                              struct bw_inode *inode);

/** One of many inodes to be read by bw_inodes_get(). */
struct bw_wanted_inode {
    uint64_t number;       /**< set by the caller */
    bool found;            /**< result: whether `inode` holds anything */
    bool has_acl;          /**< result: it has an access or default ACL, if `acls` was set */
    struct bw_inode inode; /**< result */
    bool no_compression;   /**< result: it has no property of compression, if `acls` was set */
    uint64_t reserved[2];  /**< zeros: room for more members */
};

/** Reads many inodes of one subvolume, and each block only once. `wanted` is ascending by number,
 * without duplicates. `acls`: also look for access control lists. `found` remains unset for missing
 * inodes; lost blocks are reported. Fails only if memory runs out. */
struct bw_error *bw_inodes_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                               struct bw_wanted_inode *wanted, size_t count, bool acls);

/** Makes up an inode for a regular file whose inode is lost, from its remaining extents. The size
 * is the end of the last extent; the owner is root, the mode 0600, the times are 0.
 * BW_ERROR_NOT_FOUND if it has no extent. */
struct bw_error *bw_inode_salvage(struct bw_fs *fs, const struct bw_place *place,
                                  struct bw_inode *inode);

/** A name of an inode: one for each hard link. */
struct bw_inode_name {
    uint64_t directory; /**< inode of the directory, in the same subvolume */
    uint64_t index;     /**< offset of the DIR_INDEX key of the entry */
    const char *name;   /**< raw bytes, not terminated */
    size_t name_length;
};

/** The names of an inode, one after the other. One thread at a time may use it. */
struct bw_hard_links;

/** Starts reading the names. The caller owns `*links`, which the file system must outlive; it is
 * NULL after an error. Fails only if memory runs out. */
struct bw_error *bw_hard_links_open(struct bw_fs *fs, const struct bw_place *place,
                                    struct bw_hard_links **links);

/** The next name, in the order of their keys; NULL after the last one. Valid until the next call.
 * Losses are reported. */
const struct bw_inode_name *bw_hard_links_next(struct bw_hard_links *links);

/** Ends reading; NULL is allowed. Returns the error that ended it before the last name:
 * BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_hard_links_close(struct bw_hard_links *links);

/** Receives a name; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_inode_name_visitor(void *context, const struct bw_inode_name *name);

/** Calls `visit` for each name that bw_hard_links_next() returns. */
struct bw_error *bw_inode_names(struct bw_fs *fs, const struct bw_place *place,
                                bw_inode_name_visitor *visit, void *context);

/**
 * The absolute path of a file from the top-level subvolume, by the first of its names. `*path` ends
 * with a NUL that `*length` does not count, and is freed by the caller with free(); `length` may be
 * NULL. BW_ERROR_NOT_FOUND if the file or its subvolume has no name.
 */
struct bw_error *bw_inode_path(struct bw_fs *fs, const struct bw_place *place, char **path,
                               size_t *length);

/**
 * The target of a symbolic link, up to the first NUL, as a mount shows it. Ownership as of
 * bw_inode_path(). BW_ERROR_NOT_FOUND if the inode has no target, BW_ERROR_CORRUPT if the
 * target is invalid.
 */
struct bw_error *bw_inode_readlink(struct bw_fs *fs, const struct bw_place *place, char **target,
                                   size_t *length);

/** An extended attribute. Name and value are raw bytes, not terminated. */
struct bw_xattr {
    const uint8_t *name;
    const uint8_t *value;
    uint16_t name_length;  /**< bytes */
    uint16_t value_length; /**< bytes */
};

/** The extended attributes of a file, one after the other. One thread at a time may use it. */
struct bw_xattrs;

/** Starts reading the attributes. The caller owns `*xattrs`, which the file system must outlive; it
 * is NULL after an error. Fails only if memory runs out. */
struct bw_error *bw_xattrs_open(struct bw_fs *fs, const struct bw_place *place,
                                struct bw_xattrs **xattrs);

/** The next attribute, in the order of a mount; NULL after the last one. Valid until the next call.
 * Losses are reported. */
const struct bw_xattr *bw_xattrs_next(struct bw_xattrs *xattrs);

/** Ends reading; NULL is allowed. Returns the error that ended it before the last attribute:
 * BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_xattrs_close(struct bw_xattrs *xattrs);

/** Receives an attribute; the view ends with the call. An error ends the iteration and is returned.
 */
typedef struct bw_error *bw_xattr_visitor(void *context, const struct bw_xattr *xattr);

/** Calls `visit` for each attribute that bw_xattrs_next() returns. */
struct bw_error *bw_inode_xattrs(struct bw_fs *fs, const struct bw_place *place,
                                 bw_xattr_visitor *visit, void *context);

/** Reads the attributes of many files; it remembers its position in the tree, so that inodes in
 * ascending order cost no search each. One thread at a time may use one. */
struct bw_xattr_reader;

/** Creates a reader, which the caller owns. The file system must outlive it. */
struct bw_error *bw_xattr_reader_create(struct bw_fs *fs, struct bw_xattr_reader **reader);

/** Frees a reader; NULL is allowed. */
void bw_xattr_reader_destroy(struct bw_xattr_reader *reader);

/** Reads all attributes of a file into an array that belongs to the reader and is valid until its
 * next use. A NUL byte follows each name; attributes with a NUL in their name are skipped. Losses
 * are reported. Fails only if memory runs out. */
struct bw_error *bw_xattr_reader_read(struct bw_xattr_reader *reader, const struct bw_place *place,
                                      const struct bw_xattr **xattrs, size_t *count);

/** Name of the attribute that selects the compression of new data. */
#define BW_COMPRESSION_PROPERTY "btrfs.compression"

/** Names of the attributes that hold POSIX access control lists. */
#define BW_ACL_ACCESS  "system.posix_acl_access"
#define BW_ACL_DEFAULT "system.posix_acl_default"

/** An access control list as text: one line for each entry of the attribute BW_ACL_ACCESS or
 * BW_ACL_DEFAULT, in the format that getfacl -cn prints for access lists: "user:1000:r--". `*text`
 * ends with a NUL, and the caller frees it with free(); it is NULL if the attribute is not a valid
 * list. Fails only if memory runs out. */
struct bw_error *bw_acl_text(const struct bw_xattr *xattr, char **text);

/** Name of the attribute that holds the capabilities of a program. */
#define BW_CAPABILITIES "security.capability"

/** Capabilities as getcap(8) prints them: "cap_net_raw=ep", "=ep" for all. `*text` as of
 * bw_acl_text(); it is NULL if the attribute is not BW_CAPABILITIES, or invalid. */
struct bw_error *bw_capability_text(const struct bw_xattr *xattr, char **text);

/** The access control lists among the attributes of a file as one line, as setfacl -m accepts them:
 * "user::rw-,user:1000:r--,default:user::rwx"; and its capabilities. Both as of bw_acl_text(); NULL
 * without valid ones. */
struct bw_error *bw_xattr_texts(const struct bw_xattr *xattrs, size_t count, char **acl,
                                char **capabilities);

/*
 * Listing a directory, entry by entry, in the order in which a mount lists it. A listing can be
 * continued later from a position, also by another handle.
 */

/** A directory that is being listed. One thread at a time may use it. */
struct bw_directory;

/** An entry. "." and ".." are not among them. */
struct bw_directory_entry {
    const char *name; /**< raw bytes, not terminated; valid until the next call */
    size_t name_length;
    struct bw_place place; /**< what it names */
    uint64_t position;     /**< where to continue after this entry */
};

/** Position of the first entry. */
enum { BW_DIRECTORY_START = 0 };

/** Opens a directory for listing from `position` on: BW_DIRECTORY_START, or the position of an
 * entry. The caller owns `*directory`, which the file system must outlive. BW_ERROR_USAGE if the
 * type of `place` is not a directory. */
struct bw_error *bw_directory_open(struct bw_fs *fs, const struct bw_place *place,
                                   uint64_t position, struct bw_directory **directory);

/** Continues with another directory of the same file system, or at another position of the same
 * one. Listing neighbouring directories this way reads each tree block only once. Errors as
 * bw_directory_open(); after an error, the handle can only be closed or reopened. */
struct bw_error *bw_directory_reopen(struct bw_directory *directory, const struct bw_place *place,
                                     uint64_t position);

/** Returns the next entry, which belongs to the handle and is valid until the next call; `*entry`
 * is NULL after the last one. Unreadable entries are reported to the reporter of the file system;
 * the listing then continues with names found in other parts of the tree. Fails only if memory runs
 * out. */
struct bw_error *bw_directory_next(struct bw_directory *directory,
                                   const struct bw_directory_entry **entry);

/** After the last entry: whether the listing is complete. False if names of entries may be lost, or
 * if the file of an entry could not be determined. */
bool bw_directory_is_complete(const struct bw_directory *directory);

/** Closes it; NULL is allowed. */
void bw_directory_close(struct bw_directory *directory);

#ifdef __cplusplus
}
#endif
#endif
