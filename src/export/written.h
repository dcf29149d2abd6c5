/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an export has written and needs again until its end: paths, files with several names, and
 * directories, of which backups have millions.
 */
#ifndef BW_EXPORT_WRITTEN_H
#define BW_EXPORT_WRITTEN_H

#include <pthread.h>

#include "base/buffer.h"
#include "base/map.h"
#include "base/packed.h"
#include "btrfs-walk/inode.h"

/*
 * Paths. An image may be made to have long ones: each is a packed record of its last name and of
 * where the directory is that it is in.
 */

/** All zeros is empty. */
struct bw_path_store {
    struct bw_packed records;
    struct bw_buffer last; /**< path of the directory that was looked up last */
    uint32_t last_number;  /**< of it: the next one is mostly near */
};

/** Frees the memory and leaves an empty store. */
void bw_path_store_free(struct bw_path_store *store);

/** Keeps the path of a directory, once, and gives its number; false if memory runs out. */
bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number);

/** Keeps any path, and gives its number; false if memory runs out. */
bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number);

/** Appends the path of a number. */
void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path);

/*
 * Files of which more than one name leaves an image: the first name gets the content, all others
 * become links to it. Safe from any thread.
 */

/** The files so far. */
struct bw_links {
    pthread_mutex_t lock;
    struct bw_map subvolumes; /**< places in `numbers` */
    struct bw_map *numbers;   /**< of files by their inodes, for each subvolume that has any */
    size_t subvolume_count, subvolume_capacity;
    struct bw_linked_file *files;
    size_t count, capacity;
    struct bw_path_store paths;
};

/** Where the content of a file is. */
enum bw_link_state {
    BW_LINK_COMING,  /**< with its name, which was given out before */
    BW_LINK_MADE,    /**< there, under its name */
    BW_LINK_NOWHERE, /**< the name that was to get it could not be made */
    BW_LINK_ZEROED,  /**< there, with zeros for what is lost of it */
    BW_LINK_LOST,    /**< it cannot be read or written under any name */
};

/** Details of a file. */
struct bw_link {
    bool is_first; /**< it was not known before */
    enum bw_link_state state;
    size_t number; /**< of the file */
};

/** Starts. */
void bw_links_init(struct bw_links *links);
/** Frees what it holds. */
void bw_links_free(struct bw_links *links);

/** Meets a name of an inode; `path` ends with NUL. False if memory runs out. */
bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link);

/** Looks a file up. False if it is not known. */
bool bw_links_find(struct bw_links *links, const struct bw_place *place, struct bw_link *link);

/** Sets the state of a file. */
void bw_links_set(struct bw_links *links, size_t number, enum bw_link_state state);

/** Gives the content of a file, which is still to come, to another name. False if memory runs out.
 */
bool bw_links_rename(struct bw_links *links, size_t number, const char *path);

/** Appends the name of a file that has, or gets, the content: the first one that was met, unless it
 * was replaced. */
void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path);

/** What is known of a directory, or of such a file. */
struct bw_made_directory {
    struct bw_place place;
    struct timespec atime, ctime, mtime;
    uint32_t uid, gid;
    uint16_t mode, flags; /**< the lower bits of the inode's, which are all that have a meaning here
                           */
};

/** An owner with a mode and flags: most directories have one of a few. */
struct bw_made_owner {
    uint32_t uid, gid;
    uint16_t mode, flags;
};

enum { BW_MADE_OWNERS = 15 };

/** All zeros is none. There may be millions: each is packed into some thirty bytes with its path.
 */
struct bw_made_directories {
    struct bw_path_store paths;
    const struct bw_subvolume **subvolumes; /**< in which they are */
    size_t subvolume_count, subvolume_capacity;
    struct bw_map subvolume_numbers; /**< indices by address */
    struct bw_made_owner owners[BW_MADE_OWNERS];
    unsigned owner_count;
    int64_t first_mtime; /**< of the first: others are mostly near */
};

/** Frees what it holds. */
void bw_made_directories_free(struct bw_made_directories *directories);

/** Adds one. Of several with the same path, the first counts. */
struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode);

/** Takes a directory; a NUL follows the path. */
typedef struct bw_error *bw_made_directory_visitor(void *context, const char *path, size_t length,
                                                   const struct bw_made_directory *directory);

/** Passes on all, each after those in it. */
struct bw_error *bw_made_directories_visit(const struct bw_made_directories *directories,
                                           bw_made_directory_visitor *visit, void *context);

/** What is known of its inode. */
struct bw_inode bw_made_directory_inode(const struct bw_made_directory *directory);

/*
 * The order of directories in an archive. The walk brings each before what is in it, but those of
 * one level before what is in any of them. GNU tar, however, restores a directory's times and
 * permissions as soon as something comes that is not in it. So a directory waits until something
 * that is in it comes. Those to which the walk comes back all the same are written a second time at
 * the end, what is deepest first; until then a directory has to be as its owner needs it to put
 * something there.
 *
 * Paths are relative to the top, which is the empty path.
 */

/** How often a directory is written. */
enum bw_directory_turn { BW_DIRECTORY_FIRST, BW_DIRECTORY_AGAIN };

/** Writes a directory; a NUL follows the path. */
typedef struct bw_error *bw_directory_writer(void *context, const char *path,
                                             const struct bw_made_directory *directory,
                                             enum bw_directory_turn turn);

/** The directories so far. Begins with all but the first two zero. */
struct bw_directory_order {
    bw_directory_writer *write;
    void *context; /**< passed to it */
    struct bw_made_directories all;
    struct bw_buffer open; /**< path of the one that tar has not finished */
    struct bw_buffer path; /**< scratch space */
};

/** Frees what it holds. */
void bw_directory_order_free(struct bw_directory_order *order);

/** Adds a directory, which is written later. */
struct bw_error *bw_directory_order_add(struct bw_directory_order *order, const char *path,
                                        size_t length, const struct bw_place *place,
                                        const struct bw_inode *inode);

/** Writes the parent directories of an entry before the entry itself. */
struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length);

/** Writes those that are left, and those that have to come again. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order);

#endif
