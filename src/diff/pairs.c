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
#include "diff/diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "ondisk/disk_items.h"

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
    struct bw_key start;             /* the key at which its current element begins */
    struct bw_block_pointer pointer; /* AT_POINTER, AT_LOSS */
    struct bw_item item;             /* AT_ITEM */
    bool item_lost;                  /* its bytes lie outside the leaf */
    bool loss_returned;              /* and the caller knows */
    bool is_done;                    /* the item was returned, or is the same in both trees */
};

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
            cursor->front = AT_ITEM;
            cursor->item_lost = !bw_leaf_item(&block->node, block->slot, &cursor->item);
            cursor->loss_returned = false;
            cursor->start = cursor->item.key;
            return;
        }
        if (--cursor->depth)
            cursor->blocks[cursor->depth - 1].slot++;
    }
    cursor->front = AT_END;
}

static void pass_slot(struct cursor *cursor)
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

/* Makes a loss the result of the step; a lack of memory ends the comparison instead. */
static bool return_loss(const struct cursor *cursor, const struct bw_block_pointer *pointer,
                        struct bw_error *error)
{
    struct bw_pairs *pairs = cursor->pairs;
    *(error->code == BW_ERROR_NO_MEMORY ? &pairs->failure : &pairs->error) = error;
    pairs->side = cursor->side;
    pairs->lost = *pointer;
    return true;
}

/* Opens the block of the pointer at the cursor. True if it is lost, which is the result. */
static bool open_block(struct cursor *cursor)
{
    const struct bw_tree_reader *reader = &cursor->pairs->readers[cursor->side];
    struct open_block *block = &cursor->blocks[cursor->depth];
    if (!block->bytes)
        block->bytes = bw_block_buffer(reader, 1);
    if (!block->bytes)
        return return_loss(cursor, &cursor->pointer, bw_error_no_memory());
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
        return return_loss(cursor, &cursor->pointer, error);
    }
    cursor->depth++;
    move_to_next(cursor);
    return false;
}

/*
 * Read-ahead. Before the cursors open the first of the next few nodes of level 1, these are read,
 * and the leaves that only one tree has are announced. The nodes of the two trees need not begin at
 * the same keys, so they are compared by the set of their leaves, up to a key that both have
 * reached.
 */

enum { AHEAD = 8 }; /* nodes of level 1 */

/* A block that one of the trees refers to. */
struct reference {
    struct bw_block_pointer pointer;
    unsigned side;
};

BW_VECTOR(references, struct reference);

/* The memory of a comparison. */
struct bw_pairs_memory {
    struct cursor cursors[2];
    struct bw_key done; /* everything before this key was announced */
    uint8_t *nodes;     /* AHEAD blocks */
    struct references children, leaves;
    struct bw_range *ranges; /* BW_MAX_CHILDREN of them */
};

static int by_address(const void *a, const void *b)
{
    const struct reference *left = a, *right = b;
    return BW_COMPARE_ALL(((uint64_t[]){left->pointer.bytenr, left->side}),
                          ((uint64_t[]){right->pointer.bytenr, right->side}));
}

/* Removes the blocks that both trees have. */
static void drop_shared(const struct bw_pairs *pairs, struct references *list)
{
    struct reference *items = list->items;
    size_t kept = 0;
    if (!list->count || !pairs->shared)
        return;
    qsort(items, list->count, sizeof *items, by_address);
    for (size_t i = 0; i < list->count; i++) {
        if (i + 1 < list->count && items[i].pointer.bytenr == items[i + 1].pointer.bytenr)
            i++;
        else
            items[kept++] = items[i];
    }
    list->count = kept;
}

static void advise_blocks(struct bw_pairs *pairs, const struct references *list)
{
    struct bw_range *ranges = pairs->memory->ranges;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_tree_reader *reader = &pairs->readers[side];
        size_t count = 0;
        for (size_t i = 0; i < list->count; i++) {
            if (list->items[i].side == side)
                ranges[count++] =
                    (struct bw_range){list->items[i].pointer.bytenr, reader->nodesize};
            if (count && (count == BW_MAX_CHILDREN || i + 1 == list->count)) {
                bw_blocks_advise(reader, ranges, count);
                pairs->announced += count;
                count = 0;
            }
        }
    }
}

/* The open node of a level; NULL: none. */
static struct open_block *node_of_level(struct cursor *cursor, uint8_t level)
{
    for (unsigned i = 0; i < cursor->depth; i++)
        if (cursor->blocks[i].node.level == level)
            return &cursor->blocks[i];
    return NULL;
}

/* The node from which the leaves of a cursor are found. In a low tree, that is its root. */
static struct open_block *node_above(struct cursor *cursor)
{
    struct open_block *node = node_of_level(cursor, 2);
    return node || cursor->pairs->trees[cursor->side].root.level > 1 ? node
                                                                     : node_of_level(cursor, 1);
}

