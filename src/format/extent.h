/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items of the extent tree that stand for tree blocks: which blocks are in use, how high in their
 * tree they are, and which trees or blocks refer to them.
 */
#ifndef BW_FORMAT_EXTENT_H
#define BW_FORMAT_EXTENT_H

#include "format/items.h"

/** A tree block that is in use. */
struct bw_tree_extent {
    uint64_t bytenr;
    uint64_t generation; /**< transaction that wrote it */
    uint8_t level;
    struct bw_cursor references; /**< for bw_extent_reference_next() */
};

/** A reference to a tree block: from a tree (the block belongs to it), or from the node above it
 * (it is shared). */
struct bw_extent_reference {
    bool shared;
    uint64_t referrer; /**< id of the tree or, if shared, address of the node above */
};

/** Reads a METADATA_ITEM, or an EXTENT_ITEM of a tree block; false for any other item, or one that
 * is cut off. */
bool bw_tree_extent_decode(const struct bw_item *item, struct bw_tree_extent *extent);

/** Next reference that is kept in the item itself; false at the end, or at one that no tree block
 * can have.
 */
bool bw_extent_reference_next(struct bw_cursor *cursor, struct bw_extent_reference *reference);

/** Reads a reference that is an item of its own, to the block at key.objectid; false for any other
 * item. */
bool bw_extent_reference_of_key(const struct bw_key *key, struct bw_extent_reference *reference);

#endif
