/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout: items are grouped into leaves, leaves into nodes, and every block gets a logical
 * address.
 *
 * The chunk, device and extent trees describe chunks and blocks, which depend on how large those
 * trees are; so everything is laid out again until nothing changes any more. Snapshots take over
 * the blocks of their origin that hold the very same things, from the leaves up, as copy on write
 * would have left them.
 */
#include <stdlib.h>
#include <string.h>

#include "image_writer_internal.h"

#define NONE SIZE_MAX

static void build_tree(struct iw_image *image, struct iw_tree *tree);

/* Addresses. */

/* Address of the nth block of the chunks that have a type bit; 0 if they are too few. */
static uint64_t nth_address(struct iw_image *image, uint64_t type, uint64_t number)
{
    const uint64_t step = (uint64_t)image->options.block_step * image->options.nodesize;
    for (size_t i = 0; i < image->chunk_count; i++) {
        struct iw_chunk *chunk = &image->chunks[i];
        if (!(chunk->type & type))
            continue;
        uint64_t places = chunk->length / step;
        if (number < places) {
            chunk->used += image->options.nodesize;
            return chunk->logical + number * step;
        }
        number -= places;
    }
    return 0;
}

static uint64_t allocate(struct iw_image *image, const struct iw_tree *tree)
{
    if (tree->id == BW_CHUNK_TREE)
        return nth_address(image, BW_GROUP_SYSTEM, image->system_blocks++);
    return nth_address(image, BW_GROUP_METADATA, image->metadata_blocks++);
}

/* Blocks. */

static struct iw_block_state *new_block(struct iw_image *image, struct iw_tree *tree,
                                        unsigned level)
{
    image->blocks = iw_grow(image->blocks, image->block_count, sizeof *image->blocks);
    struct iw_block_state *state = &image->blocks[image->block_count++];
    *state = (struct iw_block_state){
        .tree = tree,
        .block =
            {tree->id, level, allocate(image, tree), tree->generation, 0, {0, 0, 0}, {0, 0, 0}},
    };
    return state;
}

static void push(struct iw_level *level, size_t block)
{
    level->blocks = iw_grow(level->blocks, level->count, sizeof *level->blocks);
    level->blocks[level->count++] = block;
}

/* The block of the origin on a level that starts with a key and may be taken over: any but the
 * root. */