/* Where the nodes end that are to be read next. */
static struct bw_key end_of_next(const struct open_block *above)
{
    const struct bw_key none = BW_KEY_MAX;
    if (!above)
        return none;
    return above->node.level == 2 && above->node.item_count - above->slot > AHEAD
               ? bw_node_key(&above->node, above->slot + AHEAD)
               : above->pointer.expectation.end_key;
}

/* Adds the children of a node in a range of keys. */
static struct bw_error *add_children(const struct open_block *above, unsigned side,
                                     const struct bw_key *first, const struct bw_key *end,
                                     struct references *list)
{
    for (uint32_t slot = 0; slot < above->node.item_count; slot++) {
        const struct bw_block_pointer child =
            bw_tree_child_pointer(&above->pointer, &above->node, slot);
        if (bw_key_compare(&child.expectation.end_key, first) <= 0)
            continue;
        if (bw_key_compare(&child.expectation.first_key, end) >= 0)
            break;
        BW_TRY(references_push(list, (struct reference){child, side}));
    }
    return NULL;
}

/* Announces what the cursors will read next. Nodes are read for this; errors are reported when the
 * cursor opens them. */
static struct bw_error *read_ahead(struct bw_pairs *pairs)
{
    struct bw_pairs_memory *memory = pairs->memory;
    struct open_block *above[2] = {node_above(&memory->cursors[0]),
                                   node_above(&memory->cursors[1])};
    const struct bw_key ends[2] = {end_of_next(above[0]), end_of_next(above[1])};
    const struct bw_key *end = bw_key_compare(&ends[0], &ends[1]) < 0 ? &ends[0] : &ends[1];
    struct references *children = &memory->children, *leaves = &memory->leaves;
    struct bw_request requests[AHEAD];
    struct bw_error *error = NULL;
    children->count = leaves->count = 0;
    for (unsigned side = 0; side < 2; side++)
        if (above[side])
            BW_TRY(add_children(above[side], side, &memory->done, end,
                                above[side]->node.level == 1 ? leaves : children));
    drop_shared(pairs, children);
    advise_blocks(pairs, children);
    for (size_t i = 0, count; i < children->count && !error; i += count) {
        const struct reference *nodes = &children->items[i];
        const unsigned side = nodes->side;
        const struct bw_tree_reader *reader = &pairs->readers[side];
        for (count = 0; i + count < children->count && count < AHEAD && nodes[count].side == side;
             count++)
            requests[count] = bw_block_request(reader, &nodes[count].pointer,
                                               memory->nodes + count * reader->nodesize);
        bw_blocks_read(reader, requests, count);
        for (size_t k = 0; k < count; k++) {
            const struct open_block node = {.node =
                                                bw_node_view(requests[k].buffer, reader->nodesize),
                                            .pointer = nodes[k].pointer};
            if (!requests[k].error && !error)
                error = add_children(&node, side, &memory->done, end, leaves);
            bw_error_free(requests[k].error);
        }
    }
    BW_TRY(error);
    drop_shared(pairs, leaves);
    advise_blocks(pairs, leaves);
    memory->done = *end;
    return NULL;
}

/* Whether the cursor is in its tree, so that its next nodes are known, or at its end. */
static bool is_ready(struct cursor *cursor)
{
    return cursor->front == AT_END || node_above(cursor);
}

static int level_of(const struct cursor *cursor)
{
    return cursor->front == AT_POINTER ? cursor->pointer.expectation.level : -1;
}

/* Whether the item at a cursor is a loss that was not returned yet, which is then the result. */
static bool return_lost_item(struct cursor *cursor)
{
    if (!cursor->item_lost || cursor->loss_returned)
        return false;
    const struct open_block *block = &cursor->blocks[cursor->depth - 1];
    struct bw_block_pointer place = block->pointer;
    place.expectation.first_key = cursor->start;
    cursor->loss_returned = true;
    return return_loss(cursor, &place,
                       bw_error_create(BW_ERROR_CORRUPT,
                                       "tree block %" PRIu64 ": item %" PRIu32
                                       " lies outside its leaf",
                                       block->pointer.bytenr, block->slot));
}

/* The item at a cursor; NULL: lost. */
static const struct bw_item *item_at(const struct cursor *cursor)
{
    return cursor->item_lost ? NULL : &cursor->item;
}

/* Returns an item that only one tree has, or that has no counterpart because of a loss. */
static bool return_single_item(struct cursor *cursor, bool unknown)
{
    struct bw_item_pair *pair = &cursor->pairs->pair;
    if (return_lost_item(cursor))
        return true;
    *pair = (struct bw_item_pair){.key = cursor->start, .unknown = unknown || cursor->item_lost};
    pair->items[cursor->side] = item_at(cursor);
    return cursor->is_done = true;
}

/* Whether the contents of a file are at the addresses in the item. Two copies of a file system that
 * changed separately can have different contents at the same address, written in the same
 * transaction. */
static bool refers_to_data(const struct bw_item *item)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    return item->key.type == BW_EXTENT_DATA && item->size >= sizeof *disk &&
           disk->type == BW_FILE_EXTENT_REGULAR && bw_get64(disk->disk_bytenr);
}

