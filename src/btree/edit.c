/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changing trees in memory. A descent for a change replaces each block on its path by a copy in
 * memory, unless it is one already that no other tree shares, and points to the copy from the copy
 * above it. The change then rewrites the leaf as one or several leaves; the nodes above get
 * pointers to new ones, and are split in half when they are full, up to a new root. Empty leaves
 * and nodes are removed, but never merged: the trees are read a few times and then dropped.
 *
 * Blocks of the image are hostile: their keys must be in order, and their pointers must not lead to
 * blocks in memory.
 */
#include "btree/edit.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/memory.h"

void bw_memory_cut(struct bw_block_memory *memory, size_t count)
{
    while (memory->blocks.count > count)
        free(bw_memory_blocks_pop(&memory->blocks));
}

void bw_memory_free(struct bw_block_memory *memory)
{
    bw_memory_cut(memory, 0);
    bw_memory_blocks_free(&memory->blocks);
    *memory = (struct bw_block_memory){.nodesize = memory->nodesize};
}

/* A path from the root to a leaf. */
struct path {
    struct {
        uint8_t *block;
        uint32_t slot; /* slot of the child; in a leaf, slot of the last item that is not after the
                          key */
    } at[BW_MAX_LEVEL + 1];
    struct bw_key end; /* the leaf's key range ends before this key */
    bool exact;        /* the item in the slot has exactly the key */
    bool before_all;   /* the key is less than the keys of all items */
};

struct bw_error *bw_editor_create(struct bw_tree_editor *editor,
                                  const struct bw_tree_reader *reader,
                                  struct bw_block_memory *memory, const struct bw_tree *tree,
                                  uint64_t generation)
{
    *editor = (struct bw_tree_editor){
        .tree = *tree, .reader = *reader, .memory = memory, .generation = generation};
    editor->reader.memory = memory;
    editor->before = bw_block_buffer(reader, 1);
    editor->items =
        malloc((reader->nodesize / sizeof(struct bw_disk_item) + 1) * sizeof *editor->items);
    if (editor->before && editor->items)
        return NULL;
    return bw_error_no_memory();
}

void bw_editor_destroy(struct bw_tree_editor *editor)
{
    free(editor->before);
    free(editor->items);
    bw_buffer_free(&editor->scratch);
}

static uint32_t space_of(const struct bw_tree_editor *editor)
{
    return editor->reader.nodesize - (uint32_t)sizeof(struct bw_disk_header);
}

uint32_t bw_edit_room(const struct bw_tree_editor *editor)
{
    return space_of(editor) - (uint32_t)sizeof(struct bw_disk_item);
}

static struct bw_disk_header *header_of(uint8_t *block)
{
    return (struct bw_disk_header *)block;
}

static struct bw_disk_key_pointer *pointers_of(uint8_t *node)
{
    return (struct bw_disk_key_pointer *)(node + sizeof(struct bw_disk_header));
}

static struct bw_node view_block(const struct bw_tree_editor *editor, const uint8_t *block)
{
    return bw_node_view(block, editor->reader.nodesize);
}

static void set_pointer(struct bw_disk_key_pointer *pointer, const struct bw_tree_editor *editor,
                        const struct bw_key *key, uint64_t address)
{
    pointer->key = bw_key_encode(key);
    pointer->bytenr = bw_put64(address);
    pointer->generation = bw_put64(editor->generation);
}

/* Blocks of the image that are edited must be in order, and must not contain addresses of memory
 * blocks. */
static struct bw_error *check_block(const struct bw_node *node)
{
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (node->level && bw_node_pointer_at(node, slot).bytenr >= BW_MEMORY_START)
            return bw_error_create(BW_ERROR_CORRUPT, "a pointer leads out of the image");
        if (node->level || !slot)
            continue; /* verified for nodes when they were read */
        struct bw_key before = bw_leaf_key(node, slot - 1), key = bw_leaf_key(node, slot);
        if (bw_key_compare(&before, &key) >= 0)
            return bw_error_create(BW_ERROR_CORRUPT, "keys of a leaf are out of order");
    }
    return NULL;
}

