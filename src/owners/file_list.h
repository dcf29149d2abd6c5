/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All files below a starting point, for du.c and compression_sizes.c: in the order in which
 * readdir(3) lists them on a mount, a directory after its contents. They come in batches of some
 * thousand entries. The files of a batch are also sorted by inode, so that one scan of a part of a
 * tree finds their items. Beyond a batch, memory contains a bit for each inode of the subvolumes
 * being listed, and the entries of the directories above the current one.
 */
#ifndef BW_OWNERS_FILE_LIST_H
#define BW_OWNERS_FILE_LIST_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "data/extent_scan.h"

struct bw_fs;
struct bw_selection;

/** Steps through the files and directories. */
enum bw_listed_kind {
    BW_LISTED_FILE,  /**< a regular file */
    BW_LISTED_ENTER, /**< a directory begins */
    BW_LISTED_LEAVE, /**< the directory ends: all of its contents were listed */
};

/** A step. */
struct bw_listed_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint32_t name, name_length; /**< of a beginning entry, in the names of the batch; of the start,
                                   its path */
    uint32_t inode_at;          /**< of a wanted file: in the inodes of the batch */
    uint8_t kind;               /**< enum bw_listed_kind */
    bool wanted;                /**< a file that the selection takes */
};

/** The files to list. */
struct bw_file_list_options {
    const char *subvolume;                /**< as in struct bw_walk_options */
    const char *start;                    /**< likewise */
    const struct bw_selection *selection; /**< NULL: all files */
    bool has_maxdepth;                    /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories below the start files are wanted */
    unsigned mindepth; /**< and how many of them at least */
    unsigned nested;   /**< whether subvolumes below the start are entered: enum bw_nested */
    bool no_snapshots; /**< snapshots below the start are not listed, nor anything in them */
    bool once;         /**< further names of a file are not wanted */
    bool inodes;       /**< the batches have the inodes of wanted files */
};

/** Some of the steps, valid until the next call. */
struct bw_file_batch {
    const struct bw_listed_file *files;
    size_t count;
    const struct bw_wanted_file *wanted; /**< by subvolume and inode */
    size_t wanted_count;
    const char *names;
    const struct bw_wanted_inode *inodes; /**< NULL if they were not read */
};

/** Where a reader of batches is: the path of the step, and how deep it lies. */
struct bw_file_place {
    struct bw_buffer path; /**< absolute, with a NUL that its length does not count */
    size_t depth;          /**< directories below the start */

    /* Private: the directories around, and how long the path is above each of them. */
    struct bw_sizes above;
    size_t length; /* of the path of the directory that the next step is in */
};

struct bw_file_list;

/** Begins a listing. It is empty if the start is neither a regular file nor a directory.
 * BW_ERROR_NOT_FOUND, or what a lookup returns. Must be closed, even after an error. */
struct bw_error *bw_file_list_open(struct bw_fs *fs, const struct bw_file_list_options *options,
                                   struct bw_file_list **list);

/** Gets the next batch; NULL at the end. Losses are reported. */
struct bw_error *bw_file_list_next(struct bw_file_list *list, const struct bw_file_batch **batch);

void bw_file_list_close(struct bw_file_list *list);

/** Goes on to a step. All steps have to come, in their order; `place` begins as all zeros. */
struct bw_error *bw_file_place_step(struct bw_file_place *place, const struct bw_file_batch *batch,
                                    const struct bw_listed_file *file);

/** Frees what it holds. */
void bw_file_place_free(struct bw_file_place *place);

#endif
