/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The present roots of all trees. */
#include "rescue/tree_roots.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "owners/references.h"

/* How many roots of extent trees are tried: those of transactions that were not committed are few.
 */
enum { MOST_TRIES = 256, MOST_RIVALS = 4 };

/* Ids of trees that the root tree does not have: itself, the chunk tree, the remap tree, and those
 * of logs and relocation. */
static bool is_listed(uint64_t id)
{
    return id && id != BW_ROOT_TREE && id != BW_CHUNK_TREE && id != BW_REMAP_TREE &&
           (id <= BW_LAST_SUBVOLUME || id == BW_DATA_RELOC_TREE);
}

void bw_tree_roots_free(struct bw_tree_roots *roots)
{
    free(roots->trees);
    bw_map_free(&roots->numbers);
    bw_map_free(&roots->leaves);
    *roots = (struct bw_tree_roots){0};
}

static bool is_higher(const struct bw_root_pointer *a, const struct bw_root_pointer *b,
                      bool by_level)
{
    if (by_level && a->level != b->level)
        return a->level > b->level;
    /* Both are there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    if (a->generation != b->generation)
        return a->generation > b->generation;
    return a->level != b->level ? a->level > b->level : a->bytenr > b->bytenr;
}

/* Notes a block of a tree, unless there is one above it, or a newer one. */
static struct bw_error *note(struct bw_tree_roots *roots, uint64_t id, struct bw_root_pointer block,
                             bool by_level)
{
    uint32_t number = bw_map_get(&roots->numbers, id);
    if (!is_listed(id))
        return NULL;
    if (number != UINT32_MAX) {
        struct bw_root_pointer *root = &roots->trees[number].root;
        *root = is_higher(&block, root, by_level) ? block : *root;
        return NULL;
    }
    if (!BW_ARRAY_RESERVE(roots->trees, roots->count, roots->capacity) ||
        !bw_map_put(&roots->numbers, id, (uint32_t)roots->count))
        return bw_error_no_memory();
    roots->trees[roots->count++] = (struct bw_tree_root){id, block};
    return NULL;
}

/* The extent tree. */

/* Whether an extent tree has a tree block. What cannot be read has none. */
static struct bw_error *has_block(const struct bw_fs *fs, const struct bw_tree *tree,
                                  const struct bw_root_pointer *block, bool *has)
{
    struct bw_item_range range;
    struct bw_tree_extent extent;
    *has = false;
    bw_item_range_begin(&range, &fs->reader, tree, (struct bw_key){block->bytenr, 0, 0},
                        (struct bw_key){block->bytenr, UINT8_MAX, UINT64_MAX});
    while (bw_item_range_next(&range))
        *has |= !range.error && bw_tree_extent_decode(&range.item, &extent) &&
                extent.generation == block->generation && extent.level == block->level;
    return bw_item_range_end(&range, NULL);
}

/* The superblock has a say unless it is lost or stale. */
static bool has_say(const struct bw_fs *fs, uint64_t newest)
{
    return fs->superblock.root.bytenr && newest <= fs->superblock.generation;
}

static struct bw_error *is_committed(const struct bw_fs *fs, const struct bw_tree *tree,
                                     uint64_t newest, bool *is)
{
    BW_TRY(has_block(fs, tree, &tree->root, is));
    return *is && has_say(fs, newest) ? has_block(fs, tree, &fs->superblock.root, is) : NULL;
}

static int newest_first(const void *left, const void *right)
{
    return is_higher(left, right, false) ? -1 : is_higher(right, left, false);
}

/* All blocks that may be the root of a tree, the most likely ones first. */
static struct bw_error *candidates(const struct bw_found_index *index, uint64_t id, uint64_t newest,
                                   struct bw_root_pointer **roots, size_t *count)
{
    size_t capacity = 0;
    *roots = NULL;
    *count = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct bw_found_block *block = &index->blocks[i];
        if (bw_found_owner(index, block) != id || block->generation > newest)
            continue;
        if (!BW_ARRAY_RESERVE(*roots, *count, capacity))
            return bw_error_no_memory();
        (*roots)[(*count)++] =
            (struct bw_root_pointer){block->bytenr, block->generation, block->level};
    }
    if (*count)
        qsort(*roots, *count, sizeof **roots, newest_first);
    return NULL;
}