static size_t find_in_origin(const struct iw_image *image, const struct iw_tree *origin,
                             unsigned level, struct bw_key key)
{
    const struct iw_level *blocks = &origin->levels[level];
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bw_key_compare(&image->blocks[blocks->blocks[middle]].block.first_key, &key);
        if (order == 0)
            return blocks->blocks[middle] == origin->root ? NONE : blocks->blocks[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NONE;
}

/* Leaves. */

static bool same_item(const struct iw_item *a, const struct iw_item *b)
{
    return bw_key_compare(&a->key, &b->key) == 0 && a->size == b->size &&
           (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* The leaf of the origin that holds exactly the items from `first` on. */
static size_t find_shared_leaf(const struct iw_image *image, const struct iw_tree *tree,
                               const struct iw_tree *origin, size_t first)
{
    if (!origin || first == tree->count)
        return NONE;
    size_t index = find_in_origin(image, origin, 0, tree->items[first]->key);
    if (index == NONE)
        return NONE;
    const struct iw_block_state *leaf = &image->blocks[index];
    if (leaf->block.item_count > tree->count - first)
        return NONE;
    for (size_t i = 0; i < leaf->block.item_count; i++)
        if (!same_item(tree->items[first + i], leaf->tree->items[leaf->first_item + i]))
            return NONE;
    return index;
}

/* How many items from `first` on go into a new leaf. */
static size_t leaf_take(const struct iw_image *image, const struct iw_tree *tree,
                        const struct iw_tree *origin, size_t first)
{
    size_t space = iw_leaf_space(image), taken = 0;
    while (first + taken < tree->count) {
        size_t size = tree->items[first + taken]->size + sizeof(struct bw_disk_item);
        bool full = size > space || (tree->items_per_leaf && taken == tree->items_per_leaf);
        if (full || (taken && find_shared_leaf(image, tree, origin, first + taken) != NONE))
            break;
        space -= size;
        taken++;
    }
    if (!taken && first < tree->count)
        iw_die("tree %lld: an item of %zu bytes does not fit a leaf", (long long)tree->id,
               tree->items[first]->size);
    return taken;
}

static void build_leaves(struct iw_image *image, struct iw_tree *tree, const struct iw_tree *origin)
{
    size_t first = 0;
    do {
        size_t index = find_shared_leaf(image, tree, origin, first);
        if (index == NONE) {
            size_t taken = leaf_take(image, tree, origin, first);
            struct iw_block_state *leaf = new_block(image, tree, 0);
            leaf->first_item = first;
            leaf->block.item_count = (uint32_t)taken;
            if (taken) {
                leaf->block.first_key = tree->items[first]->key;
                leaf->block.last_key = tree->items[first + taken - 1]->key;
            }
            index = image->block_count - 1;
        }
        push(&tree->levels[0], index);
        first += image->blocks[index].block.item_count;
    } while (first < tree->count);
}

/* Nodes. */

/* The node of the origin that has exactly the children from `first` of the level below on. */
static size_t find_shared_node(const struct iw_image *image, const struct iw_level *below,
                               const struct iw_tree *origin, unsigned level, size_t first)
{
    if (!origin)
        return NONE;
    size_t index =
        find_in_origin(image, origin, level, image->blocks[below->blocks[first]].block.first_key);
    if (index == NONE)
        return NONE;
    const struct iw_block_state *node = &image->blocks[index];
    if (node->block.item_count > below->count - first ||
        memcmp(node->children, below->blocks + first,
               node->block.item_count * sizeof *node->children) != 0)
        return NONE;
    return index;
}

static size_t node_take(const struct iw_image *image, const struct iw_tree *tree,
                        const struct iw_tree *origin, unsigned level, size_t first)
{
    const struct iw_level *below = &tree->levels[level - 1];
    size_t most = iw_leaf_space(image) / sizeof(struct bw_disk_key_pointer), taken = 1;
    if (tree->pointers_per_node && tree->pointers_per_node < most)
        most = tree->pointers_per_node;
    while (taken < most && first + taken < below->count &&
           find_shared_node(image, below, origin, level, first + taken) == NONE)
        taken++;
    return taken;
}

static void build_level(struct iw_image *image, struct iw_tree *tree, const struct iw_tree *origin,
                        unsigned level)
{
    const struct iw_level *below = &tree->levels[level - 1];
    if (level >= BW_MAX_LEVEL)
        iw_die("tree %lld gets more than %d levels", (long long)tree->id, BW_MAX_LEVEL);
    for (size_t first = 0; first < below->count;) {
        size_t index = find_shared_node(image, below, origin, level, first);
        if (index == NONE) {
            size_t taken = node_take(image, tree, origin, level, first);
            struct iw_block_state *node = new_block(image, tree, level);
            node->children = iw_zalloc(taken * sizeof *node->children);
            memcpy(node->children, below->blocks + first, taken * sizeof *node->children);
            node->block.item_count = (uint32_t)taken;
            node->block.first_key = image->blocks[node->children[0]].block.first_key;
            node->block.last_key = image->blocks[node->children[taken - 1]].block.first_key;
            index = image->block_count - 1;
        }
        push(&tree->levels[level], index);
        first += image->blocks[index].block.item_count;
    }
}

/* Trees. */

static void point_at_origin(struct iw_tree *tree, const struct iw_tree *origin)
{
    tree->root = origin->root;
    tree->level = origin->level;
    for (unsigned level = 0; level <= origin->level; level++)
        for (size_t i = 0; i < origin->levels[level].count; i++)
            push(&tree->levels[level], origin->levels[level].blocks[i]);
}

static void build_tree(struct iw_image *image, struct iw_tree *tree)
{
    if (tree->laid_out)
        return;
    tree->laid_out = true;
    struct iw_tree *origin = tree->origin ? iw_find_tree(image, tree->origin) : NULL;
    if (origin)
        build_tree(image, origin);
    if (tree->alias) {
        point_at_origin(tree, origin);
        return;
    }
    build_leaves(image, tree, origin);
    tree->level = 0;
    while (tree->levels[tree->level].count > 1 || tree->level < tree->minimum_level) {
        tree->level++;
        build_level(image, tree, origin, tree->level);
    }
    tree->root = tree->levels[tree->level].blocks[0];
}

/* Forgets blocks and their order. */
static void clear_layout(struct iw_image *image)
{
    for (size_t i = 0; i < image->block_count; i++) {
        free(image->blocks[i].children);
        free(image->blocks[i].edited);
    }
    image->block_count = image->metadata_blocks = image->system_blocks = 0;
    for (size_t i = 0; i < image->tree_count; i++) {
        image->trees[i]->laid_out = false;
        for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
            image->trees[i]->levels[level].count = 0;
    }
}

void iw_free_layout(struct iw_image *image)
{
    clear_layout(image);
    iw_free_account(&image->account);
    free(image->blocks);
    image->blocks = NULL;
    for (size_t i = 0; i < image->tree_count; i++)
        for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
            free(image->trees[i]->levels[level].blocks);
}

/* Root items say where the trees are, block groups how much of them is used. */
static void complete_items(struct iw_image *image)
{
    for (size_t i = 0; i < image->tree_count; i++) {
        const struct iw_tree *tree = image->trees[i];
        struct iw_item *item = iw_find_root_item(image, tree->id);
        if (!item || item->size < offsetof(struct bw_disk_root_item, generation_v2))
            continue;
        const struct iw_block *root = &image->blocks[tree->root].block;
        struct bw_disk_root_item *disk = (void *)item->bytes;
        disk->bytenr = bw_put64(root->logical);
        disk->level = (uint8_t)root->level;
        disk->generation = bw_put64(root->generation);
        disk->bytes_used = bw_put64(image->options.nodesize);
        if (item->size >= sizeof *disk)
            disk->generation_v2 = disk->generation;
    }
    for (size_t i = 0; i < image->chunk_count; i++) {
        const struct iw_chunk *chunk = &image->chunks[i];
        struct bw_key key = {chunk->logical, IW_BLOCK_GROUP_ITEM, chunk->length};
        struct iw_item *item = iw_find_item(iw_find_tree(image, BW_EXTENT_TREE), key);
        if (item && item->generated)
            ((struct iw_disk_block_group *)item->bytes)->used = bw_put64(chunk->used);
    }
}

/* Chunks that a number of blocks takes. All chunks of a type are of one length. */
static size_t chunks_for(const struct iw_image *image, uint64_t type, size_t blocks)
{
    const uint64_t step = (uint64_t)image->options.block_step * image->options.nodesize;
    for (size_t i = 0; i < image->chunk_count; i++)
        if (image->chunks[i].type & type) {
            uint64_t places = image->chunks[i].length / step;
            if (!places)
                iw_die("chunks of %llu bytes are too short",
                       (unsigned long long)image->chunks[i].length);
            return (size_t)((blocks + places - 1) / places);
        }
    return 1;
}

/* One attempt with a number of chunks; they may turn out to be too few. */
static void try_layout(struct iw_image *image, size_t system_chunks, size_t metadata_chunks)
{
    clear_layout(image);
    iw_make_chunks(image, system_chunks, metadata_chunks);
    iw_describe_chunks(image);
    iw_put_account(image);
    for (size_t i = 0; i < image->tree_count; i++)
        build_tree(image, image->trees[i]);
}

void iw_lay_out(struct iw_image *image)
{
    size_t system = 1, metadata = 1;
    for (unsigned attempt = 0; attempt < 50; attempt++) {
        try_layout(image, system, metadata);
        size_t more_system = chunks_for(image, BW_GROUP_SYSTEM, image->system_blocks);
        size_t more_metadata = chunks_for(image, BW_GROUP_METADATA, image->metadata_blocks);
        bool fits = more_system <= system && more_metadata <= metadata;
        if (iw_take_account(image) && fits) {
            complete_items(image);
            return;
        }
        system = more_system > system ? more_system : system;
        metadata = more_metadata > metadata ? more_metadata : metadata;
    }
    iw_die("the layout does not settle: are the leaves of the extent tree too small?");
}
