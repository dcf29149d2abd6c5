/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking up inodes: the INODE_ITEM and the compression property of many inodes of a subvolume, in
 * one way down its tree. Used by collect.h, which knows whose attributes are wanted. What is lost
 * here costs attributes, never names: the walk is not told of it.
 */
#ifndef BW_WALK_ATTRIBUTES_H
#define BW_WALK_ATTRIBUTES_H

#include "base/buffer.h"
#include "btree/block.h"
#include "format/items.h"

struct bw_task_scope;

/** What became of an item that was looked for. */
enum bw_attribute_state {
    BW_ATTRIBUTE_MISSING, /**< the tree has none */
    BW_ATTRIBUTE_FOUND,
    BW_ATTRIBUTE_CUT_OFF, /**< there is one, but it cannot be read */
    BW_ATTRIBUTE_INVALID, /**< an inode whose size no file can have */
    BW_ATTRIBUTE_LOST,    /**< the block it would be in cannot be read */
};

/** The attributes of one inode. */
struct bw_inode_attributes {
    uint64_t number;       /**< set by the caller */
    struct bw_inode inode; /**< if inode_state says that it was found */
    uint32_t compression;  /**< offset of the property's value in what bw_lookup_values() tells */
    uint16_t compression_length;
    uint8_t inode_state, compression_state; /**< enum bw_attribute_state */
};

/** Buffers for looking up, of one worker. */
struct bw_lookup;

/** Allocates them; `needs` are BW_FILE_NEEDS_* flags. NULL if memory runs out. */
struct bw_lookup *bw_lookup_create(const struct bw_tree_reader *reader, unsigned needs);
/** Frees them; NULL is allowed. */
void bw_lookup_destroy(struct bw_lookup *lookup);

/** Fills in attributes, which are ascending by number, each number once. Lost blocks are reported.
 */
void bw_lookup_run(struct bw_lookup *lookup, const struct bw_task_scope *scope,
                   struct bw_inode_attributes *attributes, size_t count);

/** The values of the properties found by the last run, one behind the other; `failed` if memory ran
 * out. */
const struct bw_buffer *bw_lookup_values(const struct bw_lookup *lookup);

#endif
