/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A comparison, as its parts share it:
 *
 *     pairs.c: items that differ --> touched.c: inodes --> by_inode.c --> results.c --> caller
 *     entries.h: entries of both sides --> merge.c: pairs of entries ----------------> caller
 *
 * The first way is for subvolumes with a common origin. Both read items, names and paths with
 * side.c, and compare files of images with file_changes.c.
 */
#ifndef BW_DIFF_DIFF_H
#define BW_DIFF_DIFF_H

#include "base/hash_table.h"
#include "base/vector.h"
#include "btree/block.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/diff.h"
#include "fs/fs.h"
#include "fs/inode.h"

/*
 * Two trees in parallel: their differing items, in key order. Shared blocks are not read, even if
 * other items around them have shifted, so the cost follows the difference.
 */

/** A key under which the trees differ. */
struct bw_item_pair {
    struct bw_key key;
    const struct bw_item *items[2]; /**< before and after; NULL: that tree has none */
    bool unknown;                   /**< the NULL item may exist, in a lost block */
};

/**
 * A cursor over the differences of two trees:
 *
 *     struct bw_pairs pairs = {.readers = ..., .trees = ...};
 *     while (!error && bw_pairs_next(&pairs))
 *         error = pairs.error ? on_loss(&pairs) : on_pair(&pairs.pair);
 *     error = bw_pairs_end(&pairs, error);
 *
 * It must not be moved.
 */
struct bw_pairs {
    struct bw_tree_reader readers[2];
    struct bw_tree trees[2];
    /** Equal pointers lead to equal blocks and data: both trees are in one file system. Otherwise,
     * items that refer to data are returned even if they are equal. */
    bool shared;
    /** The second tree is a later state of the first, which this transaction committed: where the
     * first has lost a block, blocks of the second that are no newer are skipped. 0: unknown. */
    uint64_t since;

    struct bw_item_pair pair;     /**< the result, until the next step; unless there is an error: */
    struct bw_error *error;       /**< part of a tree is unreadable; the caller may take it */
    unsigned side;                /**< of the error: which tree */
    struct bw_block_pointer lost; /**< of the error: the part, with the key at which it begins */
    uint64_t blocks;              /**< so far: how many were read, or were lost */
    uint64_t announced;           /**< so far: how many blocks were announced */

    struct bw_error *failure; /**< private: memory ran out */
    struct bw_pairs_memory *memory;
};

/** Advances to the next difference or loss; false at the end. */
bool bw_pairs_next(struct bw_pairs *pairs);

/** Ends the comparison. Returns `error`, or another one if memory ran out. */
struct bw_error *bw_pairs_end(struct bw_pairs *pairs, struct bw_error *error);

struct bw_diff_content;
struct bw_entries;
struct bw_xattr_list;

/** A part of a path: the first name of a directory. */
struct bw_diff_part {
    uint64_t parent; /**< inode; 0: the name is lost */
    size_t name;     /**< in the names of the tree */
    uint16_t length;
};

BW_VECTOR(bw_diff_parts, struct bw_diff_part);

/** One of the two subvolumes, and the parts of it that were read. */
struct bw_diff_tree {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
    struct bw_leaf_finder finder;      /**< for inodes, in ascending order */
    struct bw_leaf_finder directories; /**< for the names of directories */
    struct bw_key_map part_of;         /**< numbers of the parts, by inode */
    struct bw_diff_parts parts;
    struct bw_buffer names; /**< of the parts */
    bool lost;              /**< some items that were requested */
    bool unavailable;       /**< all items: it is a state that is no longer on the disk */
};

/** The parts of an inode that differ. */
enum bw_touched_flags {
    BW_TOUCHED_NAMES = 1 << 0,
    BW_TOUCHED_XATTRS = 1 << 1,
    BW_TOUCHED_CONTENT = 1 << 2,
    BW_TOUCHED_REPLACED = 1 << 3, /**< the number has gone to another file */
};

/** An inode with items that differ. */
struct bw_touched {
    uint64_t number;
    size_t range; /**< the first of its ranges; the last one ends where the ranges of the next inode
                     begin */
    unsigned flags;
};

BW_VECTOR(bw_touched_inodes, struct bw_touched);

/** A range of a file that differs, or may differ, in bytes. */
struct bw_diff_range {
    uint64_t start, end;
};

/** Such ranges, ascending. */
BW_VECTOR(bw_diff_ranges, struct bw_diff_range);

/** An entry of a nested subvolume that only one tree has. */
struct bw_nested_entry {
    uint64_t id, directory;
    size_t name; /**< in the names of the list */
    uint16_t name_length;
    uint8_t side;
    bool unknown;
};

