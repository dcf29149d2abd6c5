/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the root tree of a state says: which trees there are, when they were changed, and whether
 * the transaction that wrote it was committed. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "history/history.h"

/* Single items. */

/* Passes the items in a range of keys to `take`; false if part of the range is lost. */
static bool read_items(const struct bw_past *past, const struct bw_tree *tree, struct bw_key first,
                       struct bw_key last, void (*take)(void *context, const struct bw_item *item),
                       void *context)
{
    struct bw_item_range range;
    bool complete = true;
    bw_item_range_begin(&range, &past->reader, tree, first, last);
    while (bw_item_range_next(&range)) {
        if (range.error) {
            bw_error_free(BW_TAKE(range.error));
            complete = false;
        } else {
            take(context, &range.item);
        }
    }
    BW_AUTO_ERROR struct bw_error *error = bw_item_range_end(&range, NULL);
    return complete && !error;
}

static struct bw_tree root_tree(const struct bw_root_pointer *root)
{
    return (struct bw_tree){BW_ROOT_TREE, *root, 0};
}

/* Root items of one tree id. */
struct root_items {
    struct bw_tree tree;
    size_t count;
};

static void take_root_item(void *context, const struct bw_item *item)
{
    struct root_items *items = context;
    struct bw_root_item root;
    BW_AUTO_ERROR struct bw_error *error = bw_root_item_decode(item, &root);
    if (error)
        return;
    items->tree = (struct bw_tree){item->key.objectid, root.root, 0};
    items->count++;
}

/* Reads the root items of a tree; false if some may be lost. */
static bool find_tree(const struct bw_past *past, const struct bw_root_pointer *root, uint64_t id,
                      struct root_items *items)
{
    const struct bw_tree tree = root_tree(root);
    const struct bw_key first = {id, BW_ROOT_ITEM, 0}, last = {id, BW_ROOT_ITEM, UINT64_MAX};
    *items = (struct root_items){0};
    return read_items(past, &tree, first, last, take_root_item, items);
}

/* Every file system has these trees: nearly the first and the last keys of a root tree. */
bool bw_state_is_root(const struct bw_past *past, const struct bw_root_pointer *root)
{
    static const uint64_t always[] = {BW_EXTENT_TREE, BW_DATA_RELOC_TREE};
    struct root_items items;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (find_tree(past, root, always[i], &items) && !items.count)
            return false;
    return true;
}

/* The extent item of a block. */
struct extent_search {
    const struct bw_root_pointer *root;
    bool found;
};

static void take_extent(void *context, const struct bw_item *item)
{
    struct extent_search *search = context;
    struct bw_tree_extent extent;
    if (bw_tree_extent_decode(item, &extent) && extent.bytenr == search->root->bytenr)
        search->found |=
            extent.generation == search->root->generation && extent.level == search->root->level;
}

/* The extent tree of a state; false if it is lost, or does not tell of tree blocks. */
static bool find_extent_tree(const struct bw_past *past, const struct bw_root_pointer *root,
                             struct bw_tree *tree)
{
    struct root_items extents;
    if (!find_tree(past, root, BW_EXTENT_TREE, &extents) || extents.count != 1 ||
        past->fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2)
        return false;
    *tree = extents.tree;
    return true;
}

/* References are complete in the extent tree when a transaction is committed, and only then: a root
 * that was given up before has no extent item in its own extent tree. */
enum bw_state_standing bw_state_standing(const struct bw_past *past,
                                         const struct bw_past_state *state)
{
    const struct bw_root_pointer *root = &state->root;
    struct extent_search search = {.root = root};
    struct bw_tree extents;
    if (state->info.sources & (BW_STATE_OF_SUPERBLOCK | BW_STATE_OF_BACKUP))
        return BW_STATE_COMMITTED;
    /* After the last commit there is one transaction at most, unless the superblock is stale. */
    if (root->generation == past->fs->superblock.generation + 1)
        return BW_STATE_ABANDONED;
    if (!find_extent_tree(past, root, &extents))
        return BW_STATE_UNPROVEN;
    const bool complete = read_items(
        past, &extents, (struct bw_key){root->bytenr, BW_EXTENT_ITEM, 0},
        (struct bw_key){root->bytenr, BW_METADATA_ITEM, UINT64_MAX}, take_extent, &search);
    return search.found ? BW_STATE_COMMITTED : complete ? BW_STATE_ABANDONED : BW_STATE_UNPROVEN;
}

/* The chunk tree of a state: its blocks lie in system chunks, and its extent tree has them. */

static struct bw_error *take_system_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct bw_past *past = context;
    if (chunk->type & BW_GROUP_SYSTEM && past->system_count < BW_PAST_SYSTEM_CHUNKS)
        past->system[past->system_count++] = (struct bw_range){chunk->logical, chunk->length};
    return NULL;
}