/* How many blocks that were found an extent tree has. */
struct agreement {
    const struct bw_found_index *index;
    size_t count;
};

static struct bw_error *count_leaf(void *context, const struct bw_node *leaf)
{
    struct agreement *agreement = context;
    struct bw_tree_extent extent;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        agreement->count += bw_tree_extent_decode(&item, &extent) &&
                            bw_found_find(agreement->index, extent.bytenr, extent.generation);
    return NULL;
}

static struct bw_error *count_blocks(const struct bw_fs *fs, const struct bw_found_index *index,
                                     const struct bw_tree *tree, size_t *count)
{
    struct agreement agreement = {.index = index};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = count_leaf, .lost = bw_scan_ignore_lost,
                                 .context = &agreement};
    struct bw_error *error = bw_tree_scan(&fs->reader, tree, &scan);
    *count = agreement.count;
    return error;
}

/* Where the superblock has no say, one that was planted may have an item for itself and be newer
 * than all others. So it also has to know half as many blocks as any of some older ones. */
static struct bw_error *find_extent_tree(const struct bw_fs *fs, const struct bw_found_index *index,
                                         uint64_t newest, struct bw_tree *tree)
{
    struct bw_root_pointer *roots;
    size_t count, rivals = 0, most = 0, blocks;
    bool is;
    const bool weighs = !has_say(fs, newest);
    struct bw_error *error = candidates(index, BW_EXTENT_TREE, newest, &roots, &count);
    for (size_t i = 0; !error && rivals < (weighs ? MOST_RIVALS : 1) && i < count && i < MOST_TRIES;
         i++) {
        const struct bw_tree rival = {.id = BW_EXTENT_TREE, .root = roots[i]};
        error = is_committed(fs, &rival, newest, &is);
        if (error || !is)
            continue;
        if (weighs)
            error = count_blocks(fs, index, &rival, &blocks);
        if (!rivals++ || (weighs && blocks / 2 > most)) {
            *tree = rival;
            most = weighs ? blocks : 0;
        }
    }
    free(roots);
    return error;
}

/* What the extent tree says of all trees. */
struct survey {
    const struct bw_fs *fs;
    struct bw_tree_roots *roots;
    struct bw_tree_extent block; /* the last one that had an extent item */
    bool lost;                   /* some of the extent tree cannot be read */
    size_t read, own; /* blocks of the extent tree: those that were read, and those it lists */
    uint64_t bytes;   /* of all extents */
};

static struct bw_error *take_reference(struct survey *survey,
                                       const struct bw_extent_reference *reference)
{
    const struct bw_tree_extent *block = &survey->block;
    if (reference->shared)
        return NULL;
    survey->own += reference->referrer == BW_EXTENT_TREE;
    if (reference->referrer == BW_ROOT_TREE && !block->level &&
        !bw_map_put(&survey->roots->leaves, block->bytenr, 1))
        return bw_error_no_memory();
    return note(survey->roots, reference->referrer,
                (struct bw_root_pointer){block->bytenr, block->generation, block->level}, true);
}

static struct bw_error *take_node(void *context, const struct bw_node *node)
{
    struct survey *survey = context;
    (void)node;
    survey->read++;
    return NULL;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct survey *survey = context;
    struct bw_extent_reference reference;
    struct bw_extent_entry extent;
    struct bw_tree_extent block;
    struct bw_item item;
    survey->read++;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        if (bw_extent_entry_decode(survey->fs, &item, &extent))
            survey->bytes += extent.length;
        if (bw_tree_extent_decode(&item, &block)) {
            survey->block = block;
            while (bw_extent_reference_next(&block.references, &reference))
                BW_TRY(take_reference(survey, &reference));
        } else if (item.key.objectid == survey->block.bytenr &&
                   bw_extent_reference_of_key(&item.key, &reference)) {
            BW_TRY(take_reference(survey, &reference));
        }
    }
    return NULL;
}