static struct bw_error *new_block(struct bw_tree_editor *editor, uint8_t level, uint8_t **block,
                                  uint64_t *address)
{
    struct bw_block_memory *memory = editor->memory;
    BW_TRY(bw_memory_blocks_reserve(&memory->blocks, 1));
    *block = malloc(memory->nodesize);
    if (!*block)
        return bw_error_no_memory();
    *address = BW_MEMORY_START + (uint64_t)memory->blocks.count * memory->nodesize;
    memory->blocks.items[memory->blocks.count++] = *block;
    struct bw_disk_header *header = header_of(*block);
    memset(header, 0, sizeof *header);
    header->bytenr = bw_put64(*address);
    header->flags = bw_put64(1); /* WRITTEN, like all blocks of an image */
    header->generation = bw_put64(editor->generation);
    header->owner = bw_put64(editor->tree.id);
    header->level = level;
    return NULL;
}

struct bw_error *bw_editor_create_empty(struct bw_tree_editor *editor,
                                        const struct bw_tree_reader *reader,
                                        struct bw_block_memory *memory, uint64_t id,
                                        uint64_t generation)
{
    const struct bw_tree tree = {.id = id, .root = {.generation = generation}};
    uint8_t *leaf;
    BW_TRY(bw_editor_create(editor, reader, memory, &tree, generation));
    return new_block(editor, 0, &leaf, &editor->tree.root.bytenr);
}

/* Gets a block in memory, with its address: the block itself or, if it must not be changed but will
 * be, a copy. Blocks of the image are always copied. */
static struct bw_error *get_block(struct bw_tree_editor *editor,
                                  const struct bw_block_pointer *pointer, bool changes,
                                  uint8_t **block, uint64_t *address)
{
    const uint64_t number = (pointer->bytenr - BW_MEMORY_START) / editor->memory->nodesize;
    const uint8_t *original = *block = bw_memory_block(editor->memory, pointer->bytenr);
    *address = pointer->bytenr;
    if (original && (!changes || number >= editor->shared))
        return NULL;
    if (!original) {
        BW_TRY(bw_block_read(&editor->reader, pointer, editor->before));
        original = editor->before;
    }
    const struct bw_node node = view_block(editor, original);
    struct bw_error *error = original == editor->before ? check_block(&node) : NULL;
    if (error)
        return bw_error_prefix(error, "tree block %" PRIu64, pointer->bytenr);
    BW_TRY(new_block(editor, node.level, block, address));
    memcpy(*block + sizeof(struct bw_disk_header), original + sizeof(struct bw_disk_header),
           space_of(editor));
    header_of(*block)->item_count = bw_put32(node.item_count);
    return NULL;
}

/* Descends to the leaf of a key; `changes`: the path will be changed. */
static struct bw_error *descend_to_leaf(struct bw_tree_editor *editor, const struct bw_key *key,
                                        bool changes, struct path *path)
{
    struct bw_block_pointer pointer = bw_tree_root_pointer(&editor->tree, false);
    uint64_t root;
    uint8_t *block;
    BW_TRY(get_block(editor, &pointer, changes, &block, &root));
    if (root != pointer.bytenr) {
        editor->tree.root.bytenr = root;
        editor->tree.root.generation = editor->generation;
        pointer = bw_tree_root_pointer(&editor->tree, false);
    }
    for (uint8_t level = editor->tree.root.level; level > 0; level--) {
        const struct bw_node node = view_block(editor, block);
        uint32_t slot = bw_child_slot(&node, key);
        uint64_t address;
        path->at[level].block = block;
        path->at[level].slot = slot;
        pointer = bw_tree_child_pointer(&pointer, &node, slot);
        BW_TRY(get_block(editor, &pointer, changes, &block, &address));
        if (address == pointer.bytenr)
            continue;
        set_pointer(&pointers_of(path->at[level].block)[slot], editor,
                    &pointer.expectation.first_key, address);
        pointer.bytenr = address;
    }
    const struct bw_node leaf = view_block(editor, block);
    uint32_t until = bw_node_count_until(&leaf, key);
    path->at[0].block = block;
    path->at[0].slot = until ? until - 1 : 0;
    path->end = pointer.expectation.end_key;
    path->before_all = !until;
    const struct bw_key found = until ? bw_leaf_key(&leaf, until - 1) : (struct bw_key){0};
    path->exact = until && bw_key_compare(&found, key) == 0;
    return NULL;
}

