/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extent tree says of each tree block which tree it belongs to or, if it is shared, which node above it
 * refers to it. So the blocks below a lost node are known: they belong to the walked tree, or to the tree
 * that the lost node itself belongs to (a snapshot refers to a node of another tree as a whole), or they are
 * referred to by a node found below the lost one. The extent tree is gone through once a level, downwards; of
 * the leaves found those count whose first key was lost.
 */
#include "walk/adopt.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "format/extent.h"
#include "fs/fs.h"
#include "walk/lost_ranges.h"
#include "xlators/classes.h"

/* A tree other than the walked one, and the keys for which its leaves stand in. */
struct claim {
    uint64_t tree;
    struct bw_lost_range range;
};

struct adoption {
    struct bw_subvolume_walk *walk;
    struct bw_lost_list lost; /* ranges of lost nodes; those of leaves are not in it */
    uint64_t newest;          /* no block below a lost node is newer */
    uint8_t level;            /* the level looked for in this pass */
    struct bw_map lost_nodes; /* addresses of lost nodes, to their index in walk->lost */
    struct bw_map nodes;      /* addresses of nodes found below them */
    struct claim *claims;
    size_t claim_count, claim_capacity;
    struct bw_tree_extent block; /* the block of the last extent item; bytenr 0 if it is of no interest */
    bool taken;                  /* the block counts, so that further references to it change nothing */
    unsigned candidate_count, batch;
    struct candidate {
        struct bw_block_pointer pointer;
        uint64_t tree; /* whose leaf it is; 0 if it came by the node above it */
    } candidates[BW_BATCH];
    uint8_t *buffers;
};

static bool is_claimed(const struct adoption *adoption, uint64_t tree, const struct bw_key *key)
{
    for (size_t i = 0; i < adoption->claim_count; i++) {
        const struct claim *claim = &adoption->claims[i];
        if (claim->tree == tree && (!key || (bw_key_compare(key, &claim->range.low) >= 0 &&
                                             bw_key_compare(key, &claim->range.high) < 0)))
            return true;
    }
    return false;
}

/* Where the lost keys end that begin in a piece: pieces that touch were lost in different waves. */
static struct bw_key end_of_loss(const struct bw_lost_list *list, const struct bw_lost_range *piece)
{
    const struct bw_lost_range *last = list->items + list->count - 1;
    while (piece < last && bw_key_compare(&piece->high, &piece[1].low) == 0)
        piece++;
    return piece->high;
}

static void adopt(struct adoption *adoption, const struct candidate *candidate, const struct bw_node *leaf)
{
    struct bw_subvolume_walk *walk = adoption->walk;
    if (!leaf->item_count)
        return;
    struct bw_key first = bw_leaf_key(leaf, 0);
    const struct bw_lost_range *range = bw_lost_list_find(&adoption->lost, &first);
    if (!range || (candidate->tree && candidate->tree != walk->scope.tree->id &&
                   !is_claimed(adoption, candidate->tree, &first)))
        return;
    struct bw_adopted_leaf adopted = {candidate->pointer, bw_leaf_key(leaf, leaf->item_count - 1),
                                      range->wave};
    adopted.pointer.expectation.first_key = first;
    adopted.pointer.expectation.has_first_key = true;
    adopted.pointer.expectation.end_key = end_of_loss(&adoption->lost, range);
    if (BW_ARRAY_RESERVE(walk->adopted, walk->adopted_count, walk->adopted_capacity))
        walk->adopted[walk->adopted_count++] = adopted;
    else
        walk->memory_short = true;
}

/* Reads the leaves collected. One that cannot be read is left to those who look for single names. */
static void read_candidates(struct adoption *adoption)
{
    const struct bw_tree_reader *reader = &adoption->walk->fs->reader;
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < adoption->candidate_count; i++)
        requests[i] = bw_block_request(reader, &adoption->candidates[i].pointer,
                                       adoption->buffers + (size_t)i * reader->nodesize);
    bw_blocks_read(reader, requests, adoption->candidate_count);
    for (unsigned i = 0; i < adoption->candidate_count; i++) {
        struct bw_node leaf = bw_node_view(requests[i].buffer, reader->nodesize);
        if (!requests[i].error)
            adopt(adoption, &adoption->candidates[i], &leaf);
        bw_error_free(requests[i].error);
    }
    adoption->candidate_count = 0;
}

static void take_block(struct adoption *adoption, const struct bw_extent_reference *reference)
{
    adoption->taken = true;
    if (adoption->level) {
        adoption->walk->memory_short |= !bw_map_put(&adoption->nodes, adoption->block.bytenr, 1);
        return;
    }
    adoption->candidates[adoption->candidate_count++] = (struct candidate){
        .pointer = {adoption->block.bytenr,
                    {.owner = adoption->walk->scope.tree->id, .generation = adoption->block.generation}},
        .tree = reference->shared ? 0 : reference->referrer,
    };
    if (adoption->candidate_count == adoption->batch)
        read_candidates(adoption);
}

/* The tree that a lost node belongs to stands in for the walked one, in the range of that node. */
static void add_claim(struct adoption *adoption, uint64_t tree, uint32_t lost)
{
    if (BW_ARRAY_RESERVE(adoption->claims, adoption->claim_count, adoption->claim_capacity))
        adoption->claims[adoption->claim_count++] = (struct claim){tree, adoption->walk->lost[lost]};
    else
        adoption->walk->memory_short = true;
}

