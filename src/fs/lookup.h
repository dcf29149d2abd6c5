/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: from a path to the inode it names, as a mount of a subvolume at / would find it
 * (lookup.c); the entries of a directory (readdir.c); and from an inode up to its path
 * (directory.c).
 */
#ifndef BW_FS_LOOKUP_H
#define BW_FS_LOOKUP_H

#include "base/buffer.h"
#include "base/map.h"
#include "btrfs-walk/inode.h"
#include "btree/find_leaf.h"
#include "format/items.h"
#include "fs/subvolume.h"

struct bw_fs;

/** Whether it is a BW_EMPTY_DIRECTORY. */
static inline bool bw_place_is_empty(const struct bw_place *place)
{
    return place->inode == BW_EMPTY_DIRECTORY;
}

/** The inode that a mount makes up for such a directory: owner and times are those of the directory
 * that contains it. */
struct bw_inode bw_empty_directory_inode(const struct bw_inode *around);

/**
 * Where an entry of directory `directory` of `subvolume` leads. A subvolume is entered only if the
 * root tree confirms the entry. BW_ERROR_CORRUPT if the entry points to nothing that could be a
 * file.
 */
struct bw_error *bw_place_of_entry(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   uint64_t directory, const struct bw_dir_entry *entry,
                                   struct bw_place *place);

/* The entries of a directory. */

/** An entry. */
struct bw_listed {
    const char *name; /**< raw bytes, not terminated; never "." or ".."; a view that ends with the
                         next entry */
    size_t name_length;
    struct bw_place place; /**< where it leads, as bw_lookup() would say */
    uint64_t position;     /**< from which to go on after it */
};

/** A name that was found in the inode it belongs to. */
struct bw_name_below;

/** A directory that is being read. */
struct bw_readdir {
    struct bw_listed entry; /**< the present one */

    /* Private. */
    struct bw_fs *fs;
    struct bw_place directory;
    enum bw_readdir_source {
        BW_READDIR_INDEX, /* DIR_INDEX */
        BW_READDIR_HASH,  /* DIR_ITEM */
        BW_READDIR_BELOW, /* the inodes */
        BW_READDIR_END,
    } source;
    struct bw_item_range range;
    bool in_range;
    struct bw_cursor cursor; /* in the present item */
    bool in_item;
    bool lost;              /* something of this source */
    uint64_t start;         /* position it began at */
    uint64_t rest;          /* how many entries came from other sources than the index */
    struct bw_map told;     /* hashes of the names of entries, for those sources */
    struct bw_buffer names; /* of entries from below */
    struct bw_name_below *below;
    size_t below_count, below_capacity, below_next;
};

/**
 * Begins to read a directory from a position on: 0, or that of an entry read before. To be ended by
 * bw_readdir_end(), and not to be moved.
 */
void bw_readdir_begin(struct bw_readdir *readdir, struct bw_fs *fs,
                      const struct bw_place *directory, uint64_t position);

/**
 * Moves on to the next entry, in the order of a mount, which is that of the DIR_INDEX keys; `*more`
 * is false at the end. If some of those are lost, entries that only the DIR_ITEMs have follow,
 * then, if some of these are lost, those that only the inodes know. What is lost is reported. Fails
 * only if memory runs out.
 */
struct bw_error *bw_readdir_next(struct bw_readdir *readdir, bool *more);

/** Ends reading, wherever it is. */
void bw_readdir_end(struct bw_readdir *readdir);

/** Receives an entry. An error ends the reading. */
typedef struct bw_error *bw_listed_taker(void *context, const struct bw_listed *entry);

/** Hands out all entries of a directory. Returns the error of `take`, or one of memory. */
struct bw_error *bw_directory_read(struct bw_fs *fs, const struct bw_place *directory,
                                   bw_listed_taker *take, void *context);

/* From an inode up. */

/** One step up. */
struct bw_parent_step {
    uint64_t parent; /**< inode of the directory above */
    char name[BW_NAME_MAX];
    uint16_t name_length;
};

/**
 * Finds the first name of an inode (INODE_REF or INODE_EXTREF). BW_ERROR_NOT_FOUND if it has none;
 * other errors if the part of the tree that would hold it cannot be read.
 */
struct bw_error *bw_inode_step_up(const struct bw_fs *fs, const struct bw_tree *tree,
                                  uint64_t inode, struct bw_parent_step *step);

/**
 * The type (BW_FILE_*) of an entry of a directory, looked up by name through its DIR_ITEM;
 * BW_FILE_UNKNOWN if there is none, or what would hold it cannot be read. Fails only if memory runs
 * out.
 */
struct bw_error *bw_directory_entry_type(const struct bw_fs *fs, const struct bw_tree *tree,
                                         uint64_t directory, const void *name, size_t name_length,
                                         uint8_t *type);

/** Puts the path of a directory ("a/b/", "" for the top one) in front of what `path` holds. */
struct bw_error *bw_directory_path(const struct bw_fs *fs, const struct bw_tree *tree,
                                   uint64_t inode, struct bw_buffer *path);

/**
 * The absolute path of a subvolume's top directory from the top-level subvolume, with a '/' at both
 * ends. BW_ERROR_NOT_FOUND if it has no entry there; BW_ERROR_CORRUPT if the way up is damaged.
 */
struct bw_error *bw_path_of_subvolume(const struct bw_fs *fs, uint64_t id, struct bw_buffer *path);

/** Finds a subvolume by id, by absolute path, or as "default". BW_ERROR_NOT_FOUND if there is none.
 */
struct bw_error *bw_subvolume_lookup(const struct bw_fs *fs, const char *text, uint64_t *id);

#endif