struct bw_error *bw_past_find_system_chunks(struct bw_past *past)
{
    past->items = BW_PAST_ITEMS;
    return bw_fs_chunks(past->fs, take_system_chunk, past);
}

struct chunk_search {
    struct bw_past *past;
    struct bw_root_pointer *root;
};

static void take_chunk_block(void *context, const struct bw_item *item)
{
    const struct chunk_search *search = context;
    struct bw_root_pointer *root = search->root;
    struct bw_extent_reference reference;
    struct bw_tree_extent extent;
    search->past->items -= search->past->items > 0;
    if (!bw_tree_extent_decode(item, &extent))
        return;
    while (bw_extent_reference_next(&extent.references, &reference))
        if (!reference.shared && reference.referrer == BW_CHUNK_TREE &&
            (!root->bytenr || extent.level > root->level))
            *root = (struct bw_root_pointer){extent.bytenr, extent.generation, extent.level};
}

void bw_state_chunk_root(struct bw_past *past, const struct bw_root_pointer *root,
                         struct bw_root_pointer *chunk_root)
{
    struct chunk_search search = {past, chunk_root};
    struct bw_tree extents;
    *chunk_root = (struct bw_root_pointer){0};
    if (!find_extent_tree(past, root, &extents))
        return;
    for (unsigned i = 0; i < past->system_count && past->items; i++) {
        const struct bw_range *chunk = &past->system[i];
        read_items(past, &extents, (struct bw_key){chunk->address, 0, 0},
                   (struct bw_key){chunk->address + chunk->length - 1, UINT8_MAX, UINT64_MAX},
                   take_chunk_block, &search);
    }
}

bool bw_state_has_root(const struct bw_past *past, uint64_t tree,
                       const struct bw_root_pointer *root)
{
    const struct bw_block_pointer pointer = {
        root->bytenr, {.owner = tree, .generation = root->generation, .level = root->level}};
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&past->reader, 1);
    BW_AUTO_ERROR struct bw_error *error =
        buffer ? bw_block_read(&past->reader, &pointer, buffer) : bw_error_no_memory();
    return !error;
}

/* All trees. */

struct reading {
    struct bw_past *past;
    bw_state_tree_taker *take;
    void *context;
    struct timespec *newest;
};

static struct bw_error *take_tree(const struct reading *reading, const struct bw_tree *tree,
                                  bool is_deleted, bool is_lost)
{
    struct bw_state_tree row = {.id = tree->id,
                                .root = tree->root.bytenr,
                                .generation = tree->root.generation,
                                .level = tree->root.level,
                                .is_deleted = is_deleted,
                                .judged = reading->past->judged};
    if (row.judged) {
        const struct bw_loss loss = bw_judge_tree(reading->past->judge, tree, &row.readable);
        row.missing = loss.missing;
        row.trimmed = loss.trimmed;
    }
    if (row.judged && is_lost) {
        row.readable = false;
        row.missing = 1;
    }
    return reading->take(reading->context, &row);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* The time of the last change of an inode. Kernels that do not know it leave it stale. */
static void note_time(const struct reading *reading, const struct bw_item *item)
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    if (!reading->newest || item->size < sizeof *disk ||
        bw_get64(disk->generation_v2) != bw_get64(disk->generation))
        return;
    const struct timespec time = {.tv_sec = (time_t)bw_get64(disk->ctime.seconds),
                                  .tv_nsec = (long)bw_get32(disk->ctime.nanoseconds)};
    if (is_later(&time, reading->newest))
        *reading->newest = time;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    const struct reading *reading = context;
    struct bw_item item;
    if (!reading->past->leaves)
        return bw_error_create(BW_ERROR_CORRUPT, "the root trees are larger than all blocks");
    reading->past->leaves--;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_root_item root;
        if (item.key.type != BW_ROOT_ITEM)
            continue;
        BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(&item, &root);
        if (bad || !root.root.bytenr)
            continue;
        note_time(reading, &item);
        const struct bw_tree tree = {item.key.objectid, root.root, 0};
        BW_TRY(take_tree(reading, &tree, root.references == 0 || root.flags & BW_ROOT_DEAD, false));
    }
    return NULL;
}

struct bw_error *bw_state_trees(struct bw_past *past, const struct bw_past_state *state,
                                bw_state_tree_taker *take, void *context, struct timespec *newest)
{
    struct reading reading = {past, take, context, newest};
    const struct bw_tree tree = root_tree(&state->root),
                         chunks = {BW_CHUNK_TREE, state->chunk_root, 0};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = take_leaf, .lost = bw_scan_ignore_lost,
                                 .context = &reading};
    BW_TRY(take_tree(&reading, &tree, false, false));
    BW_TRY(take_tree(&reading, &chunks, false, state->has_other_chunks));
    return bw_tree_scan(&past->reader, &tree, &scan);
}