BW_VECTOR(bw_nested_entries, struct bw_nested_entry);

/** The differing inodes. All zeros is none. */
struct bw_touched_list {
    struct bw_touched_inodes inodes; /**< ascending */
    struct bw_diff_ranges ranges;
    struct bw_nested_entries nested;
    struct bw_buffer names;
};

/** A difference that waits to be visited. */
struct bw_diff_row {
    size_t path, old_path; /**< in the texts */
    uint32_t path_length, old_path_length;
    uint64_t directory; /* inode of the directory that contains its name, if it was added or deleted
                         */
    uint64_t old_inode, inode, old_size, size, bytes;
    uint16_t changes, unknown;
    uint8_t status, type, old_type;
    bool proven; /**< by generations, although the other tree is lost there */
};

BW_VECTOR(bw_diff_rows, struct bw_diff_row);

/** A comparison of two subvolumes. */
struct bw_diff {
    struct bw_diff_options options;
    struct bw_diff_tree trees[2]; /**< before and after */
    bool by_path;
    bool shared; /**< both are in one file system, or states of one: equal addresses, of states also
                    generations, are equal blocks and extents */
    struct bw_touched_list touched; /**< not by path */
    struct bw_diff_rows rows;
    struct bw_buffer texts;     /**< the paths in the rows */
    struct bw_key_map replaced; /**< inodes that took the place of another: number of its row */
    struct bw_diff_content *content;
    struct bw_diff_ranges *ranges; /**< collects the ranges of contents that differ, or may differ;
                                      NULL: they are only counted */
    bool exists[2];                /**< whether there is such a subvolume before and after */
    const char *prefix;            /**< path of the nested subvolume; otherwise "" */
    struct bw_buffer paths[2];     /**< the old and the new path of a row, with the prefix */
    struct bw_buffer filter;       /**< options.path with a '/' before it and none after it */
    struct bw_diff_summary summary;
};

/* Items (side.c). */

/** Starts with a subvolume. */
void bw_diff_tree_init(struct bw_diff_tree *tree, const struct bw_diff_side *side);

/** Continues with another subvolume of the same file system. Not for paths. */
void bw_diff_tree_set(struct bw_diff_tree *tree, const struct bw_subvolume *subvolume);

/** Frees what it holds. */
void bw_diff_tree_free(struct bw_diff_tree *tree);

/** A cursor over the items in a range of keys:
 *
 *     bw_diff_items_begin(&items, tree, &tree->finder, first, last);
 *     while ((item = bw_diff_items_next(&items)))
 *         ...
 *     BW_TRY(bw_diff_items_end(&items, &lost));
 *
 * The finder is in use until the loop ends. */
struct bw_diff_items {
    struct bw_diff_tree *tree;
    struct bw_leaf_finder *finder;
    struct bw_key first, last, next; /**< `next`: where the next leaf begins */
    uint32_t slot;
    bool in_leaf, ended;
    bool lost; /**< items may be lost */
    struct bw_item item;
    struct bw_error *error;
};

/** Begins before the first item; both keys are included. */
void bw_diff_items_begin(struct bw_diff_items *items, struct bw_diff_tree *tree,
                         struct bw_leaf_finder *finder, struct bw_key first, struct bw_key last);

/** The next item, which is valid until the next call; NULL at the end. */
const struct bw_item *bw_diff_items_next(struct bw_diff_items *items);

/** Ends the loop. `*lost` is set if items may be lost, which was reported. Fails only if memory ran
 * out. */
struct bw_error *bw_diff_items_end(struct bw_diff_items *items, bool *lost);

/** An inode of one tree. */
struct bw_diff_file {
    struct bw_diff_tree *tree;
    uint64_t number;
    bool exists; /**< it has an inode and a name: not a file that was deleted while it was open */
    bool lost;   /**< whether it exists is not known */
    struct bw_inode inode;
};

/** Reads an inode. Fails only if memory runs out. */
struct bw_error *bw_diff_file_read(struct bw_diff_tree *tree, uint64_t number,
                                   struct bw_diff_file *file);

/* Inodes that differ (touched.c). */

/** Compares the trees of the subvolumes; without the older one, finds the items in blocks that are
 * newer than options.since. Fails only if memory runs out. */
struct bw_error *bw_touched_find(struct bw_diff *diff);

/** The record of an inode; NULL if it is the same in both trees. */
const struct bw_touched *bw_touched_get(const struct bw_touched_list *list, uint64_t number);

