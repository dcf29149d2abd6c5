/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A record of everything an export has written, for its whole run: paths, files with several names,
 * and directories, of which backups may have millions.
 */
#ifndef BW_EXPORT_WRITTEN_H
#define BW_EXPORT_WRITTEN_H

#include <pthread.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/packed.h"
#include "btrfs-walk/inode.h"
#include "export/leaf_list.h"

/*
 * Paths. A crafted image may contain long paths, so each is stored as a packed record of its last
 * component and the number of its parent.
 */

/** All zeros is an empty store. */
struct bw_path_store {
    struct bw_packed records;
    struct bw_buffer last; /**< path of the last directory that was looked up */
    uint32_t last_number;  /**< its number; the next lookup is usually close to it */
};

/** Frees the memory and leaves an empty store. */
void bw_path_store_free(struct bw_path_store *store);

/** Stores the path of a directory once, and returns its number; false if memory runs out. */
bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number);

/** Stores a path and returns its number; false if memory runs out. */
bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number);

/** Appends the path of a number. */
void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path);

/*
 * Files that are exported with several names: the first name gets the contents, the others become
 * hard links to it. Thread-safe.
 */

/** The files found so far. */
struct bw_links {
    pthread_mutex_t lock;
    struct bw_map subvolumes; /**< indices in `numbers`, by subvolume */
    struct bw_map *numbers;   /**< for each subvolume, a map from inodes to files */
    size_t subvolume_count, subvolume_capacity;
    struct bw_linked_file *files;
    size_t count, capacity;
    struct bw_path_store paths;
};

/** The state of a file's contents. */
enum bw_link_state {
    BW_LINK_COMING,  /**< not complete yet */
    BW_LINK_MADE,    /**< exported with the stored name */
    BW_LINK_NOWHERE, /**< could not be exported with the stored name */
    BW_LINK_ZEROED,  /**< exported, with zeros in place of lost parts */
    BW_LINK_LOST,    /**< unreadable, or not writable with any name */
};

/** The state of a file. */
struct bw_link {
    bool is_first; /**< this is the first name */
    enum bw_link_state state;
    size_t number; /**< index of the file */
};

void bw_links_init(struct bw_links *links);
void bw_links_free(struct bw_links *links);

/** Registers a name of an inode; `path` is NUL-terminated. False if memory runs out. */
bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link);

/** Finds a file; false if none of its names was registered. */
bool bw_links_find(struct bw_links *links, const struct bw_place *place, struct bw_link *link);

/** Sets the state of a file. */
void bw_links_set(struct bw_links *links, size_t number, enum bw_link_state state);

/** Replaces the name that will get the contents. False if memory runs out. */
bool bw_links_rename(struct bw_links *links, size_t number, const char *path);

/** Appends the name that has or will get the contents: the first one, unless it was replaced. */
void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path);

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
    const struct bw_subvolume **subvolumes; /**< subvolumes that contain the directories */
    size_t subvolume_count, subvolume_capacity;
    struct bw_map subvolume_numbers; /**< indices by address */
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
    void *context; /**< passed to it */
    struct bw_made_directories all;
    struct bw_buffer open; /**< path of the directory whose attributes tar has not restored yet */
    struct bw_buffer path; /**< a buffer for paths */
};

void bw_directory_order_free(struct bw_directory_order *order);

/** Adds a directory, which is written later. */
struct bw_error *bw_directory_order_add(struct bw_directory_order *order, const char *path,
                                        size_t length, const struct bw_place *place,
                                        const struct bw_inode *inode);

/** Writes the parent directories of an entry before the entry itself. */
struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length);

/** Writes the remaining directories, then those that must be written again. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order);

#endif
