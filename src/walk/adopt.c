/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A tree block is referred to either by the tree it belongs to or, when it is shared, by the address of the
 * node above it. So the blocks below a lost node are those that belong to the tree, or that refer to a node
 * found (or lost) one level higher up: level by level, the extent tree is gone through. A leaf counts if its
 * first key is one that was lost.
 */
#include "walk/adopt.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "format/extent.h"
#include "fs/fs.h"

struct adoption {
    struct bw_subvolume_walk *walk;
    uint8_t level;               /* the level looked for in this pass */
    struct bw_map nodes;         /* lost nodes, and those found below them */
    struct bw_tree_extent block; /* the block of the last extent item; bytenr 0 if it is not of this level */
    bool belongs;                /* it was taken already */
    uint8_t *buffer;
};

static bool was_lost(const struct bw_subvolume_walk *walk, const struct bw_key *key, struct bw_key *end)
{
    for (size_t i = 0; i < walk->lost_count; i++) {
        const struct bw_lost_range *range = &walk->lost[i];
        if (range->level == 0 || bw_key_compare(key, &range->low) < 0 ||
            bw_key_compare(key, &range->high) >= 0)
            continue;
        *end = range->high;
        return true;
    }
    return false;
}

/* Reads a leaf and adopts it if its keys were lost. One that cannot be read is left to those who look for
 * names. */
static void adopt(struct adoption *adoption)
{
    struct bw_subvolume_walk *walk = adoption->walk;
    struct bw_adopted_leaf leaf = {.pointer = {.bytenr = adoption->block.bytenr,
                                               .expectation = {.owner = walk->scope.tree->id,
                                                               .generation = adoption->block.generation}}};
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&walk->fs->reader, &leaf.pointer, adoption->buffer);
    struct bw_node node = bw_node_view(adoption->buffer, walk->fs->reader.nodesize);
    if (error || !node.item_count)
        return;
    struct bw_key first = bw_leaf_key(&node, 0);
    if (!was_lost(walk, &first, &leaf.pointer.expectation.end_key))
        return;
    leaf.pointer.expectation.first_key = first;
    leaf.pointer.expectation.has_first_key = true;
    leaf.last_key = bw_leaf_key(&node, node.item_count - 1);
    if (BW_ARRAY_RESERVE(walk->adopted, walk->adopted_count, walk->adopted_capacity))
        walk->adopted[walk->adopted_count++] = leaf;
    else
        walk->memory_short = true;
}

static void take_reference(struct adoption *adoption, const struct bw_extent_reference *reference)
{
    bool below = reference->shared ? bw_map_get(&adoption->nodes, reference->referrer) != UINT32_MAX
                                   : reference->referrer == adoption->walk->scope.tree->id;
    if (!below || adoption->belongs || !adoption->block.bytenr)
        return;
    adoption->belongs = true;
    if (adoption->level == 0)
        adopt(adoption);
    else
        adoption->walk->memory_short |= !bw_map_put(&adoption->nodes, adoption->block.bytenr, 1);
}

static void take_item(struct adoption *adoption, const struct bw_item *item)
{
    struct bw_tree_extent extent;
    struct bw_extent_reference reference;
    if (bw_tree_extent_decode(item, &extent)) {
        adoption->block = extent;
        adoption->belongs = false;
        if (extent.level != adoption->level)
            adoption->block.bytenr = 0;
        while (bw_extent_reference_next(&extent.references, &reference))
            take_reference(adoption, &reference);
    } else if (item->key.objectid == adoption->block.bytenr &&
               bw_extent_reference_of_key(&item->key, &reference)) {
        take_reference(adoption, &reference);
    }
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct adoption *adoption = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        if (bw_leaf_item(leaf, slot, &item))
            take_item(adoption, &item);
    }
    return adoption->walk->memory_short ? bw_error_no_memory() : NULL;
}

static void ignore_lost(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    (void)context;
    (void)pointer;
    bw_error_free(error);
}

static int by_first_key(const void *a, const void *b)
{
    const struct bw_adopted_leaf *left = a, *right = b;
    return bw_key_compare(&left->pointer.expectation.first_key, &right->pointer.expectation.first_key);
}

/* Sorts the leaves. Each ends where the next begins; of two that overlap, which no sound tree has, only one
 * stays. */
static void put_in_order(struct bw_subvolume_walk *walk)
{
    size_t kept = 0;
    if (walk->adopted_count)
        qsort(walk->adopted, walk->adopted_count, sizeof *walk->adopted, by_first_key);
    for (size_t i = 0; i < walk->adopted_count; i++) {
        struct bw_adopted_leaf *leaf = &walk->adopted[i], *before = kept ? &walk->adopted[kept - 1] : NULL;
        const struct bw_key *first = &leaf->pointer.expectation.first_key;
        if (before && bw_key_compare(first, &before->last_key) <= 0)
            continue;
        if (before && bw_key_compare(first, &before->pointer.expectation.end_key) < 0)
            before->pointer.expectation.end_key = *first;
        walk->adopted[kept++] = *leaf;
    }
    walk->adopted_count = kept;
}

/* The highest level of a lost node; the nodes themselves are where the search begins. */
static uint8_t begin(struct adoption *adoption)
{
    struct bw_subvolume_walk *walk = adoption->walk;
    uint8_t highest = 0;
    for (size_t i = 0; i < walk->lost_count; i++) {
        if (walk->lost[i].level == 0)
            continue;
        walk->memory_short |= !bw_map_put(&adoption->nodes, walk->lost[i].bytenr, 1);
        if (walk->lost[i].level > highest)
            highest = walk->lost[i].level;
    }
    return highest;
}

struct bw_error *bw_adopt_leaves(struct bw_subvolume_walk *walk)
{
    struct adoption adoption = {.walk = walk};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = take_leaf, .lost = ignore_lost, .context = &adoption};
    struct bw_error *error = NULL;
    uint8_t level = begin(&adoption);
    walk->adopted_count = 0;
    if (level && walk->fs->extent_tree.id) {
        adoption.buffer = bw_block_buffer(&walk->fs->reader, 1);
        if (!adoption.buffer)
            error = bw_error_no_memory();
    }
    while (level && adoption.buffer && !error) {
        adoption.level = --level;
        adoption.block.bytenr = 0;
        error = bw_tree_scan(&walk->fs->reader, &walk->fs->extent_tree, &scan);
    }
    put_in_order(walk);
    bw_map_free(&adoption.nodes);
    free(adoption.buffer);
    return error;
}