/** Frees the list. */
void bw_touched_free(struct bw_touched_list *list);

/* Names and paths (side.c). */

/** A name. */
struct bw_diff_name {
    uint64_t parent; /**< inode of its directory */
    size_t bytes;    /**< in the bytes of the list */
    uint16_t length;
};

BW_VECTOR(bw_diff_name_list, struct bw_diff_name);

/** The names of an inode, by directory and bytes. All zeros is an empty list. */
struct bw_diff_names {
    struct bw_diff_name_list list;
    struct bw_buffer bytes;
    bool lost; /**< there may be more */
};

/** Appends a name. */
struct bw_error *bw_diff_names_add(struct bw_diff_names *names, uint64_t parent, const void *name,
                                   uint16_t length);

/** Reads all names of an inode. Fails only if memory runs out. */
struct bw_error *bw_diff_names_read(struct bw_diff_tree *tree, uint64_t inode,
                                    struct bw_diff_names *names);

/** The order of names of an inode before and after. A directory whose number has gone to another
 * one is not the same. */
int bw_diff_names_compare(const struct bw_touched_list *touched, const struct bw_diff_names *before,
                          size_t i, const struct bw_diff_names *after, size_t j);

/** Frees the list. */
void bw_diff_names_free(struct bw_diff_names *names);

/** A text of the rows. */
struct bw_diff_text {
    size_t at;
    uint32_t length; /**< 0: no text */
};

/** Appends to the texts of the rows the path of a name in a directory of a tree (0 or 1). Its
 * length is 0 if a directory on the way is lost, which is reported. Fails only if memory runs out.
 */
struct bw_error *bw_diff_path(struct bw_diff *diff, unsigned side, uint64_t directory,
                              const void *name, size_t length, struct bw_diff_text *path);

/** Whether there is, or may be, something at a path of a tree. Fails only if memory runs out. */
struct bw_error *bw_diff_may_have(struct bw_diff_tree *tree, const char *path, size_t length,
                                  bool *possible);

/* Differences within a file (file_changes.c). */

/** The result of comparing two files. */
struct bw_diff_result {
    unsigned changes, unknown; /**< bits of enum bw_difference_changes */
    uint64_t bytes;            /**< as in struct bw_difference */
};

/** Compares two files of the same type. `touched`: the parts that need comparing; NULL: all. */
struct bw_error *bw_diff_compare(struct bw_diff *diff, const struct bw_diff_file files[2],
                                 const struct bw_touched *touched, struct bw_diff_result *result);

/** Compares only the contents, up to the size of the smaller file. */
struct bw_error *bw_diff_compare_contents(struct bw_diff *diff, const struct bw_diff_file files[2],
                                          const struct bw_touched *touched,
                                          struct bw_diff_result *result);

/** Frees what that has kept; NULL is allowed. */
void bw_diff_content_free(struct bw_diff_content *content);

/* Rows (results.c). */

/** Adds a row, unless it is outside of the requested path. Fails only if memory runs out. */
struct bw_error *bw_diff_rows_add(struct bw_diff *diff, const struct bw_diff_row *row);

/** Whether a path is the requested one, or below it. */
bool bw_diff_selects(const struct bw_diff *diff, const char *path, size_t length);

/** Counts a difference. */
void bw_diff_count(struct bw_diff_summary *summary, const struct bw_difference *difference);

/** A row about a file on either side; NULL: it is not there. */
struct bw_diff_row bw_diff_row_of(enum bw_difference_status status,
                                  const struct bw_diff_file *before,
                                  const struct bw_diff_file *after);

/** Sorts the rows, joins a deletion and an addition at the same path, and visits them. */
struct bw_error *bw_diff_rows_visit(struct bw_diff *diff);

/* The two methods (by_inode.c, merge.c). */

/** By what the trees do not share. */
struct bw_error *bw_diff_by_inode(struct bw_diff *diff);

/** By paths. A side may be NULL: it has no entries. Without the top if diff->prefix is not empty
 * and only one side has entries. */
struct bw_error *bw_diff_merge(struct bw_diff *diff, struct bw_entries *const sides[2]);

/** Reads the extended attributes of a file; `*lost` is set if some may be lost. */
struct bw_error *bw_diff_xattrs_read(const struct bw_diff_file *file, struct bw_xattr_list *list,
                                     bool *lost);

/** Sets `filter` to the path that results are limited to: with a '/' before it and none after it,
 * or empty for the top directory. `path` may be NULL. */
struct bw_error *bw_diff_set_filter(const char *path, struct bw_buffer *filter);

#endif
