/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directories of an export, of which backups may have millions, and their order in archives. */
#ifndef BW_EXPORT_MADE_DIRECTORIES_H
#define BW_EXPORT_MADE_DIRECTORIES_H

#include "base/hash_table.h"
#include "base/packed.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "export/path_store.h"

/*
 * Directories without entries, in the order in which they were added. They need not be found by
 * their names, so each is stored as its difference from the previous one. That takes about half the
 * memory of a record of the path store.
 */

enum { BW_LEAF_NAME = 255, BW_LEAF_DETAILS = 127 };

/** A directory without entries. */
struct bw_leaf {
    uint32_t after;  /**< a number that never decreases from one leaf to the next */
    uint32_t parent; /**< number of the directory that contains it */
    uint8_t name_length, details_length;
    char name[BW_LEAF_NAME];
    const uint8_t *details; /**< attributes, opaque to the list */
};

/** All zeros is an empty list. */
struct bw_leaf_list {
    struct bw_packed records;
    struct bw_leaf last;
    size_t count;
};

/** Attributes of a directory, or of a file that is protected at the end. */
struct bw_made_directory {
    struct bw_place place;
    struct timespec atime, ctime, mtime;
    uint32_t uid, gid;
    uint16_t mode, flags; /**< the lower bits of the inode's flags, which are the only relevant ones
                           */
};

/** Owner, mode and flags; most directories share a few combinations. */
struct bw_made_owner {
    uint32_t uid, gid;
    uint16_t mode, flags;
};

enum { BW_MADE_OWNERS = 15 };

/** The directory that the details of the next one are compared with. */
struct bw_made_before {
    uint64_t inode;
    int64_t mtime;
};

BW_VECTOR(bw_subvolume_pointers, const struct bw_subvolume *);

/** Directories. All zeros is an empty set. There may be millions, so each is packed into about
 * thirty bytes, including its path, or about fifteen if it has no entries. */
struct bw_made_directories {
    /** Set before the first: unless the image is damaged, each directory is added only once, and
     * after its parent. Otherwise, `leaves` is not used. */
    bool complete;
    bool failed;                       /**< memory ran out in a function that returns no error */
    struct bw_leaf_list leaves;        /**< directories without entries, which `paths` lacks */
    struct bw_made_before leaf_before; /**< for the details of the next leaf */
    struct bw_path_store paths;
    struct bw_subvolume_pointers subvolumes; /**< subvolumes that contain the directories */
    struct bw_key_map subvolume_numbers;     /**< indices by address */
    struct bw_made_owner owners[BW_MADE_OWNERS];
    unsigned owner_count;
    int64_t first_mtime; /**< of the first directory; others are usually close to it */
};

void bw_made_directories_free(struct bw_made_directories *directories);

/** Adds a directory. If the path was added before, nothing changes. */
struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode);

/** Receives a directory; the path is NUL-terminated. */
typedef struct bw_error *bw_made_directory_visitor(void *context, const char *path, size_t length,
                                                   const struct bw_made_directory *directory);

/** Visits all directories; subdirectories come before their parents. */
struct bw_error *bw_made_directories_visit(const struct bw_made_directories *directories,
                                           bw_made_directory_visitor *visit, void *context);

/** Makes an inode with the attributes of a directory. */
struct bw_inode bw_made_directory_inode(const struct bw_made_directory *directory);

/*
 * The order of directories in an archive. The walk visits each directory before its entries, but
 * all directories of a level before the entries of any of them. GNU tar, however, restores the
 * times and permissions of a directory when the next entry is not in it. Therefore, a directory is
 * written only when an entry in it follows. If the walk returns to a directory later, it is written
 * a second time at the end, the deepest directories first. Until then, its owner needs permission
 * to create files in it.
 *
 * Paths are relative to the top, which is the empty path.
 */

/** Whether a directory is written for the first time or again. */
enum bw_directory_turn { BW_DIRECTORY_FIRST, BW_DIRECTORY_AGAIN };

/** Writes a directory; the path is NUL-terminated. */
typedef struct bw_error *bw_directory_writer(void *context, const char *path,
                                             const struct bw_made_directory *directory,
                                             enum bw_directory_turn turn);

/** The directories found so far. Set `write` and `context`; the rest begins as zeros. */
struct bw_directory_order {
    bw_directory_writer *write;
    void *context;                  /**< passed to it */
    struct bw_made_directories all; /**< directories are added to it, and written later */
    struct bw_buffer open;          /**< path of the directory that tar has entered last */
    struct bw_buffer path;          /**< a buffer for paths */
    struct bw_sizes pending; /**< lengths of `open` and its parents whose attributes tar has not
                        restored yet, ascending */
};

void bw_directory_order_free(struct bw_directory_order *order);

/** Writes the parent directories of an entry before the entry itself. */
struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length);

/** Writes the remaining directories, then those that must be written again. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order);

#endif
