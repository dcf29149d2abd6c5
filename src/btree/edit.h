/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changing a tree without writing it: each block on the path to a key is copied into memory
 * (memory.h), as the kernel copies blocks on write, and the copy of the root becomes the new root.
 * Readers that begin at the new root see the changed tree; the image and other trees do not change.
 *
 * All functions fail if a block on the path cannot be read, or if memory runs out; then the tree
 * has not changed. Items that they return are valid until the next call.
 */
#ifndef BW_BTREE_EDIT_H
#define BW_BTREE_EDIT_H

#include "base/buffer.h"
#include "btree/block.h"

/** A tree that is being changed. Only one thread at a time may use it. */
struct bw_tree_editor {
    struct bw_tree tree; /**< its current root */
    struct bw_tree_reader reader;
    struct bw_block_memory *memory;
    uint64_t generation; /**< the generation of new blocks */
    size_t shared; /**< so many blocks in memory may be part of other trees: they are copied before
                      a change, like blocks of the image */
    /* Private: a leaf before a change, and its items. */
    uint8_t *before;
    struct bw_item *items;
    struct bw_buffer scratch; /* bytes of an item that is being made: see edit_names.h */
};

/** Starts with a tree. New blocks are stored in `memory`, which readers of the changed tree need.
 */
struct bw_error *bw_editor_create(struct bw_tree_editor *editor,
                                  const struct bw_tree_reader *reader,
                                  struct bw_block_memory *memory, const struct bw_tree *tree,
                                  uint64_t generation);

/** Starts with an empty tree, which will be in memory completely. */
struct bw_error *bw_editor_create_empty(struct bw_tree_editor *editor,
                                        const struct bw_tree_reader *reader,
                                        struct bw_block_memory *memory, uint64_t id,
                                        uint64_t generation);

/** Frees what the editor owns; the changed tree remains. */
void bw_editor_destroy(struct bw_tree_editor *editor);

/** Gets the first item whose key is at least `key`; `item->data` is NULL if none exists. */
struct bw_error *bw_edit_first(struct bw_tree_editor *editor, const struct bw_key *key,
                               struct bw_item *item);

/** Gets the last item whose key is at most `key`; `item->data` is NULL if none exists. */
struct bw_error *bw_edit_last(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item);

/** Gets the item with a key; `item->data` is NULL if none exists. */
struct bw_error *bw_edit_find(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item);

/** Adds an item, or replaces its bytes, also with a different size. `data` must not be part of this
 * tree, and must fit into a leaf: see bw_edit_room(). */
struct bw_error *bw_edit_put(struct bw_tree_editor *editor, const struct bw_key *key,
                             const void *data, uint32_t size);

/** Removes an item, if it exists. */
struct bw_error *bw_edit_remove(struct bw_tree_editor *editor, const struct bw_key *key);

/** Puts a node above the root of a tree that may be only a part of one: keys from `end` on are
 * lost, not absent, and unless `has_first`, those before `first`, the key that the root begins
 * with. */
struct bw_error *bw_edit_surround(struct bw_block_memory *memory, struct bw_tree *tree,
                                  const struct bw_key *first, const struct bw_key *end,
                                  bool has_first);

/** Maximum size of an item. */
uint32_t bw_edit_room(const struct bw_tree_editor *editor);

#endif
