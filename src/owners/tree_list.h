/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees of the file system: those in the superblock, and those in the root tree. */
#ifndef BW_OWNERS_TREE_LIST_H
#define BW_OWNERS_TREE_LIST_H

#include "base/vector.h"
#include "fs/fs.h"

/** A tree of the file system, as its root item describes it. */
struct bw_listed_tree {
    struct bw_tree tree;
    struct bw_key root_key;      /**< of its ROOT_ITEM; all zeros: the superblock points to it */
    uint32_t references;         /**< of the root item; 0: the subvolume is being deleted */
    uint64_t flags;              /**< of the root item: BW_ROOT_READ_ONLY, ... */
    struct bw_key drop_progress; /**< keys before it are deleted, unless it is all zeros */
    uint8_t drop_level;          /**< blocks below this level are complete or gone as a whole */
    bool is_subvolume;           /**< it holds inodes that users see */
    bool has_inodes;             /**< it is a subvolume, or that of data which are relocated */
    bool is_log;                 /**< a log tree, with changes fsynced after the last transaction */
    bool incomplete;             /**< by the caller: part of it is lost */
    uint64_t total;              /**< by the caller: what it adds up to */
    uint64_t parents;            /**< by the check: the same of directories, and their parents */
    bool has_moved_directories;  /**< by the check: see check/directories.h */
};

BW_VECTOR(bw_listed_trees, struct bw_listed_tree);

/** All trees. All zeros is an empty list. */
struct bw_tree_list {
    struct bw_listed_trees entries; /**< the trees in the superblock, then by key */
    bool report; /**< streams of these trees report lost blocks; set by the caller */
};

static inline void bw_tree_list_free(struct bw_tree_list *list)
{
    bw_listed_trees_free(&list->entries);
}

/** Fills an empty list: the trees of the superblock, then one for each ROOT_ITEM. A damaged root
 * tree comes before the complete one. Does nothing if the list is not empty. Losses are
 * reported. */
struct bw_error *bw_tree_list_load(struct bw_fs *fs, struct bw_tree_list *list);

/** Finds the tree with the roots of the log trees; its id is 0 if the file system has none. Its
 * loss is reported. */
struct bw_error *bw_log_tree_find(struct bw_fs *fs, struct bw_tree *tree);

/** Adds it to the list, and the log trees. Losses are reported. */
struct bw_error *bw_tree_list_load_log(struct bw_fs *fs, struct bw_tree_list *list);

/** The first tree with an id; NULL if it does not exist. */
struct bw_listed_tree *bw_tree_list_find(const struct bw_tree_list *list, uint64_t id);

/** Decodes a ROOT_ITEM for the list; false if it is cut off. */
bool bw_tree_list_decode(const struct bw_item *item, struct bw_listed_tree *tree);

/** The first remaining slot of a node of a subvolume that is being deleted: the slots before it are
 * deleted. */
uint32_t bw_tree_first_slot(const struct bw_listed_tree *tree, const struct bw_node *node);

/** Whether a block is deleted because it is before such a slot. */
bool bw_tree_has_dropped(const struct bw_listed_tree *tree, const struct bw_block_pointer *pointer);

/* The items of a tree, or of several trees with disjoint keys as one sequence in the order of their
 * keys. Losses are skipped; the next item notes them. */

struct bw_item_stream {
    struct bw_item item; /**< the present item, a view that ends with the next step */
    uint64_t tree;       /**< id of the tree that it is in */
    bool ended;          /**< there is no present item */
    bool after_loss; /**< items between the previous one and this one, or the end, may be lost */
    bool lost;       /**< so far, anything */

    /* Private. */
    struct bw_fs *reporting; /* NULL: losses are not reported */
    struct bw_tree_reader reader;
    struct bw_stream_part *parts;
    size_t count, present;
};

/** Begins with the first item of all trees of the list with an id; no tree is like a tree without
 * items. Must be ended, even after an error. */
struct bw_error *bw_item_stream_begin(struct bw_item_stream *stream, struct bw_fs *fs,
                                      const struct bw_tree_list *list, uint64_t tree);

/** Moves on. */
void bw_item_stream_next(struct bw_item_stream *stream);

/** Moves on to the first item from a key on, which is not before the present one, without reading
 * the items before it. */
void bw_item_stream_seek(struct bw_item_stream *stream, const struct bw_key *key);

/** Ends it; returns `error`, or the error of the stream in its place. */
struct bw_error *bw_item_stream_end(struct bw_item_stream *stream, struct bw_error *error);

#endif