/* If one tree has lost a block, the items of the other one in its range are of unknown status. */
static bool step_at_loss(struct cursor *lost, struct cursor *other)
{
    const struct bw_key *end = &lost->pointer.expectation.end_key;
    const struct bw_tree_block_expectation *block = &other->pointer.expectation;
    if (other->front == AT_END || bw_key_compare(&other->start, end) >= 0)
        pass_slot(lost);
    else if (other->front == AT_LOSS)
        pass_slot(bw_key_compare(end, &block->end_key) <= 0 ? lost : other);
    else if (other->front != AT_POINTER)
        return return_single_item(other, true);
    else if (other->side == 1 && block->generation <= lost->pairs->since)
        pass_slot(other); /* the lost block referred to it, too */
    else
        return open_block(other);
    return false;
}

/* Opens a block, or leaves something behind, at the cursor that begins at the lower key; whether
 * there is a result. */
static bool step_cursors(struct bw_pairs *pairs, struct cursor *a, struct cursor *b)
{
    int order = (a->front == AT_END) - (b->front == AT_END);
    if (!order)
        order = bw_key_compare(&a->start, &b->start);
    const bool is_shared = order == 0 && pairs->shared && a->front == AT_POINTER &&
                           b->front == AT_POINTER && a->pointer.bytenr == b->pointer.bytenr &&
                           a->pointer.expectation.generation == b->pointer.expectation.generation &&
                           a->pointer.expectation.level == b->pointer.expectation.level;
    if (is_shared) {
        pass_slot(a);
        pass_slot(b);
        return false;
    }
    if (order == 0 && a->front == AT_ITEM && b->front == AT_ITEM) {
        if (return_lost_item(a) || return_lost_item(b))
            return true;
        const bool unknown = a->item_lost || b->item_lost;
        pairs->pair = (struct bw_item_pair){a->start, {item_at(a), item_at(b)}, unknown};
        a->is_done = b->is_done = true;
        return unknown || a->item.size != b->item.size ||
               memcmp(a->item.data, b->item.data, a->item.size) != 0 ||
               (!pairs->shared && refers_to_data(&a->item));
    }
    bool a_first = order ? order < 0 : a->front == AT_LOSS || level_of(a) >= level_of(b);
    if (order == 0 && b->front == AT_LOSS)
        a_first = false;
    struct cursor *first = a_first ? a : b;
    struct cursor *second = a_first ? b : a;
    if (first->front == AT_LOSS)
        return step_at_loss(first, second);
    if (first->front != AT_POINTER)
        return return_single_item(first, false);
    if (first->pointer.expectation.level <= 1 &&
        bw_key_compare(&first->start, &pairs->memory->done) >= 0 && is_ready(a) && is_ready(b))
        pairs->failure = read_ahead(pairs);
    return pairs->failure || open_block(first);
}

bool bw_pairs_next(struct bw_pairs *pairs)
{
    bw_error_free(BW_TAKE(pairs->error));
    struct bw_pairs_memory *memory = pairs->memory;
    if (!memory) {
        const bool larger = pairs->readers[1].nodesize > pairs->readers[0].nodesize;
        memory = pairs->memory = calloc(1, sizeof *memory);
        if (memory) {
            memory->nodes = bw_block_buffer(&pairs->readers[larger], AHEAD);
            memory->ranges = calloc(BW_MAX_CHILDREN, sizeof *memory->ranges);
        }
        if (!memory || !memory->nodes || !memory->ranges)
            pairs->failure = bw_error_no_memory();
        for (unsigned side = 0; memory && side < 2; side++) {
            const struct bw_block_pointer root = bw_tree_root_pointer(&pairs->trees[side], false);
            memory->cursors[side].pairs = pairs;
            memory->cursors[side].side = side;
            stand_at_pointer(&memory->cursors[side], &root);
        }
    }
    for (bool found = false; !found && !pairs->failure;) {
        struct cursor *a = &memory->cursors[0], *b = &memory->cursors[1];
        for (struct cursor *cursor = a; cursor <= b; cursor++)
            if (cursor->is_done) {
                cursor->is_done = false;
                pass_slot(cursor);
            }
        if (a->front == AT_END && b->front == AT_END)
            return false;
        found = step_cursors(pairs, a, b);
    }
    return !pairs->failure;
}

struct bw_error *bw_pairs_end(struct bw_pairs *pairs, struct bw_error *error)
{
    struct bw_pairs_memory *memory = pairs->memory;
    bw_error_free(pairs->error);
    error = bw_error_first(error, pairs->failure);
    if (!memory)
        return error;
    for (unsigned side = 0; side < 2; side++)
        for (unsigned i = 0; i < BW_MAX_LEVEL; i++)
            free(memory->cursors[side].blocks[i].bytes);
    free(memory->nodes);
    free(memory->ranges);
    references_free(&memory->children);
    references_free(&memory->leaves);
    free(memory);
    return error;
}
