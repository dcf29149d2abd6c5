/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests the tree blocks in which generations differ. A block that all generations have is not
 * needed, since no comparison reads it. So the descent counts how many generations refer to each
 * block, and continues below those that some lack. All trees descend together, one level at a time:
 * first the root trees, then the trees that these contain. Leaves are read, too, because old ones
 * are often overwritten, and then their other copies are requested.
 */
#include "history/request_blocks.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"
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

struct descent {
    struct bw_fs *fs;
    bool only_roots;
    const struct bw_requested_file *file; /* whose blocks are requested; NULL: all of them */
    struct blocks blocks;
    struct trees trees; /* the first is the root tree */
    struct bw_key_map block_index, tree_index;
    struct range_list ranges;
    uint8_t *buffer; /* blocks of a batch */
};

/* Adds a reference to a block. */
static struct bw_error *add_block(struct descent *descent, uint32_t tree,
                                  const struct bw_block_pointer *pointer, uint32_t users)
{
    const uint64_t key =
        pointer->bytenr ^ descent->trees.items[tree].id << 48 ^ descent->trees.items[tree].id;
    uint32_t index = bw_key_map_get(&descent->block_index, key, UINT32_MAX);
    if (index != UINT32_MAX) {
        descent->blocks.items[index].users += users;
        return NULL;
    }
    if (descent->blocks.count == MOST_BLOCKS)
        return NULL;
    BW_TRY(blocks_reserve(&descent->blocks, 1));
    BW_TRY(bw_key_map_put(&descent->block_index, key, (uint32_t)descent->blocks.count));
    descent->blocks.items[descent->blocks.count++] =
        (struct block){.pointer = *pointer, .tree = tree, .users = users};
    return NULL;
}

/* Adds a tree by its root, or another user of a known one. */
static struct bw_error *add_root(struct descent *descent, uint64_t id,
                                 const struct bw_root_pointer *root, uint32_t users)
{
    const struct bw_tree tree = {.id = id, .root = *root};
    const struct bw_block_pointer pointer = bw_tree_root_pointer(&tree, false);
    if (descent->trees.count == MOST_TREES)
        return NULL;
    uint32_t number = bw_key_map_get(&descent->tree_index, id, UINT32_MAX);
    if (number == UINT32_MAX) {
        number = (uint32_t)descent->trees.count;
        BW_TRY(bw_key_map_put(&descent->tree_index, id, number));
        BW_TRY(trees_push(&descent->trees, (struct tree){.id = id}));
    }
    descent->trees.items[number].users += users;
    return add_block(descent, number, &pointer, users);
}

static bool has_inode(const struct bw_tree_block_expectation *child, uint64_t inode)
{
    return child->first_key.objectid <= inode && child->end_key.objectid >= inode;
}

/* Adds what a block refers to: the trees in a leaf of root trees, or the children of a node. If a
 * file was given, only the trees and the blocks that lead to it are added. */
static struct bw_error *add_contents(struct descent *descent, const struct block *block,
                                     const struct bw_node *node)
{
    const struct bw_requested_file *file = descent->file;
    for (uint32_t slot = 0; node->level && slot < node->item_count; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(&block->pointer, node, slot);
        if (!block->tree || !file || has_inode(&child.expectation, BW_SUBVOLUME_ROOT_INODE) ||
            has_inode(&child.expectation, file->inode))
            BW_TRY(add_block(descent, block->tree, &child, block->users));
    }
    if (node->level || block->tree || descent->only_roots)
        return NULL;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(node, &slot, &item);) {
        const uint64_t id = item.key.objectid;
        const bool is_chosen = file ? id == file->trees[0] || id == file->trees[1]
                                    : id == BW_CSUM_TREE || bw_is_subvolume_id(id);
        struct bw_root_item root;
        if (item.key.type != BW_ROOT_ITEM || !is_chosen)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_root_item_decode(&item, &root);
        if (!error)
            BW_TRY(add_root(descent, id, &root.root, block->users));
    }
    return NULL;
}

/* Reads some blocks, and adds what they refer to; `numbers` are their indexes. */
static struct bw_error *open_blocks(struct descent *descent, const uint32_t *numbers, size_t count)
{
    const struct bw_tree_reader *reader = &descent->fs->reader;
    struct bw_request requests[BW_BATCH];
    struct block opened[BW_BATCH]; /* the array may move */
    struct bw_error *error = NULL;
    for (size_t i = 0; i < count; i++) {
        opened[i] = descent->blocks.items[numbers[i]];
        requests[i] =
            bw_block_request(reader, &opened[i].pointer, descent->buffer + i * reader->nodesize);
    }
    bw_blocks_read(reader, requests, count);
    for (size_t i = 0; i < count; i++) {
        const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
        if (!requests[i].error && !error)
            error = add_contents(descent, &opened[i], &node);
        bw_error_free(requests[i].error);
    }
    return error;
}