static void take_reference(struct adoption *adoption, const struct bw_extent_reference *reference)
{
    if (!adoption->block.bytenr)
        return;
    uint32_t lost = bw_map_get(&adoption->lost_nodes, adoption->block.bytenr);
    if (lost != UINT32_MAX) {
        if (!reference->shared)
            add_claim(adoption, reference->referrer, lost);
        return;
    }
    bool below = reference->shared ? bw_map_get(&adoption->lost_nodes, reference->referrer) != UINT32_MAX ||
                                         bw_map_get(&adoption->nodes, reference->referrer) != UINT32_MAX
                                   : reference->referrer == adoption->walk->scope.tree->id ||
                                         is_claimed(adoption, reference->referrer, NULL);
    if (below && !adoption->taken)
        take_block(adoption, reference);
}

static void take_item(struct adoption *adoption, const struct bw_item *item)
{
    struct bw_tree_extent extent;
    struct bw_extent_reference reference;
    if (bw_tree_extent_decode(item, &extent)) {
        adoption->block = extent;
        adoption->taken = false;
        if (extent.level != adoption->level || extent.generation > adoption->newest)
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

/* Notes the lost nodes; the highest level of one is where the search begins, 0 if there is none. */
static uint8_t note_lost_nodes(struct adoption *adoption)
{
    struct bw_subvolume_walk *walk = adoption->walk;
    uint8_t highest = 0;
    for (size_t i = 0; i < walk->lost_count && i < UINT32_MAX; i++) {
        const struct bw_lost_range *range = &walk->lost[i];
        if (range->level == 0)
            continue;
        walk->memory_short |= !bw_map_put(&adoption->lost_nodes, range->bytenr, (uint32_t)i);
        highest = range->level > highest ? range->level : highest;
        adoption->newest = range->generation > adoption->newest ? range->generation : adoption->newest;
    }
    return highest;
}

static struct bw_error *search(struct adoption *adoption, uint8_t highest)
{
    struct bw_subvolume_walk *walk = adoption->walk;
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = take_leaf, .lost = bw_scan_ignore_lost,
                                 .context = adoption};
    BW_TRY(bw_lost_list_make(walk->lost, walk->lost_count, 1, &adoption->lost));
    adoption->batch = bw_block_batch(&walk->fs->reader);
    adoption->buffers = bw_block_buffer(&walk->fs->reader, adoption->batch);
    if (!adoption->buffers)
        return bw_error_no_memory();
    for (unsigned passes = highest + 1u; passes--;) {
        adoption->level = (uint8_t)passes;
        adoption->block.bytenr = 0;
        BW_TRY(bw_tree_scan(&walk->fs->reader, &walk->fs->extent_tree, &scan));
    }
    read_candidates(adoption);
    put_in_order(walk);
    return walk->memory_short ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_adopt_leaves(struct bw_subvolume_walk *walk)
{
    walk->adopted_count = 0;
    struct adoption *adoption = calloc(1, sizeof *adoption);
    if (!adoption)
        return bw_error_no_memory();
    adoption->walk = walk;
    uint8_t highest = note_lost_nodes(adoption);
    struct bw_error *error = highest && walk->fs->extent_tree.id ? search(adoption, highest) : NULL;
    bw_lost_list_free(&adoption->lost);
    bw_map_free(&adoption->lost_nodes);
    bw_map_free(&adoption->nodes);
    free(adoption->claims);
    free(adoption->buffers);
    free(adoption);
    return error;
}

/* The last adopted leaf that begins at or before a key, counted from 1; 0 if there is none. */
static size_t last_before(const struct bw_adopted_leaf *leaves, size_t count, const struct bw_key *key)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bw_key_compare(&leaves[middle].pointer.expectation.first_key, key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct bw_adopted_leaf *bw_adopted_leaf_of(const struct bw_adopted_leaf *leaves, size_t count,
                                                 const struct bw_key *key)
{
    size_t at = last_before(leaves, count, key);
    return at && bw_key_compare(key, &leaves[at - 1].last_key) <= 0 ? &leaves[at - 1] : NULL;
}

bool bw_is_adopted(const struct bw_subvolume_walk *walk, const struct bw_key *key)
{
    return bw_adopted_leaf_of(walk->adopted, walk->adopted_count, key) != NULL;
}

struct bw_error *bw_visit_adopted(const struct bw_subvolume_walk *walk, const struct bw_key *first,
                                  const struct bw_key *last,
                                  struct bw_error *(*visit)(void *context, const struct bw_node *leaf),
                                  void *context)
{
    size_t begin = last_before(walk->adopted, walk->adopted_count, first);
    size_t end = last_before(walk->adopted, walk->adopted_count, last);
    BW_AUTO_FREE uint8_t *block = end ? bw_block_buffer(&walk->fs->reader, 1) : NULL;
    for (size_t i = begin ? begin - 1 : 0; i < end; i++) {
        if (!block)
            return bw_error_no_memory();
        BW_AUTO_ERROR struct bw_error *error =
            bw_block_read(&walk->fs->reader, &walk->adopted[i].pointer, block);
        struct bw_node leaf = bw_node_view(block, walk->fs->reader.nodesize);
        if (!error)
            BW_TRY(visit(context, &leaf));
    }
    return NULL;
}
