/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changing a tree without writing it: each block that a key leads to is copied into memory
 * (memory.h), as the kernel copies a block on write, and the root of the tree moves there. Readers
 * that begin at the new root see the changed tree; the image and other trees stay as they are.
 *
 * All functions fail if a block on the way cannot be read, or if memory runs out; the tree is
 * unchanged then. The items that they hand out are views that end with the next call.
 */
#ifndef BW_BTREE_EDIT_H
#define BW_BTREE_EDIT_H

#include "btree/block.h"

/** A tree that is being changed. One thread at a time may use it. */
struct bw_tree_editor {
    struct bw_tree tree; /**< as it is now */
    struct bw_tree_reader reader;
    struct bw_block_memory *memory;
    uint64_t generation; /**< of the blocks that it makes */
    /* Private: a leaf before a change, and its items. */
    uint8_t *before;
    struct bw_item *items;
};

/** Begins with a tree. The blocks go to `memory`, which readers of the changed tree need. */
struct bw_error *bw_editor_create(struct bw_tree_editor *editor,
                                  const struct bw_tree_reader *reader,
                                  struct bw_block_memory *memory, const struct bw_tree *tree,
                                  uint64_t generation);

/** Begins with an empty tree, all of which will be in memory. */
struct bw_error *bw_editor_create_empty(struct bw_tree_editor *editor,
                                        const struct bw_tree_reader *reader,
                                        struct bw_block_memory *memory, uint64_t id,
                                        uint64_t generation);

/** Frees what the editor itself holds; the changed tree stays. */
void bw_editor_destroy(struct bw_tree_editor *editor);

/** The first item whose key is at least `key`; `item->data` is NULL if there is none. */
struct bw_error *bw_edit_first(struct bw_tree_editor *editor, const struct bw_key *key,
                               struct bw_item *item);

/** The last item whose key is at most `key`; `item->data` is NULL if there is none. */
struct bw_error *bw_edit_last(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item);

/** The item of a key; `item->data` is NULL if there is none. */
struct bw_error *bw_edit_find(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item);

/** Sets the bytes of an item, which may be a new one, and of another size than before. They must
 * not be a view of an item of this tree, and must fit into a leaf: see bw_edit_room(). */
struct bw_error *bw_edit_put(struct bw_tree_editor *editor, const struct bw_key *key,
                             const void *data, uint32_t size);

/** Removes an item; it is no error if there is none. */
struct bw_error *bw_edit_remove(struct bw_tree_editor *editor, const struct bw_key *key);

/** The most bytes that an item can have. */
uint32_t bw_edit_room(const struct bw_tree_editor *editor);

#endif
