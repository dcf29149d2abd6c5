/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The way down: all trees are gone through in the order of their ids, but only into marked blocks.
 * If all blocks are to be read, each is read for the first tree that leads to it; where something
 * is found, the blocks above are marked, so that the other trees come there as well.
 */
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "ondisk/disk_items.h"
#include "owners/search.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The present tree. */
struct descent {
    struct bw_owner_search *search;
    const struct bw_listed_tree *tree;
    const struct bw_subvolume *subvolume; /* NULL: it is none */
    bool has_files;
    struct bw_block_set *seen;
    uint64_t path[BW_MAX_LEVEL];
    struct bw_error *failure; /* of a function that cannot return it */
};

static bool has_files(const struct bw_listed_tree *tree)
{
    return tree->is_subvolume || tree->tree.id == BW_ROOT_TREE ||
           tree->tree.id == BW_DATA_RELOC_TREE;
}

const struct bw_listed_tree *bw_owner_tree(const struct bw_owner_search *search, uint64_t id)
{
    const uint32_t number = bw_map_get(&search->tree_numbers, id);
    const struct bw_listed_tree *tree =
        number == UINT32_MAX ? NULL : &search->trees.entries[number];
    return tree && has_files(tree) ? tree : NULL;
}

bool bw_owner_mark(struct bw_owner_search *search, uint64_t bytenr, bool *new)
{
    *new = bw_map_get(&search->marks, bytenr) == UINT32_MAX;
    return !*new || bw_map_put(&search->marks, bytenr, 1);
}

static struct bw_error *mark_path(struct descent *descent, unsigned lowest)
{
    bool new;
    for (unsigned level = lowest; level <= descent->tree->tree.root.level; level++)
        if (!bw_owner_mark(descent->search, descent->path[level], &new))
            return bw_error_no_memory();
    return NULL;
}

/* Tree blocks in the ranges. */

/* The inodes with items below a pointer. */
struct inodes {
    struct descent *descent;
    struct bw_owner owner; /* its first members are set */
    uint64_t last;
};

static struct bw_error *take_inode(struct inodes *inodes, uint64_t inode)
{
    if (inode == inodes->last || inode < BW_SUBVOLUME_ROOT_INODE || inode > BW_LAST_SUBVOLUME)
        return NULL;
    inodes->last = inodes->owner.inode = inode;
    return bw_owner_give(inodes->descent->search, &inodes->owner);
}

static struct bw_error *take_inodes(void *context, const struct bw_node *leaf)
{
    for (uint32_t slot = 0; slot < leaf->item_count; slot++)
        BW_TRY(take_inode(context, bw_leaf_key(leaf, slot).objectid));
    return NULL;
}

/* Inodes that may have been below a block that is lost. */
static struct bw_error *lose_inodes(void *context, const struct bw_block_pointer *pointer,
                                    struct bw_error *error)
{
    struct inodes *inodes = context;
    struct bw_owner_search *search = inodes->descent->search;
    const struct bw_key *first = &pointer->expectation.first_key,
                        *end = &pointer->expectation.end_key;
    const uint64_t last = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
    bw_fs_report_lost(search->fs, pointer->bytenr, error);
    inodes->owner.inode = 0;
    return bw_owner_postpone(search, &inodes->owner,
                             greatest(first->objectid, BW_SUBVOLUME_ROOT_INODE),
                             least(last, BW_LAST_SUBVOLUME));
}

static struct bw_key key_before(struct bw_key key)
{
    if (key.offset--)
        return key;
    if (!key.type--)
        key.objectid--;
    return key;
}