static struct bw_error *lose(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    struct survey *survey = context;
    (void)pointer;
    survey->lost = true;
    bw_error_free(error);
    return NULL;
}

/* A part of the extent tree may have items for its own highest block and for the root of the root
 * tree. The whole of it has them for all its blocks, and for all bytes that are in use. */
static bool is_whole(const struct survey *survey, uint64_t newest)
{
    return !survey->lost && survey->own == survey->read &&
           (!has_say(survey->fs, newest) || survey->bytes == survey->fs->superblock.bytes_used);
}

static struct bw_error *ask_extent_tree(struct bw_fs *fs, const struct bw_tree *tree,
                                        uint64_t newest, struct bw_tree_roots *roots)
{
    struct survey survey = {.fs = fs, .roots = roots};
    const struct bw_scan scan = {BW_SCAN_ALL, .node = take_node, .leaf = take_leaf, .lost = lose,
                                 .context = &survey};
    BW_TRY(bw_tree_scan(&fs->reader, tree, &scan));
    roots->proven = is_whole(&survey, newest);
    roots->generation = tree->root.generation;
    return NULL;
}

/* Of a tree that is only known in part, a higher block that is no older is nearer to its root. */
static struct bw_error *take_found(struct bw_tree_roots *roots, const struct bw_tree_root *found)
{
    const uint32_t number = bw_map_get(&roots->numbers, found->id);
    if (number == UINT32_MAX)
        return note(roots, found->id, found->root, false);
    struct bw_root_pointer *told = &roots->trees[number].root;
    if (found->root.level > told->level && found->root.generation >= told->generation)
        *told = found->root;
    return NULL;
}

/* Adds what the extent tree has not told of: all trees, if there is none. Each change of a tree
 * reaches its root, so that is the highest of its newest blocks. */
static struct bw_error *ask_index(const struct bw_found_index *index, uint64_t newest,
                                  struct bw_tree_roots *roots)
{
    struct bw_tree_roots found = {0};
    struct bw_error *error = NULL;
    for (size_t i = 0; !error && i < index->count; i++) {
        const struct bw_found_block *block = &index->blocks[i];
        const struct bw_root_pointer root = {block->bytenr, block->generation, block->level};
        if (block->generation <= newest)
            error = note(&found, bw_found_owner(index, block), root, false);
    }
    for (size_t i = 0; !error && i < found.count; i++)
        error = take_found(roots, &found.trees[i]);
    bw_tree_roots_free(&found);
    return error;
}

static int by_id(const void *left, const void *right)
{
    const struct bw_tree_root *a = left, *b = right;
    return (a->id > b->id) - (a->id < b->id);
}

struct bw_error *bw_tree_roots_find(struct bw_fs *fs, const struct bw_found_index *index,
                                    uint64_t newest, struct bw_tree_roots *roots)
{
    struct bw_tree tree = {0};
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2))
        BW_TRY(find_extent_tree(fs, index, newest, &tree));
    if (tree.id)
        BW_TRY(ask_extent_tree(fs, &tree, newest, roots));
    if (!roots->proven)
        BW_TRY(ask_index(index, roots->generation ? roots->generation : newest, roots));
    bw_map_free(&roots->numbers);
    if (roots->count)
        qsort(roots->trees, roots->count, sizeof *roots->trees, by_id);
    return NULL;
}

const struct bw_tree_root *bw_tree_root_of(const struct bw_tree_roots *roots, uint64_t id)
{
    const size_t at = BW_FIRST_INDEX(i, roots->count, roots->trees[i].id >= id);
    return at < roots->count && roots->trees[at].id == id ? &roots->trees[at] : NULL;
}
