/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paired descent. Each tree has a cursor, which is at a pointer, at an item, or at a loss. The
 * one that begins at the lower key is opened, or passed on; of two that begin at the same key, the
 * one on the higher level. A shared block begins at the same key in both trees, so both cursors
 * reach it before either has opened it, and skip it together.
 *
 * The descent ends, because every step opens a block or leaves something behind; and a cursor opens
 * no block twice, since each block must begin with the key of its pointer.
 */
#include "diff/pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum front { AT_END, AT_POINTER, AT_ITEM, AT_LOSS };

/* A block that is open, and the slot where the cursor is. */
struct open_block {
    uint8_t *bytes;
    struct bw_node node;
    struct bw_block_pointer pointer;
    uint32_t slot;
};

struct cursor {
    struct bw_pairs *pairs;
    unsigned side;
    struct open_block blocks[BW_MAX_LEVEL]; /* from the root down */
    unsigned depth;
    enum front front;
    struct bw_key start;                     /* the key at which its current element begins */
    struct bw_block_pointer pointer;         /* AT_POINTER, AT_LOSS */
    struct bw_item item;                     /* AT_ITEM */
    bool item_lost;                          /* its bytes lie outside the leaf */
    struct bw_range ranges[BW_MAX_CHILDREN]; /* to be announced */
};

static void stand_at_item(struct cursor *cursor, const struct open_block *block)
{
    cursor->front = AT_ITEM;
    cursor->item_lost = !bw_leaf_item(&block->node, block->slot, &cursor->item);
    cursor->start = cursor->item.key;
}

static void stand_at_pointer(struct cursor *cursor, const struct bw_block_pointer *pointer)
{
    cursor->front = AT_POINTER;
    cursor->pointer = *pointer;
    cursor->start = pointer->expectation.first_key;
}

/* Moves to the present slot of the lowest block that is open and has more. */
static void move_to_next(struct cursor *cursor)
{
    while (cursor->depth) {
        const struct open_block *block = &cursor->blocks[cursor->depth - 1];
        if (block->slot < block->node.item_count && block->node.level) {
            const struct bw_block_pointer child =
                bw_tree_child_pointer(&block->pointer, &block->node, block->slot);
            stand_at_pointer(cursor, &child);
            return;
        }
        if (block->slot < block->node.item_count) {
            stand_at_item(cursor, block);
            return;
        }
        if (--cursor->depth)
            cursor->blocks[cursor->depth - 1].slot++;
    }
    cursor->front = AT_END;
}

static void pass(struct cursor *cursor)
{
    if (cursor->depth)
        cursor->blocks[cursor->depth - 1].slot++;
    move_to_next(cursor);
}

/* Items are compared in the order of their keys, so the items of a leaf must ascend within its
 * range. */
static struct bw_error *check_items(const struct open_block *block)
{
    const struct bw_node *leaf = &block->node;
    const struct bw_key end = block->pointer.expectation.end_key, none = BW_KEY_MAX;
    struct bw_key least = block->pointer.expectation.first_key;
    bool ascends = true;
    for (uint32_t slot = 0; ascends && !leaf->level && slot < leaf->item_count; slot++) {
        const struct bw_key key = bw_leaf_key(leaf, slot);
        const int order = bw_key_compare(&key, &least);
        ascends = order > 0 || (order == 0 && slot == 0);
        least = key;
    }
    if (ascends && (leaf->level || !leaf->item_count || bw_key_compare(&least, &end) < 0 ||
                    bw_key_compare(&end, &none) == 0))
        return NULL;
    return bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 ": its keys are out of order",
                           block->pointer.bytenr);
}

static struct bw_error *report_lost(const struct cursor *cursor,
                                    const struct bw_block_pointer *pointer, struct bw_error *error)
{
    const struct bw_pairs *pairs = cursor->pairs;
    return error->code == BW_ERROR_NO_MEMORY
               ? error
               : pairs->lost(pairs->context, cursor->side, pointer, error);
}

/* Opens the block of the cursor's pointer. Fails only if memory runs out. */
static struct bw_error *open_block(struct cursor *cursor)
{
    const struct bw_tree_reader *reader = &cursor->pairs->readers[cursor->side];
    struct open_block *block = &cursor->blocks[cursor->depth];
    if (!block->bytes)
        block->bytes = bw_block_buffer(reader, 1);
    if (!block->bytes)
        return bw_error_no_memory();
    cursor->pairs->blocks++;
    struct bw_error *error = bw_block_read(reader, &cursor->pointer, block->bytes);
    if (!error) {
        block->node = bw_node_view(block->bytes, reader->nodesize);
        block->pointer = cursor->pointer;
        block->slot = 0;
        error = check_items(block);
    }
    if (error) {
        cursor->front = AT_LOSS;
        return report_lost(cursor, &cursor->pointer, error);
    }
    cursor->depth++;
    move_to_next(cursor);
    return NULL;
}

/* The node of a cursor whose children are leaves; NULL: none is open. */
static const struct open_block *parent_of_leaves(const struct cursor *cursor)
{
    for (unsigned i = 0; i < cursor->depth; i++)
        if (cursor->blocks[i].node.level == 1)
            return &cursor->blocks[i];
    return NULL;
}

