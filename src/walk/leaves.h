/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaves below one internal node of level 1 (or one leaf that is a whole tree): which of them
 * are wanted, and a window of those that have been read. The wanted leaf with the lowest
 * number always comes next. A leaf may become wanted again at any time, and is not read again while
 * the window holds it. This is the hot path of a walk: unlike a scan, it knows while it reads which
 * leaves it will need next.
 *
 * A leaf that several snapshots share is read and checked once. From then on an entry list replaces
 * it, about a tenth of its size: the regular files, directories and subvolumes in it, by directory.
 * Inodes of files, and other types, are in the list only if it is `numbered`, since plain lists of
 * paths do not need them.
 */
#ifndef BW_WALK_LEAVES_H
#define BW_WALK_LEAVES_H

#include "base/buffer.h"
#include "base/hash_table.h"
#include "btree/block.h"
#include "ondisk/items.h"

/* Entry lists. */

/** Appends the list of a leaf; false if the leaf has flaws that deserve a closer look (or memory
 * runs out).
 */
bool bw_entry_list_make(const struct bw_node *leaf, bool numbered, struct bw_buffer *list);

/** A position in a list. */
struct bw_entry_list_cursor {
    const char *next, *end;
    size_t number_size; /**< bytes of a file's inode number; 0: the list is not numbered */
};

/** The beginning of a list, which may be empty. */
static inline struct bw_entry_list_cursor bw_entry_list_begin(const struct bw_buffer *list,
                                                              bool numbered)
{
    struct bw_entry_list_cursor cursor = {list->data, list->data, numbered ? sizeof(uint64_t) : 0};
    if (list->length)
        cursor.end += list->length;
    return cursor;
}

/** Next directory: its inode, and a cursor over its entries. False at the end. */
bool bw_entry_list_next_directory(struct bw_entry_list_cursor *cursor, uint64_t *inode,
                                  struct bw_entry_list_cursor *entries);

/** The next entry of a directory, as in the leaf; if the list is not numbered, a file's inode is 0.
 * False at the end. */
bool bw_entry_list_next_entry(struct bw_entry_list_cursor *cursor, struct bw_dir_entry *entry);

/* Regular files, which are nearly all entries. Such an entry is BW_LISTED_FILE, the length of the
 * name, the name, and the number of the inode, if the list is numbered. */

enum { BW_LISTED_FILE, BW_LISTED_FILE_MIN = 3 };

/** Whether the next entry is one of them. */
static inline bool bw_entry_list_is_at_file(const struct bw_entry_list_cursor *cursor)
{
    return cursor->next != cursor->end && *cursor->next == BW_LISTED_FILE;
}

/** Its name, after which the number follows, and BW_COPY_SLACK bytes can be read; moves on. */
static inline const uint8_t *bw_entry_list_read_file(struct bw_entry_list_cursor *cursor,
                                                     size_t *length)
{
    const uint8_t *entry = (const uint8_t *)cursor->next;
    *length = entry[1];
    cursor->next += 2 + *length + cursor->number_size;
    return entry + 2;
}

/** The number of the inode after a name in a numbered list. */
static inline uint64_t bw_listed_number(const uint8_t *bytes)
{
    uint64_t number;
    memcpy(&number, bytes, sizeof number);
    return number;
}

/** Entry lists of leaves, by address; bounded in size, safe from any thread. */

struct bw_entry_cache;

/** Makes a cache of at most `size` bytes; NULL if memory runs out. */
struct bw_entry_cache *bw_entry_cache_create(size_t size);
/** Frees a cache; NULL is allowed. */
void bw_entry_cache_destroy(struct bw_entry_cache *cache);

/** Whether the list of a leaf is cached. It must have been read with the same expectation, because
 * only then it was checked. */
bool bw_entry_cache_has(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf);

/** Copies it to `list`, replacing what that holds; false if it is not there. */
bool bw_entry_cache_get(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf,
                        struct bw_buffer *list);

/** Remembers a list, if there is room or something less used gives way. */
void bw_entry_cache_put(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf,
                        const struct bw_buffer *list);

/* The leaves of a node. */

enum {
    BW_WANTED_WORDS = BW_MAX_CHILDREN / 64 + 1,
    BW_NO_SLOT = UINT8_MAX,
    BW_LOST_SLOT = UINT8_MAX - 1, /**< could not be read, and is not read again */
};