/* The item in a slot; `data` is NULL if there is no such slot. An item whose bytes are outside the
 * leaf is empty. */
static struct bw_item item_at(const struct bw_node *leaf, uint32_t slot)
{
    struct bw_item item = {.data = NULL};
    if (slot < leaf->item_count && !bw_leaf_item(leaf, slot, &item)) {
        item.data = leaf->block;
        item.size = 0;
    }
    return item;
}

/* Finds the item with a key; or, unless `exact`, the last one at or before it. */
static struct bw_error *find_item(struct bw_tree_editor *editor, const struct bw_key *key,
                                  bool exact, struct bw_item *item)
{
    struct path path;
    BW_TRY(descend_to_leaf(editor, key, false, &path));
    const struct bw_node leaf = view_block(editor, path.at[0].block);
    const bool found = exact ? path.exact : !path.before_all;
    *item = found ? item_at(&leaf, path.at[0].slot) : (struct bw_item){.data = NULL};
    return NULL;
}

struct bw_error *bw_edit_find(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item)
{
    return find_item(editor, key, true, item);
}

struct bw_error *bw_edit_last(struct bw_tree_editor *editor, const struct bw_key *key,
                              struct bw_item *item)
{
    return find_item(editor, key, false, item);
}

struct bw_error *bw_edit_first(struct bw_tree_editor *editor, const struct bw_key *key,
                               struct bw_item *item)
{
    const struct bw_key no_limit = BW_KEY_MAX;
    struct path path = {.end = *key};
    do {
        const struct bw_key from = path.end;
        BW_TRY(descend_to_leaf(editor, &from, false, &path));
        const struct bw_node leaf = view_block(editor, path.at[0].block);
        *item = item_at(&leaf, path.at[0].slot + !(path.exact || path.before_all));
    } while (!item->data && bw_key_compare(&path.end, &no_limit) < 0);
    return NULL;
}

/* Updates the keys of the pointers to a block, up to the root, to the key of its first entry. */
static void set_first_key(const struct bw_tree_editor *editor, const struct path *path,
                          uint8_t level)
{
    const struct bw_node changed = view_block(editor, path->at[level].block);
    const struct bw_key first = bw_first_key(&changed);
    for (uint8_t above = level; above < editor->tree.root.level; above++) {
        pointers_of(path->at[above + 1].block)[path->at[above + 1].slot].key =
            bw_key_encode(&first);
        if (path->at[above + 1].slot)
            break;
    }
}

static void count_pointers(uint8_t *node, uint32_t count)
{
    header_of(node)->item_count = bw_put32(count);
}

static struct bw_error *insert_pointer(struct bw_tree_editor *editor, struct path *path,
                                       uint8_t level, const struct bw_key *key, uint64_t address);

/* Splits a full node; the path still leads to the same child. */
static struct bw_error *split_node(struct bw_tree_editor *editor, struct path *path, uint8_t level)
{
    uint8_t *left = path->at[level].block, *right;
    const uint32_t count = bw_get32(header_of(left)->item_count), half = count / 2;
    const struct bw_key middle = bw_key_decode(&pointers_of(left)[half].key);
    uint64_t address;
    BW_TRY(new_block(editor, level, &right, &address));
    memcpy(pointers_of(right), &pointers_of(left)[half],
           (count - half) * sizeof *pointers_of(left));
    count_pointers(right, count - half);
    const uint32_t slot = path->at[level].slot;
    struct path above = *path;
    BW_TRY(insert_pointer(editor, &above, (uint8_t)(level + 1), &middle, address));
    count_pointers(left, half);
    if (slot < half) {
        above.at[level + 1].slot--; /* the pointer to the left half */
    } else {
        above.at[level].block = right;
        above.at[level].slot = slot - half;
    }
    *path = above;
    return NULL;
}