/* Whether a block is in a layer, and some generation that has the tree lacks the block. */
static bool is_wanted(const struct descent *descent, const struct block *block, bool in_roots,
                      uint8_t level)
{
    return (block->tree == 0) == in_roots && block->pointer.expectation.level == level &&
           block->users < descent->trees.items[block->tree].users;
}

static void request_ranges(const struct descent *descent)
{
    if (descent->ranges.count)
        bw_blocks_advise(&descent->fs->reader, descent->ranges.items, descent->ranges.count);
}

/* Descends through the root trees, or through all other trees, by one level at a time. The blocks
 * of a level are requested together, so that reading them in batches takes one round trip. */
static struct bw_error *descend(struct descent *descent, bool in_roots)
{
    const uint32_t nodesize = descent->fs->reader.nodesize;
    const unsigned batch = bw_block_batch(&descent->fs->reader);
    for (uint8_t level = BW_MAX_LEVEL; level-- > 0;) {
        const size_t end = descent->blocks.count; /* those that are added are in other layers */
        descent->ranges.count = 0;
        for (size_t i = 0; i < end; i++) {
            const struct block *block = &descent->blocks.items[i];
            if (is_wanted(descent, block, in_roots, level))
                BW_TRY(range_list_push(&descent->ranges,
                                       (struct bw_range){block->pointer.bytenr, nodesize}));
        }
        request_ranges(descent);

        uint32_t numbers[BW_BATCH];
        size_t count = 0;
        for (size_t i = 0; i < end; i++) {
            if (is_wanted(descent, &descent->blocks.items[i], in_roots, level))
                numbers[count++] = (uint32_t)i;
            if (count == batch || (count && i + 1 == end)) {
                BW_TRY(open_blocks(descent, numbers, count));
                count = 0;
            }
        }
    }
    return NULL;
}

bool bw_history_is_served(const struct bw_fs *fs)
{
    bool served = false;
    for (size_t i = 0; i < bw_fs_image_count(fs); i++)
        served |= bw_servers_connection(fs->graph->inputs.servers, bw_fs_image_path(fs, i)) != NULL;
    return served;
}

static void descent_free(struct descent *descent)
{
    bw_key_map_free(&descent->block_index);
    bw_key_map_free(&descent->tree_index);
    blocks_free(&descent->blocks);
    trees_free(&descent->trees);
    range_list_free(&descent->ranges);
    free(descent->buffer);
}

/* Requests the roots of all generations, then the blocks below them. */
struct bw_error *bw_request_blocks(struct bw_fs *present, const struct bw_generation_choice *states,
                                   size_t count, bool only_roots,
                                   const struct bw_requested_file *file)
{
    BW_SCOPED(descent)
    struct descent descent = {.fs = present, .only_roots = only_roots, .file = file};
    struct bw_root_pointer root = present->root_tree.root;
    if (!bw_history_is_served(present))
        return NULL;
    descent.buffer = bw_block_buffer(&present->reader, bw_block_batch(&present->reader));
    if (!descent.buffer)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        if (states[i].tree_root)
            BW_TRY(range_list_push(
                &descent.ranges, (struct bw_range){states[i].tree_root, present->reader.nodesize}));
    request_ranges(&descent);
    BW_TRY(add_root(&descent, BW_ROOT_TREE, &root, 1));
    for (size_t i = 0; i < count; i++) {
        if (!states[i].tree_root)
            continue;
        BW_AUTO_ERROR struct bw_error *error = bw_named_root(
            present, BW_ROOT_TREE, states[i].tree_root, states[i].tree_root_generation, &root);
        if (!error)
            BW_TRY(add_root(&descent, BW_ROOT_TREE, &root, 1));
    }
    BW_TRY(descend(&descent, true));
    return only_roots ? NULL : descend(&descent, false);
}

/* Searches for keys. */

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
        /* The searches that have reached the level. Their blocks are requested together. */
        size_t total = 0;
        for (size_t i = 0; i < count; i++) {
            if (!searches[i].block.bytenr || searches[i].block.expectation.level != level)
                continue;
            ranges[total] = (struct bw_range){searches[i].block.bytenr, reader->nodesize};
            found[total++] = &searches[i];
        }
        if (total)
            bw_blocks_advise(reader, ranges, total);

        /* Each block is read, and its search moves to the child. */
        for (size_t done = 0; done < total; done += batch) {
            struct bw_look_down **some = found + done;
            const size_t read = total - done < batch ? total - done : batch;
            struct bw_request requests[BW_BATCH];
            for (size_t i = 0; i < read; i++)
                requests[i] =
                    bw_block_request(reader, &some[i]->block, buffer + i * reader->nodesize);
            bw_blocks_read(reader, requests, read);
            for (size_t i = 0; i < read; i++) {
                const struct bw_node node = bw_node_view(requests[i].buffer, reader->nodesize);
                struct bw_block_pointer *block = &some[i]->block;
                if (requests[i].error || !node.level)
                    block->bytenr = 0;
                else
                    *block =
                        bw_tree_child_pointer(block, &node, bw_child_slot(&node, &some[i]->key));
                bw_error_free(requests[i].error);
            }
        }
    }
    return NULL;
}