struct bw_leaves {
    const struct bw_tree_reader *reader;
    struct bw_entry_cache *lists; /**< NULL: no leaf is shared */
    bool numbered;                /**< lists tell the inodes of files */
    const struct bw_tree *tree;
    struct bw_block_pointer pointer; /**< of the node */
    struct bw_node node;             /**< no items if the block of `pointer` is itself a leaf */
    uint32_t count;                  /**< leaves below the node */
    uint32_t last_found;             /**< by bw_leaves_find() */
    unsigned batch;                  /**< leaves the window holds */
    uint8_t *node_block;
    uint8_t *blocks;                      /**< the window's buffers */
    const uint8_t *root_leaf;             /**< of a tree without nodes, instead of slot 0 */
    uint32_t *slot_leaf;                  /**< leaf a slot of the window holds, or UINT32_MAX */
    uint8_t slot_of[BW_MAX_CHILDREN + 1]; /**< slot of a leaf, or BW_NO_SLOT, or BW_LOST_SLOT */
    uint64_t wanted[BW_WANTED_WORDS];     /**< a bit per leaf */
    struct bw_range ranges[BW_MAX_CHILDREN + 1];
};

/** Allocates the buffers, which must be destroyed even after an error. `lists` may be NULL;
 * `numbered` is the same for all lists in the cache. */
struct bw_error *bw_leaves_create(struct bw_leaves *leaves, const struct bw_tree_reader *reader,
                                  struct bw_entry_cache *lists, bool numbered);
/** Frees the buffers. */
void bw_leaves_destroy(struct bw_leaves *leaves);

/**
 * Moves on to another node and reads it; no leaf is selected yet. Leaves whose addresses are in
 * `lost` are never read: their contents are recovered in another way, and would be listed twice if
 * the leaf became readable.
 */
struct bw_error *bw_leaves_open(struct bw_leaves *leaves, const struct bw_tree *tree,
                                const struct bw_block_pointer *pointer,
                                const struct bw_key_map *lost);

/** Passes the block of `pointer`, which is a leaf, so that it need not be read again. It must stay
 * until the next bw_leaves_open(), and BW_COPY_SLACK bytes after it must be readable. */
void bw_leaves_use(struct bw_leaves *leaves, const uint8_t *block);

/** The last leaf whose first key is at most `key`; 0 if all begin later. */
uint32_t bw_leaves_find(struct bw_leaves *leaves, const struct bw_key *key);

/** Whether there is a leaf `leaf`, and its first key is at most `key`. */
bool bw_leaves_begins_by(const struct bw_leaves *leaves, uint32_t leaf, const struct bw_key *key);

static inline void bw_leaves_want(struct bw_leaves *leaves, uint32_t leaf)
{
    leaves->wanted[leaf / 64] |= (uint64_t)(leaves->slot_of[leaf] != BW_LOST_SLOT) << leaf % 64;
}

/** Tells the read-ahead which leaves are wanted now. */
void bw_leaves_advise(struct bw_leaves *leaves);

/** Receives a leaf that cannot be read, and takes the error. */
typedef void bw_leaf_lost(void *context, const struct bw_block_pointer *pointer,
                          struct bw_error *error);

/** The lowest wanted leaf, which is wanted no more. */
struct bw_wanted_leaf {
    uint32_t number;
    struct bw_node view;   /**< valid until the next call; no block if there is a list */
    struct bw_buffer list; /**< of a shared leaf; belongs to the owner of the structure, reused from
                              call to call */
    bool has_list;
    bool is_cut; /**< the last items were left out: their keys are beyond those of the leaf */
    struct bw_key cut_from, cut_to; /**< the keys that these items have lost; excluding `cut_to` */
};

/** Whether the next wanted leaf is not in the window: reading it replaces leaves there. */
bool bw_leaves_must_read(const struct bw_leaves *leaves);

/** A leaf, if it is in the window; NULL otherwise. `pointer` is in the same tree. */
const uint8_t *bw_leaves_block(struct bw_leaves *leaves, const struct bw_block_pointer *pointer);

/** Moves on to the lowest wanted leaf; false when none is wanted. */
bool bw_leaves_next(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf, bw_leaf_lost *lost,
                    void *context);

#endif