static struct bw_error *give_dependants(struct descent *descent,
                                        const struct bw_block_pointer *pointer, size_t index)
{
    const struct bw_owned_block *block = &descent->search->blocks[index];
    struct inodes inodes = {.descent = descent,
                            .owner = {.kind = BW_OWNER_METADATA,
                                      .range = block->range,
                                      .logical = block->bytenr,
                                      .length = descent->search->fs->reader.nodesize,
                                      .extent = block->bytenr,
                                      .tree = descent->tree->tree.id,
                                      .subvolume = descent->subvolume,
                                      .level = block->level,
                                      .has_key = block->has_key,
                                      .key = block->key}};
    const struct bw_owner_hooks *hooks = descent->search->hooks;
    const struct bw_owner_options *options = descent->search->options;
    if (hooks && !hooks->wants(options->context, &inodes.owner))
        return options->take(options->context, &inodes.owner);
    const struct bw_scan scan = {.first = pointer->expectation.first_key,
                                 .last = key_before(pointer->expectation.end_key),
                                 .adopt = true,
                                 .leaf = take_inodes,
                                 .lost = lose_inodes,
                                 .context = &inodes};
    return bw_tree_scan(&descent->search->fs->reader, &descent->tree->tree, &scan);
}

static struct bw_error *take_block(struct descent *descent, const struct bw_block_pointer *pointer)
{
    struct bw_owner_search *search = descent->search;
    const struct bw_tree_block_expectation *expectation = &pointer->expectation;
    const struct bw_owned_block block = {.bytenr = pointer->bytenr,
                                         .generation = expectation->generation,
                                         .tree = descent->tree->tree.id,
                                         .level = expectation->level,
                                         .has_key = expectation->has_first_key,
                                         .key = expectation->first_key};
    size_t index;
    BW_TRY(bw_owner_add_block(search, &block, &index));
    BW_TRY(bw_owner_allocate(search, block.bytenr, search->fs->reader.nodesize));
    BW_TRY(mark_path(descent, block.level));
    return descent->subvolume ? give_dependants(descent, pointer, index) : NULL;
}

/* Data in the ranges. */

/* Where the bytes of a file extent are stored. */
struct piece {
    uint64_t extent, extent_length; /* the whole extent */
    uint64_t start, length;         /* what the file shows of it; all of it, if it is compressed */
    uint64_t offset, file_length;   /* in the file */
    bool is_compressed;
};

static bool decode(const struct bw_item *item, struct piece *piece)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size < sizeof *disk || disk->type == BW_FILE_EXTENT_INLINE)
        return false;
    const uint64_t extent = bw_get64(disk->disk_bytenr), length = bw_get64(disk->disk_num_bytes);
    const uint64_t into = bw_get64(disk->offset), shown = bw_get64(disk->num_bytes);
    if (!extent || !length || length > UINT64_MAX - extent)
        return false;
    *piece =
        (struct piece){extent, length, extent, length, item->key.offset, shown, disk->compression};
    if (disk->compression)
        return true;
    if (into > length || shown > length - into)
        return false;
    piece->start += into;
    piece->length = shown;
    return true;
}

/* Gives what a range and a piece have in common. */
static struct bw_error *give_piece(struct descent *descent, const struct piece *piece,
                                   const struct bw_query_range *range, struct bw_owner *owner)
{
    struct bw_owner_search *search = descent->search;
    const bool whole = search->options->whole_extents;
    const uint64_t start = greatest(range->start, whole ? piece->extent : piece->start);
    const uint64_t end =
        least(range->start + range->length,
              whole ? piece->extent + piece->extent_length : piece->start + piece->length);
    if (start >= end)
        return NULL;
    owner->range = range->number;
    owner->logical = start;
    owner->length = end - start;
    const bool all = whole || piece->is_compressed;
    owner->offset = piece->offset + (all ? 0 : start - piece->start);
    owner->file_length = all ? piece->file_length : end - start;
    if (!bw_covered_add(&search->shown, start, end))
        return bw_error_no_memory();
    return bw_owner_give(search, owner);
}