/* Adds a pointer after the path's current pointer, and moves the path to it. */
static struct bw_error *insert_pointer(struct bw_tree_editor *editor, struct path *path,
                                       uint8_t level, const struct bw_key *key, uint64_t address)
{
    if (level > editor->tree.root.level) {
        /* A new root above the current one, where the path begins. */
        const struct bw_node below = view_block(editor, path->at[level - 1].block);
        const struct bw_key first = bw_first_key(&below);
        uint64_t root_address;
        uint8_t *root;
        if (level >= BW_MAX_LEVEL)
            return bw_error_create(BW_ERROR_CORRUPT, "the tree gets too high");
        BW_TRY(new_block(editor, level, &root, &root_address));
        set_pointer(&pointers_of(root)[0], editor, &first, editor->tree.root.bytenr);
        count_pointers(root, 1);
        editor->tree.root.bytenr = root_address;
        editor->tree.root.level = level;
        path->at[level].block = root;
        path->at[level].slot = 0;
    }
    if (bw_get32(header_of(path->at[level].block)->item_count) ==
        space_of(editor) / sizeof(struct bw_disk_key_pointer))
        BW_TRY(split_node(editor, path, level));
    uint8_t *node = path->at[level].block;
    const uint32_t count = bw_get32(header_of(node)->item_count), slot = ++path->at[level].slot;
    struct bw_disk_key_pointer *pointers = pointers_of(node);
    memmove(&pointers[slot + 1], &pointers[slot], (count - slot) * sizeof *pointers);
    set_pointer(&pointers[slot], editor, key, address);
    count_pointers(node, count + 1);
    return NULL;
}

/* Removes the path's pointer to its leaf, and the nodes that become empty. */
static void remove_leaf(struct bw_tree_editor *editor, const struct path *path)
{
    for (uint8_t level = 1; level <= editor->tree.root.level; level++) {
        uint8_t *node = path->at[level].block;
        const uint32_t count = bw_get32(header_of(node)->item_count), slot = path->at[level].slot;
        struct bw_disk_key_pointer *pointers = pointers_of(node);
        memmove(&pointers[slot], &pointers[slot + 1], (count - slot - 1) * sizeof *pointers);
        count_pointers(node, count - 1);
        if (count > 1) {
            if (slot == 0)
                set_first_key(editor, path, level);
            return;
        }
    }
    /* The whole tree is an empty leaf: the former root. */
    header_of(path->at[editor->tree.root.level].block)->level = 0;
    editor->tree.root.level = 0;
}

/* Fills a leaf with all items if they fit, otherwise with about half of their bytes; returns the
 * number of items written. */
static uint32_t fill_leaf(const struct bw_tree_editor *editor, uint8_t *block,
                          const struct bw_item *items, uint32_t count)
{
    struct bw_disk_item *disk = (void *)(block + sizeof(struct bw_disk_header));
    const uint32_t space = space_of(editor);
    uint64_t enough = 0;
    for (uint32_t i = 0; i < count; i++)
        enough += sizeof *disk + items[i].size;
    if (enough > space)
        enough /= 2;
    uint32_t slot = 0, used = 0, end = space;
    for (; slot < count && used < enough; slot++) {
        const struct bw_item *item = &items[slot];
        const uint32_t size = (uint32_t)sizeof *disk + item->size;
        if (slot && used + size > space)
            break;
        used += size;
        end -= item->size;
        disk[slot].key = bw_key_encode(&item->key);
        disk[slot].offset = bw_put32(end);
        disk[slot].size = bw_put32(item->size);
        memcpy(block + sizeof(struct bw_disk_header) + end, item->data, item->size);
    }
    header_of(block)->item_count = bw_put32(slot);
    return slot;
}

