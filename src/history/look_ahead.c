/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking ahead. A block that all generations have is not needed, since no comparison reads it. So
 * the descent counts how many generations refer to each block, and continues below those that some
 * lack. All trees descend together, one level at a time: first the root trees, then the trees that
 * these contain. Leaves are read, too, because old ones are often overwritten, and then their other
 * copies are requested.
 */
#include "history/look_ahead.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btree/block.h"
#include "fs/opening.h"
#include "ondisk/items.h"
#include "servers/servers.h"

enum { MOST_BLOCKS = 1 << 15, MOST_TREES = 1 << 12 };

/* A block, and how many generations refer to it. */
struct block {
    struct bw_block_pointer pointer;
    uint32_t tree, users; /* index in `trees` */
};

/* A tree, and how many generations have it. */
struct tree {
    uint64_t id;
    uint32_t users;
};

BW_VECTOR(range_list, struct bw_range);

BW_VECTOR(blocks, struct block);

BW_VECTOR(trees, struct tree);

struct look_ahead {
    struct bw_fs *fs;
    bool only_roots;
    const struct bw_look_ahead_file *file; /* whose blocks are requested; NULL: all of them */
    struct blocks blocks;
    struct trees trees; /* the first is the root tree */
    struct bw_key_map block_index, tree_index;
    struct range_list ranges;
    uint8_t *buffer; /* blocks of a batch */
};

/* The tree with an id, which gets more users. */
static struct bw_error *add_tree(struct look_ahead *ahead, uint64_t id, uint32_t users,
                                 uint32_t *tree)
{
    *tree = bw_key_map_get(&ahead->tree_index, id, UINT32_MAX);
    if (*tree == UINT32_MAX) {
        *tree = (uint32_t)ahead->trees.count;
        BW_TRY(trees_reserve(&ahead->trees, 1));
        BW_TRY(bw_key_map_put(&ahead->tree_index, id, *tree));
        ahead->trees.items[ahead->trees.count++] = (struct tree){.id = id};
    }
    ahead->trees.items[*tree].users += users;
    return NULL;
}

/* Adds a reference to a block. */
static struct bw_error *add_block(struct look_ahead *ahead, uint32_t tree,
                                  const struct bw_block_pointer *pointer, uint32_t users)
{
    const uint64_t key =
        pointer->bytenr ^ ahead->trees.items[tree].id << 48 ^ ahead->trees.items[tree].id;
    uint32_t index = bw_key_map_get(&ahead->block_index, key, UINT32_MAX);
    if (index != UINT32_MAX) {
        ahead->blocks.items[index].users += users;
        return NULL;
    }
    if (ahead->blocks.count == MOST_BLOCKS)
        return NULL;
    BW_TRY(blocks_reserve(&ahead->blocks, 1));
    BW_TRY(bw_key_map_put(&ahead->block_index, key, (uint32_t)ahead->blocks.count));
    ahead->blocks.items[ahead->blocks.count++] =
        (struct block){.pointer = *pointer, .tree = tree, .users = users};
    return NULL;
}

static struct bw_error *add_root(struct look_ahead *ahead, uint64_t id,
                                 const struct bw_root_pointer *root, uint32_t users)
{
    const struct bw_tree tree = {.id = id, .root = *root};
    const struct bw_block_pointer pointer = bw_tree_root_pointer(&tree, false);
    uint32_t number;
    if (ahead->trees.count == MOST_TREES)
        return NULL;
    BW_TRY(add_tree(ahead, id, users, &number));
    return add_block(ahead, number, &pointer, users);
}

/* Adds the trees in a leaf of root trees whose blocks are requested. */
static struct bw_error *add_trees(struct look_ahead *ahead, const struct bw_node *leaf,
                                  uint32_t users)
{
    const struct bw_look_ahead_file *file = ahead->file;
    struct bw_root_item root;
    struct bw_item item;
    uint32_t slot = 0;
    while (bw_leaf_next(leaf, &slot, &item)) {
        const uint64_t id = item.key.objectid;
        const bool is_chosen = file ? id == file->trees[0] || id == file->trees[1]
                                    : id == BW_CSUM_TREE || bw_is_subvolume_id(id);
        if (item.key.type != BW_ROOT_ITEM || !is_chosen)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_root_item_decode(&item, &root);
        if (!error)
            BW_TRY(add_root(ahead, id, &root.root, users));
    }
    return NULL;
}