/* Announces the leaves that a cursor will read, unless the other one has them, too. */
static void announce_leaves(struct cursor *cursor, const struct open_block *other)
{
    const struct bw_tree_reader *reader = &cursor->pairs->readers[cursor->side];
    const struct open_block *block = parent_of_leaves(cursor);
    size_t count = 0;
    for (uint32_t slot = block->slot, at = 0; slot < block->node.item_count; slot++) {
        const struct bw_node_pointer child = bw_node_pointer_at(&block->node, slot);
        struct bw_node_pointer twin = {.bytenr = 0};
        for (; at < other->node.item_count; at++) {
            twin = bw_node_pointer_at(&other->node, at);
            if (bw_key_compare(&twin.key, &child.key) >= 0)
                break;
        }
        if (twin.bytenr != child.bytenr || twin.generation != child.generation)
            cursor->ranges[count++] = (struct bw_range){child.bytenr, reader->nodesize};
    }
    if (count > 1)
        bw_blocks_advise(reader, cursor->ranges, count);
}

/* To be called when a node was opened. */
static void announce(struct cursor *opened, struct cursor *other)
{
    const struct open_block *ours = parent_of_leaves(opened), *theirs = parent_of_leaves(other);
    if (!ours || !theirs || ours != &opened->blocks[opened->depth - 1])
        return;
    announce_leaves(opened, theirs);
    announce_leaves(other, ours);
}

static int level_of(const struct cursor *cursor)
{
    return cursor->front == AT_POINTER ? cursor->pointer.expectation.level : -1;
}

/* Negative: the first one begins at a lower key. */
static int compare_starts(const struct cursor *a, const struct cursor *b)
{
    if (a->front == AT_END || b->front == AT_END)
        return (a->front == AT_END) - (b->front == AT_END);
    return bw_key_compare(&a->start, &b->start);
}

static bool is_shared(const struct cursor *a, const struct cursor *b)
{
    return a->pairs->shared && a->front == AT_POINTER && b->front == AT_POINTER &&
           a->pointer.bytenr == b->pointer.bytenr &&
           a->pointer.expectation.generation == b->pointer.expectation.generation &&
           a->pointer.expectation.level == b->pointer.expectation.level;
}

/* The item at a cursor; NULL if its bytes are lost, which is reported. */
static struct bw_error *set_item(struct cursor *cursor, struct bw_item_pair *pair)
{
    if (!cursor->item_lost) {
        pair->items[cursor->side] = &cursor->item;
        return NULL;
    }
    const struct open_block *block = &cursor->blocks[cursor->depth - 1];
    struct bw_block_pointer place = block->pointer;
    place.expectation.first_key = cursor->start;
    pair->unknown = true;
    return report_lost(cursor, &place,
                       bw_error_create(BW_ERROR_CORRUPT,
                                       "tree block %" PRIu64 ": item %" PRIu32
                                       " lies outside its leaf",
                                       block->pointer.bytenr, block->slot));
}

/* Hands out an item that only one tree has, or that has no counterpart because of a loss. */
static struct bw_error *give(struct cursor *cursor, bool unknown)
{
    struct bw_item_pair pair = {.key = cursor->start, .unknown = unknown};
    BW_TRY(set_item(cursor, &pair));
    BW_TRY(cursor->pairs->take(cursor->pairs->context, &pair));
    pass(cursor);
    return NULL;
}

static struct bw_error *give_both(struct cursor *a, struct cursor *b)
{
    struct bw_item_pair pair = {.key = a->start};
    BW_TRY(set_item(a, &pair));
    BW_TRY(set_item(b, &pair));
    bool equal = !pair.unknown && a->item.size == b->item.size &&
                 memcmp(a->item.data, b->item.data, a->item.size) == 0;
    if (!equal)
        BW_TRY(a->pairs->take(a->pairs->context, &pair));
    pass(a);
    pass(b);
    return NULL;
}

/* If one tree has lost a block, the items of the other one in its range are of unknown status. */
static struct bw_error *step_at_loss(struct cursor *lost, struct cursor *other)
{
    const struct bw_key *end = &lost->pointer.expectation.end_key;
    if (other->front == AT_END || bw_key_compare(&other->start, end) >= 0) {
        pass(lost);
        return NULL;
    }
    if (other->front == AT_LOSS) {
        const struct bw_key *other_end = &other->pointer.expectation.end_key;
        pass(bw_key_compare(end, other_end) <= 0 ? lost : other);
        return NULL;
    }
    return other->front == AT_POINTER ? open_block(other) : give(other, true);
}

static struct bw_error *step(struct cursor *a, struct cursor *b)
{
    const int order = compare_starts(a, b);
    if (order == 0 && is_shared(a, b)) {
        pass(a);
        pass(b);
        return NULL;
    }
    if (order == 0 && a->front == AT_ITEM && b->front == AT_ITEM)
        return give_both(a, b);
    bool a_first = order ? order < 0 : a->front == AT_LOSS || level_of(a) >= level_of(b);
    if (order == 0 && b->front == AT_LOSS)
        a_first = false;
    struct cursor *first = a_first ? a : b, *second = a_first ? b : a;
    if (first->front == AT_LOSS)
        return step_at_loss(first, second);
    if (first->front != AT_POINTER)
        return give(first, false);
    BW_TRY(open_block(first));
    announce(first, second);
    return NULL;
}

struct bw_error *bw_pairs_compare(struct bw_pairs *pairs)
{
    BW_AUTO_FREE struct cursor *cursors = calloc(2, sizeof *cursors);
    struct bw_error *error = NULL;
    if (!cursors)
        return bw_error_no_memory();
    pairs->blocks = 0;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_block_pointer root = bw_tree_root_pointer(&pairs->trees[side], false);
        cursors[side].pairs = pairs;
        cursors[side].side = side;
        stand_at_pointer(&cursors[side], &root);
    }
    while (!error && (cursors[0].front != AT_END || cursors[1].front != AT_END))
        error = step(&cursors[0], &cursors[1]);
    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < BW_MAX_LEVEL; i++)
            free(cursors[side].blocks[i].bytes);
    return error;
}