/* Rewrites the leaf of the path with one item added, removed (`new` is NULL), or replaced. */
static struct bw_error *change_leaf(struct bw_tree_editor *editor, struct path *path,
                                    const struct bw_item *new)
{
    memcpy(editor->before, path->at[0].block, editor->reader.nodesize);
    const struct bw_node leaf = view_block(editor, editor->before);
    const uint32_t at = path->at[0].slot + !(path->exact || path->before_all);
    struct bw_item *items = editor->items;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot <= leaf.item_count; slot++) {
        if (slot == at && new)
            items[count++] = *new;
        if (slot < leaf.item_count && !(slot == at && path->exact))
            items[count++] = item_at(&leaf, slot);
    }

    uint32_t done = fill_leaf(editor, path->at[0].block, items, count);
    if (count)
        set_first_key(editor, path, 0);
    else if (editor->tree.root.level)
        remove_leaf(editor, path);
    while (done < count) {
        uint64_t address;
        uint8_t *block;
        BW_TRY(new_block(editor, 0, &block, &address));
        BW_TRY(insert_pointer(editor, path, 1, &items[done].key, address));
        done += fill_leaf(editor, block, items + done, count - done);
    }
    return NULL;
}

struct bw_error *bw_edit_put(struct bw_tree_editor *editor, const struct bw_key *key,
                             const void *data, uint32_t size)
{
    const struct bw_item new = {*key, data, size};
    struct path path;
    if (size > bw_edit_room(editor))
        return bw_error_create(BW_ERROR_CORRUPT, "an item of %" PRIu32 " bytes fits no leaf", size);
    BW_TRY(descend_to_leaf(editor, key, true, &path));
    const struct bw_node leaf = view_block(editor, path.at[0].block);
    struct bw_item old;
    if (path.exact && bw_leaf_item(&leaf, path.at[0].slot, &old) && old.size == size) {
        memcpy(path.at[0].block + (old.data - leaf.block), data, size);
        return NULL;
    }
    return change_leaf(editor, &path, &new);
}

struct bw_error *bw_edit_remove(struct bw_tree_editor *editor, const struct bw_key *key)
{
    struct path path;
    BW_TRY(descend_to_leaf(editor, key, true, &path));
    return path.exact ? change_leaf(editor, &path, NULL) : NULL;
}

/* Adds a pointer to a subtree with one leaf, which counts as lost. The nodes above the leaf can be
 * read, so that nobody searches for other leaves below them. */
static struct bw_error *add_lost(struct bw_tree_editor *editor, uint8_t level,
                                 const struct bw_key *first, struct bw_disk_key_pointer *pointer)
{
    struct bw_memory_blocks *blocks = &editor->memory->blocks;
    uint64_t address = BW_MEMORY_START + (uint64_t)blocks->count * editor->memory->nodesize;
    BW_TRY(bw_memory_blocks_push(blocks, NULL));
    for (uint8_t above = 1; above <= level; above++) {
        const uint64_t below = address;
        uint8_t *node;
        BW_TRY(new_block(editor, above, &node, &address));
        set_pointer(&pointers_of(node)[0], editor, first, below);
        count_pointers(node, 1);
    }
    set_pointer(pointer, editor, first, address);
    return NULL;
}

struct bw_error *bw_edit_surround(struct bw_block_memory *memory, struct bw_tree *tree,
                                  const struct bw_key *first, const struct bw_key *end,
                                  bool has_first)
{
    const struct bw_key lowest = {0};
    const uint8_t level = tree->root.level;
    struct bw_tree_editor editor = {
        .tree = *tree, .memory = memory, .generation = tree->root.generation};
    struct bw_root_pointer root = {.generation = editor.generation, .level = level + 1};
    uint8_t *node;
    uint32_t count = 0;
    BW_TRY(new_block(&editor, root.level, &node, &root.bytenr));
    if (!has_first)
        BW_TRY(add_lost(&editor, level, &lowest, &pointers_of(node)[count++]));
    set_pointer(&pointers_of(node)[count++], &editor, first, tree->root.bytenr);
    BW_TRY(add_lost(&editor, level, end, &pointers_of(node)[count++]));
    count_pointers(node, count);
    tree->root = root;
    return NULL;
}
