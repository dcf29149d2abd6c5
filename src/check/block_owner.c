/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The owner in the header of a tree block that subvolumes share. The kernel decides by it whose
 * reference is dropped when the block is copied or its subvolume is deleted, unless the references
 * of the block are counted by its address. It is the subvolume that wrote the block, and that still
 * contains it: when it lets go of the block, the kernel goes over to counting by address.
 *
 * Trees are walked by ascending ids, and snapshots have higher ids than their source, so that
 * nearly all blocks are reached through their owner first. Only for others is it searched.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "check/blocks.h"
#include "check/leaf.h"

/* The first key in a block; false if it is empty. */
static bool first_key(const struct bw_node *node, struct bw_key *key)
{
    struct bw_item item;
    if (!node->item_count)
        return false;
    if (node->level)
        *key = bw_node_key(node, 0);
    else if (bw_leaf_item(node, 0, &item))
        *key = item.key;
    else
        return false;
    return true;
}

/* Follows a key from the root of a tree down to a level, and sets the address of the block there.
 * False if there is none; an error if a block could not be read. */
static struct bw_error *find_block(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                   const struct bw_key *key, uint8_t level, uint64_t *bytenr)
{
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    *bytenr = 0;
    while (pointer.expectation.level > level) {
        BW_TRY(bw_block_read(reader, &pointer, buffer));
        const struct bw_node node = bw_node_view(buffer, reader->nodesize);
        if (!node.item_count)
            return NULL;
        pointer = bw_tree_child_pointer(&pointer, &node, bw_child_slot(&node, key));
    }
    if (pointer.expectation.level == level)
        *bytenr = pointer.bytenr;
    return NULL;
}

static bool is_in_owner(const struct bw_reached_block *block)
{
    const struct bw_check *check = block->check;
    const struct bw_listed_tree *owner = bw_tree_list_find(&check->trees, block->owner);
    struct bw_key key;
    uint64_t bytenr;
    if (!owner)
        return false;
    if (!first_key(&block->node, &key))
        return true;
    BW_AUTO_ERROR struct bw_error *error =
        find_block(&check->fs->reader, &owner->tree, &key, block->node.level, &bytenr);
    return error || bytenr == block->pointer->bytenr;
}

void bw_check_owner(const struct bw_reached_block *block)
{
    const struct bw_check *check = block->check;
    const uint64_t tree = block->tree->tree.id;
    if (block->in_log || !check->extents_known || !block->tree->is_subvolume ||
        block->owner == tree ||
        bw_map_get(&check->full_backrefs, block->pointer->bytenr) != UINT32_MAX ||
        is_in_owner(block))
        return;
    struct bw_subject subject = bw_block_subject(&block->tree->tree, block->pointer);
    subject.finding.length = block->node.nodesize;
    bw_check_find(block->check, BW_CODE_block_owner, &subject,
                  "the owner is tree %" PRIu64 ", which does not contain the block", block->owner);
}
