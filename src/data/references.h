/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * References to extents, in one form for both sides: as the extent tree promises them (extent
 * items, and references that are items of their own), and as tree blocks make them (pointers of
 * nodes, file extents of leaves).
 */
#ifndef BW_DATA_REFERENCES_H
#define BW_DATA_REFERENCES_H

#include "fs/fs.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/** A reference to an extent or, with kind 0, facts about a tree block itself. */
struct bw_reference {
    uint64_t bytenr;
    uint64_t length; /**< of data; 0: it is a tree block */
    uint8_t kind;    /**< BW_TREE_BLOCK_REF, BW_SHARED_BLOCK_REF, BW_EXTENT_DATA_REF,
                        BW_SHARED_DATA_REF; 0: the block itself */
    uint64_t source; /**< id of the tree or, if shared, address of the block that refers to it; of
                        the block itself, its generation */
    uint64_t inode;  /**< EXTENT_DATA_REF; of the block itself, its level */
    uint64_t offset; /**< EXTENT_DATA_REF: where the extent would begin in the file, modulo 2^64 */
    uint64_t count;  /**< how many */
};

/** A cursor over the references that a tree block makes. It needs no closing. */
struct bw_block_references {
    const struct bw_node *node;
    uint32_t slot;   /**< the next one */
    uint64_t source; /**< of all references: the owner of the block, or its address */
    bool by_address;
};

/** Starts at a slot of a block, which must stay in memory. `by_address`: the extent item of the
 * block has FULL_BACKREF. */
struct bw_block_references bw_block_references_open(const struct bw_node *node, uint32_t first_slot,
                                                    bool by_address);

/** The next reference; false at the end. */
bool bw_block_references_next(struct bw_block_references *references,
                              struct bw_reference *reference);

/** The address, generation and level in the header of a block, in the form of a reference. */
struct bw_reference bw_block_as_reference(const struct bw_node *node);

/** The reference to the root of a tree; false if it has none because the tree is not in the extent
 * tree. */
bool bw_reference_to_root(const struct bw_tree *tree, struct bw_reference *reference);

/** Whether the extent tree contains the blocks of a tree. */
bool bw_tree_has_references(uint64_t tree);

/** An EXTENT_ITEM or METADATA_ITEM. */
struct bw_extent_entry {
    uint64_t bytenr, length;
    uint64_t references; /**< the number of references according to the item */
    uint64_t generation;
    uint64_t flags;
    bool is_block;        /**< a tree block */
    bool shared_children; /**< FULL_BACKREF: what the block refers to is counted by its address */
    uint8_t level;
    struct bw_cursor inside; /**< the references in the item, for bw_extent_reference_step() */
};

/** Decodes an extent item; false for other items and for truncated ones. */
bool bw_extent_entry_decode(const struct bw_fs *fs, const struct bw_item *item,
                            struct bw_extent_entry *extent);

/** The next reference in the item; references with a count of 0 have no kind. False at the end, or
 * at an invalid reference. */
bool bw_extent_reference_step(struct bw_extent_entry *extent, struct bw_reference *reference);

/** Decodes a reference to the extent that is a separate item; false for other items. */
bool bw_extent_keyed(const struct bw_extent_entry *extent, const struct bw_item *item,
                     struct bw_reference *reference);

/** The same according to the block's extent item, for comparison with the block itself. */
struct bw_reference bw_extent_as_reference(const struct bw_extent_entry *extent);

#endif