static struct bw_error *take_file_extent(struct descent *descent, const struct bw_item *item,
                                         bool *hit)
{
    struct bw_owner_search *search = descent->search;
    struct piece piece;
    if (!decode(item, &piece))
        return NULL;
    struct bw_owner owner = {.kind = BW_OWNER_DATA,
                             .extent = piece.extent,
                             .tree = descent->tree->tree.id,
                             .inode = item->key.objectid,
                             .subvolume = descent->subvolume};
    const struct bw_query_range *range;
    for (size_t next = 0; (range = bw_query_ranges_next(&search->ranges, &next, piece.extent,
                                                        piece.extent_length));) {
        if (!*hit)
            BW_TRY(bw_owner_allocate(search, piece.extent, piece.extent_length));
        BW_TRY(give_piece(descent, &piece, range, &owner));
        *hit = true;
    }
    return NULL;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct descent *descent = context;
    const struct bw_disk_header *header = (const void *)leaf->block;
    struct bw_item item;
    bool found = false;
    if (descent->failure)
        return BW_TAKE(descent->failure);
    for (uint32_t slot = 0; descent->has_files && bw_leaf_next(leaf, &slot, &item);) {
        bool hit = false;
        if (item.key.type == BW_EXTENT_DATA)
            BW_TRY(take_file_extent(descent, &item, &hit));
        found |= hit;
    }
    descent->path[0] = bw_get64(header->bytenr);
    return found ? mark_path(descent, 0) : NULL;
}

/* Trees. */

static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    struct descent *descent = context;
    struct bw_owner_search *search = descent->search;
    const uint8_t level = pointer->expectation.level;
    bool new = false;
    size_t next = 0;
    descent->path[level] = pointer->bytenr;
    if (descent->failure || bw_tree_has_dropped(descent->tree, pointer))
        return false;
    if (bw_query_ranges_next(&search->ranges, &next, pointer->bytenr, search->fs->reader.nodesize))
        descent->failure = take_block(descent, pointer);
    if (!descent->failure && search->reads_all &&
        !bw_block_set_add(descent->seen, pointer->bytenr, &new))
        descent->failure = bw_error_no_memory();
    new |= descent->tree->is_log || bw_map_get(&search->marks, pointer->bytenr) != UINT32_MAX;
    return !descent->failure && new && (level || descent->has_files);
}

static struct bw_error *take_node(void *context, const struct bw_node *node)
{
    struct descent *descent = context;
    (void)node;
    return BW_TAKE(descent->failure);
}

static struct bw_error *lose(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    struct descent *descent = context;
    bw_fs_report_lost(descent->search->fs, pointer->bytenr, error);
    return BW_TAKE(descent->failure);
}

static struct bw_error *descend(struct descent *descent)
{
    struct bw_owner_search *search = descent->search;
    const struct bw_listed_tree *tree = descent->tree;
    const struct bw_scan scan = {BW_SCAN_ALL,  .wants = wants, .node = take_node, .leaf = take_leaf,
                                 .lost = lose, .adopt = true,  .context = descent};
    descent->has_files = has_files(tree);
    descent->subvolume = tree->is_subvolume ? bw_subvolume_by_id(search->fs, tree->tree.id) : NULL;
    struct bw_error *error = bw_tree_scan(&search->fs->reader, &tree->tree, &scan);
    return bw_error_first(error, BW_TAKE(descent->failure));
}

/* Marks lead to files only: blocks of other trees are known from the extent tree then. */
static bool is_searched(const struct bw_owner_search *search, const struct bw_listed_tree *tree)
{
    const struct bw_subvolume *only = search->options->subvolume;
    if (only && tree->tree.id != bw_subvolume_id(only))
        return false;
    return search->reads_all || tree->is_log ||
           (has_files(tree) && bw_map_get(&search->marks, tree->tree.root.bytenr) != UINT32_MAX);
}

struct bw_error *bw_owner_descend(struct bw_owner_search *search)
{
    struct bw_block_set seen = {0};
    struct descent descent = {.search = search, .seen = &seen};
    struct bw_error *error = NULL;
    for (size_t i = 0; i < search->trees.count && !error; i++) {
        descent.tree = &search->trees.entries[i];
        if (search->hooks && !search->hooks->goes_on(search->options->context))
            break;
        if (is_searched(search, descent.tree))
            error = descend(&descent);
    }
    bw_map_free(&seen.words);
    return error;
}