static bool has_inode(const struct bw_tree_block_expectation *child, uint64_t inode)
{
    return child->first_key.objectid <= inode && child->end_key.objectid >= inode;
}

/* Adds what a block refers to. Below the root trees, only blocks that lead to the file are added,
 * if a file was given. */
static struct bw_error *add_contents(struct look_ahead *ahead, const struct block *block,
                                     const struct bw_node *node)
{
    if (!node->level) {
        if (block->tree || ahead->only_roots)
            return NULL;
        return add_trees(ahead, node, block->users);
    }
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(&block->pointer, node, slot);
        if (!block->tree || !ahead->file ||
            has_inode(&child.expectation, BW_SUBVOLUME_ROOT_INODE) ||
            has_inode(&child.expectation, ahead->file->inode))
            BW_TRY(add_block(ahead, block->tree, &child, block->users));
    }
    return NULL;
}

/* Reads some blocks, and adds what they refer to; `numbers` are their indexes. */
static struct bw_error *open_blocks(struct look_ahead *ahead, const uint32_t *numbers, size_t count)
{
    const struct bw_tree_reader *reader = &ahead->fs->reader;
    struct bw_request requests[BW_BATCH];
    struct block opened[BW_BATCH]; /* the array may move */
    struct bw_error *error = NULL;
    for (size_t i = 0; i < count; i++) {
        opened[i] = ahead->blocks.items[numbers[i]];
        requests[i] =
            bw_block_request(reader, &opened[i].pointer, ahead->buffer + i * reader->nodesize);
    }
    bw_blocks_read(reader, requests, count);
    for (size_t i = 0; i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (!requests[i].error && !error)
            error = add_contents(ahead, &opened[i], &node);
        bw_error_free(requests[i].error);
    }
    return error;
}

/* Whether a block is in a layer, and some generation that has the tree lacks the block. */
static bool is_wanted(const struct look_ahead *ahead, const struct block *block, bool in_roots,
                      uint8_t level)
{
    return (block->tree == 0) == in_roots && block->pointer.expectation.level == level &&
           block->users < ahead->trees.items[block->tree].users;
}

static void request_ranges(const struct look_ahead *ahead)
{
    if (ahead->ranges.count)
        bw_blocks_advise(&ahead->fs->reader, ahead->ranges.items, ahead->ranges.count);
}

/* Descends through the root trees, or through all other trees, by one level at a time. The blocks
 * of a level are requested together, so that reading them in batches takes one round trip. */
static struct bw_error *descend(struct look_ahead *ahead, bool in_roots)
{
    const uint32_t nodesize = ahead->fs->reader.nodesize;
    const unsigned batch = bw_block_batch(&ahead->fs->reader);
    for (uint8_t level = BW_MAX_LEVEL; level-- > 0;) {
        const size_t end = ahead->blocks.count; /* those that are added are in other layers */
        ahead->ranges.count = 0;
        for (size_t i = 0; i < end; i++) {
            const struct block *block = &ahead->blocks.items[i];
            if (is_wanted(ahead, block, in_roots, level))
                BW_TRY(range_list_push(&ahead->ranges,
                                       (struct bw_range){block->pointer.bytenr, nodesize}));
        }
        request_ranges(ahead);

        uint32_t numbers[BW_BATCH];
        size_t count = 0;
        for (size_t i = 0; i < end; i++) {
            if (is_wanted(ahead, &ahead->blocks.items[i], in_roots, level))
                numbers[count++] = (uint32_t)i;
            if (count == batch || (count && i + 1 == end)) {
                BW_TRY(open_blocks(ahead, numbers, count));
                count = 0;
            }
        }
    }
    return NULL;
}

static struct bw_error *read_ahead(struct look_ahead *ahead,
                                   const struct bw_generation_choice *states, size_t count)
{
    struct bw_root_pointer root = ahead->fs->root_tree.root;
    ahead->buffer = bw_block_buffer(&ahead->fs->reader, bw_block_batch(&ahead->fs->reader));
    if (!ahead->buffer)
        return bw_error_no_memory();

    /* The roots of all generations. */
    for (size_t i = 0; i < count; i++)
        if (states[i].tree_root)
            BW_TRY(range_list_push(&ahead->ranges, (struct bw_range){states[i].tree_root,
                                                                     ahead->fs->reader.nodesize}));
    request_ranges(ahead);
    BW_TRY(add_root(ahead, BW_ROOT_TREE, &root, 1));
    for (size_t i = 0; i < count; i++) {
        if (!states[i].tree_root)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_named_root(
            ahead->fs, BW_ROOT_TREE, states[i].tree_root, states[i].tree_root_generation, &root);
        if (!error)
            BW_TRY(add_root(ahead, BW_ROOT_TREE, &root, 1));
    }

    BW_TRY(descend(ahead, true));
    return ahead->only_roots ? NULL : descend(ahead, false);
}

