/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All files below a starting point, in memory, for those who first need all of them: du.c and
 * compression.c. Directories are listed as readdir(3) lists them on a mount, and the files are
 * sorted by inode, so that one scan of each tree finds what belongs to them.
 */
#ifndef BW_OWNERS_FILE_LIST_H
#define BW_OWNERS_FILE_LIST_H

#include "base/buffer.h"
#include "base/pair_set.h"
#include "btrfs-walk/inode.h"

struct bw_selection;

/** Stands for no file. */
enum { BW_NO_FILE = UINT32_MAX };

/** A regular file or a directory. */
struct bw_listed_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint64_t name;   /**< in the names of the list, up to a NUL; of a start, its path */
    uint32_t parent; /**< BW_NO_FILE: it is a start */
    uint32_t first;  /**< of what is in a directory; the others follow it */
    uint32_t count;  /**< of those */
    bool is_directory;
    bool wanted; /**< a file that the selection takes */
    bool again;  /**< it is a further name of an inode of the list */
};

/** An inode that is wanted. */
struct bw_wanted_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint32_t number; /**< of its first name in the list */
    uint32_t order;  /**< of that name, in the order of bw_file_list_next() */
    uint32_t names;  /**< how many there are */
};

/** The list. Set the first members; all others begin as zeros. */
struct bw_file_list {
    struct bw_fs *fs;
    const struct bw_selection *selection; /**< NULL: all files */
    bool has_maxdepth;                    /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories below a start files are wanted */
    unsigned mindepth; /**< and how many of them at least */
    struct bw_listed_file *files;
    size_t count, capacity;
    struct bw_wanted_file *wanted; /**< by subvolume and inode */
    size_t wanted_count;
    struct bw_buffer names;

    /* Private. */
    struct bw_buffer path;      /* of what is being listed, with a NUL */
    struct bw_pair_set entered; /* directories below this start */
    bool too_high;              /* no files are wanted where files are appended */
};

/** Adds what `subvolume` and `start` name, as in struct bw_walk_options, with everything below it:
 * the files from `list->count` on. Nothing is added for what is neither a regular file nor a
 * directory. BW_ERROR_NOT_FOUND, or what a lookup returns; losses are reported. */
struct bw_error *bw_file_list_add(struct bw_file_list *list, const char *subvolume,
                                  const char *start);

/** Sorts the files that are wanted, and finds those that are wanted again. To be called once, after
 * the last start was added. */
struct bw_error *bw_file_list_sort(struct bw_file_list *list);

/** The first file of a start: files and directories come after all that is in them. */
uint32_t bw_file_list_begin(const struct bw_file_list *list, uint32_t start);

/** The file after another one; BW_NO_FILE after the start. */
uint32_t bw_file_list_next(const struct bw_file_list *list, uint32_t number);

/** How many directories below its start a file is. */
uint64_t bw_file_list_depth(const struct bw_file_list *list, uint32_t number);

/** Replaces a text by the absolute path of a file, with a NUL that its length does not count. */
struct bw_error *bw_file_list_path(const struct bw_file_list *list, uint32_t number,
                                   struct bw_buffer *path);

/** Frees what it holds. */
void bw_file_list_free(struct bw_file_list *list);

#endif