bool bw_history_is_served(const struct bw_fs *fs)
{
    bool served = false;
    for (size_t i = 0; i < bw_fs_image_count(fs); i++)
        served |= bw_servers_connection(fs->graph->servers, bw_fs_image_path(fs, i)) != NULL;
    return served;
}

static struct bw_error *look_at_generations(struct look_ahead *ahead,
                                            const struct bw_generation_choice *states, size_t count)
{
    struct bw_error *error =
        bw_history_is_served(ahead->fs) ? read_ahead(ahead, states, count) : NULL;
    bw_key_map_free(&ahead->block_index);
    bw_key_map_free(&ahead->tree_index);
    blocks_free(&ahead->blocks);
    trees_free(&ahead->trees);
    range_list_free(&ahead->ranges);
    free(ahead->buffer);
    return error;
}

struct bw_error *bw_look_ahead(struct bw_fs *present, const struct bw_generation_choice *states,
                               size_t count)
{
    struct look_ahead ahead = {.fs = present};
    return look_at_generations(&ahead, states, count);
}

struct bw_error *bw_look_ahead_roots(struct bw_fs *present,
                                     const struct bw_generation_choice *states, size_t count)
{
    struct look_ahead ahead = {.fs = present, .only_roots = true};
    return look_at_generations(&ahead, states, count);
}

struct bw_error *bw_look_ahead_file(struct bw_fs *present,
                                    const struct bw_generation_choice *states, size_t count,
                                    const struct bw_look_ahead_file *file)
{
    struct look_ahead ahead = {.fs = present, .file = file};
    return look_at_generations(&ahead, states, count);
}

/* Searches for keys. */

/* Reads a block of each search, and moves the searches to the children. */
static void move_to_children(const struct bw_tree_reader *reader, struct bw_look_down **searches,
                             size_t count, uint8_t *buffer)
{
    struct bw_request requests[BW_BATCH];
    for (size_t i = 0; i < count; i++)
        requests[i] = bw_block_request(reader, &searches[i]->block, buffer + i * reader->nodesize);
    bw_blocks_read(reader, requests, count);
    for (size_t i = 0; i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (requests[i].error || !node.level)
            searches[i]->block.bytenr = 0;
        else
            searches[i]->block = bw_tree_child_pointer(&searches[i]->block, &node,
                                                       bw_child_slot(&node, &searches[i]->key));
        bw_error_free(requests[i].error);
    }
}

/* The searches that have reached a level, in an array without the others. */
static size_t searches_at_level(struct bw_look_down *searches, size_t count, uint8_t level,
                                struct bw_look_down **found)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        if (searches[i].block.bytenr && searches[i].block.expectation.level == level)
            found[total++] = &searches[i];
    return total;
}

struct bw_error *bw_look_down(struct bw_fs *fs, struct bw_look_down *searches, size_t count)
{
    const struct bw_tree_reader *reader = &fs->reader;
    const unsigned batch = bw_block_batch(reader);
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(reader, batch);
    BW_AUTO_FREE struct bw_look_down **found = calloc(count + 1, sizeof *found);
    BW_AUTO_FREE struct bw_range *ranges = calloc(count + 1, sizeof *ranges);
    if (!buffer || !found || !ranges)
        return bw_error_no_memory();
    for (uint8_t level = BW_MAX_LEVEL; level-- > 0;) {
        const size_t total = searches_at_level(searches, count, level, found);
        for (size_t i = 0; i < total; i++)
            ranges[i] = (struct bw_range){found[i]->block.bytenr, reader->nodesize};
        if (total)
            bw_blocks_advise(reader, ranges, total);
        for (size_t done = 0; done < total; done += batch)
            move_to_children(reader, found + done, total - done < batch ? total - done : batch,
                             buffer);
    }
    return NULL;
}
