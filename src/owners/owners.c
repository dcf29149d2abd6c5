/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Owners of addresses: searching the trees, then the tree blocks, and what belongs to nothing. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "btrfs-walk/space.h"
#include "ondisk/disk.h"
#include "ondisk/disk_items.h"
#include "owners/owner_search.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greatest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Searching: all trees are read in the order of their ids, but only marked blocks. If all blocks
 * are to be read, each is read for the first tree that leads to it; where something is found, the
 * blocks above are marked, so that it is found for the other trees as well.
 */

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

static struct bw_error *visit_inode(struct inodes *inodes, uint64_t inode)
{
    if (inode == inodes->last || inode < BW_SUBVOLUME_ROOT_INODE || inode > BW_LAST_SUBVOLUME)
        return NULL;
    inodes->last = inodes->owner.inode = inode;
    return bw_owner_visit(inodes->descent->search, &inodes->owner);
}

static struct bw_error *visit_inodes(void *context, const struct bw_node *leaf)
{
    for (uint32_t slot = 0; slot < leaf->item_count; slot++)
        BW_TRY(visit_inode(context, bw_leaf_key(leaf, slot).objectid));
    return NULL;
}

/* Inodes that may have been below a block that is lost. */
static struct bw_error *postpone_inodes(void *context, const struct bw_block_pointer *pointer,
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

static struct bw_error *visit_inodes_below(struct descent *descent,
                                           const struct bw_block_pointer *pointer, size_t index)
{
    const struct bw_owned_block *block = &descent->search->blocks.items[index];
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
    if (hooks && !hooks->accepts(options->context, &inodes.owner))
        return options->visit(options->context, &inodes.owner);
    const struct bw_scan scan = {.first = pointer->expectation.first_key,
                                 .last = key_before(pointer->expectation.end_key),
                                 .adopt = true,
                                 .leaf = visit_inodes,
                                 .lost = postpone_inodes,
                                 .context = &inodes};
    return bw_tree_scan(&descent->search->fs->reader, &descent->tree->tree, &scan);
}

static struct bw_error *add_block(struct descent *descent, const struct bw_block_pointer *pointer)
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
    return descent->subvolume ? visit_inodes_below(descent, pointer, index) : NULL;
}

/* Data in the ranges. */

/* Where the bytes of a file extent are stored. */
struct piece {
    uint64_t extent, extent_length; /* the whole extent */
    uint64_t start, length; /* the part that the file uses; the whole extent if it is compressed */
    uint64_t offset, file_length; /* in the file */
    bool is_compressed;
};

static bool decode_piece(const struct bw_item *item, struct piece *piece)
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

/* Visits the part of a piece that lies in a range. */
static struct bw_error *visit_piece(struct descent *descent, const struct piece *piece,
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
    BW_TRY(bw_range_set_insert(&search->shown, start, end));
    return bw_owner_visit(search, owner);
}

static struct bw_error *visit_file_extent(struct descent *descent, const struct bw_item *item,
                                          bool *hit)
{
    struct bw_owner_search *search = descent->search;
    struct piece piece;
    if (!decode_piece(item, &piece))
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
        BW_TRY(visit_piece(descent, &piece, range, &owner));
        *hit = true;
    }
    return NULL;
}

static struct bw_error *on_leaf(void *context, const struct bw_node *leaf)
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
            BW_TRY(visit_file_extent(descent, &item, &hit));
        found |= hit;
    }
    descent->path[0] = bw_get64(header->bytenr);
    return found ? mark_path(descent, 0) : NULL;
}

/* Trees. */

static bool is_searched_block(void *context, const struct bw_block_pointer *pointer)
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
        descent->failure = add_block(descent, pointer);
    if (!descent->failure && search->reads_all)
        descent->failure = bw_block_set_insert(descent->seen, pointer->bytenr, &new);
    new |= descent->tree->is_log || bw_key_map_has(&search->marks, pointer->bytenr);
    return !descent->failure && new && (level || descent->has_files);
}

static struct bw_error *on_node(void *context, const struct bw_node *node)
{
    struct descent *descent = context;
    (void)node;
    return BW_TAKE(descent->failure);
}

static struct bw_error *on_lost_block(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    struct descent *descent = context;
    bw_fs_report_lost(descent->search->fs, pointer->bytenr, error);
    return BW_TAKE(descent->failure);
}

static struct bw_error *search_tree(struct descent *descent)
{
    struct bw_owner_search *search = descent->search;
    const struct bw_listed_tree *tree = descent->tree;
    const struct bw_scan scan = {BW_SCAN_ALL,       .wants = is_searched_block, .node = on_node,
                                 .leaf = on_leaf,   .lost = on_lost_block,      .adopt = true,
                                 .context = descent};
    descent->has_files = bw_owner_has_files(tree);
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
           (bw_owner_has_files(tree) && bw_key_map_has(&search->marks, tree->tree.root.bytenr));
}

/* Finds the data and tree blocks, and visits their owners. */
static struct bw_error *bw_owner_descend(struct bw_owner_search *search)
{
    struct bw_block_set seen = {0};
    struct descent descent = {.search = search, .seen = &seen};
    struct bw_error *error = NULL;
    for (size_t i = 0; i < search->trees.entries.count && !error; i++) {
        descent.tree = &search->trees.entries.items[i];
        if (search->hooks && !search->hooks->should_continue(search->options->context))
            break;
        if (is_searched(search, descent.tree))
            error = search_tree(&descent);
    }
    bw_key_map_free(&seen.words);
    return error;
}

const char *bw_owner_kind_name(enum bw_owner_kind kind)
{
    static const char *const names[] = {
        [BW_OWNER_DATA] = "data",      [BW_OWNER_METADATA] = "metadata",
        [BW_OWNER_BLOCK] = "block",    [BW_OWNER_HIDDEN] = "hidden",
        [BW_OWNER_FREE] = "free",      [BW_OWNER_UNUSED] = "unused",
        [BW_OWNER_OUTSIDE] = "outside"};
    return names[kind];
}

static struct bw_error *visit_lost_inode(void *context, const struct bw_lost_inodes *lost,
                                         uint64_t inode, const char *path, size_t length)
{
    const struct bw_owner_search *search = context;
    struct bw_owner owner = search->nameless.items[lost->number];
    if (!path && !owner.inode)
        return NULL;
    owner.inode = inode;
    owner.path = (struct bw_bytes){path, length};
    return search->options->visit(search->options->context, &owner);
}

/* Tree blocks. */

/* The block itself is the best source for its tree and its first key. */
static struct bw_error *read_block(const struct bw_owner_search *search,
                                   struct bw_owned_block *block, uint8_t *buffer)
{
    const struct bw_block_pointer pointer = bw_owned_block_pointer(block);
    struct bw_error *error = bw_block_read(&search->fs->reader, &pointer, buffer);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error) {
        bw_fs_report_lost(search->fs, block->bytenr, error);
        return NULL;
    }
    const struct bw_node node = bw_node_view(buffer, search->fs->reader.nodesize);
    block->tree = bw_get64(((const struct bw_disk_header *)buffer)->owner);
    block->has_key = node.item_count;
    if (block->has_key)
        block->key = node.level ? bw_node_key(&node, 0) : bw_leaf_key(&node, 0);
    return NULL;
}

static struct bw_error *visit_blocks(struct bw_owner_search *search)
{
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->fs->reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    if (search->blocks.count)
        qsort(search->blocks.items, search->blocks.count, sizeof *search->blocks.items,
              bw_compare_first);
    for (size_t i = 0; i < search->blocks.count; i++) {
        struct bw_owned_block *block = &search->blocks.items[i];
        BW_TRY(read_block(search, block, buffer));
        const struct bw_owner owner = {.kind = BW_OWNER_BLOCK,
                                       .range = block->range,
                                       .logical = block->bytenr,
                                       .length = search->fs->reader.nodesize,
                                       .extent = block->bytenr,
                                       .tree = block->tree,
                                       .level = block->level,
                                       .has_key = block->has_key,
                                       .key = block->key};
        BW_TRY(search->options->visit(search->options->context, &owner));
        BW_TRY(bw_range_set_insert(&search->shown, owner.logical, owner.logical + owner.length));
    }
    return NULL;
}

/* Unowned ranges. */

struct unowned {
    struct bw_owner_search *search;
    struct bw_block_groups *groups;
};

/* The use of an address without an extent; `*length` is cut to the range with the same use. */
static struct bw_error *name_unallocated(struct unowned *unowned, uint64_t address,
                                         uint64_t *length, enum bw_owner_kind *kind)
{
    struct bw_fs *fs = unowned->search->fs;
    struct bw_block_group_info group;
    struct bw_mapping mapping = {.length = *length};
    BW_AUTO_ERROR struct bw_error *unmapped = bw_fs_map(fs, address, *length, 1, &mapping);
    if (unmapped && unmapped->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(unmapped);
    *kind = unmapped && !mapping.copies ? BW_OWNER_OUTSIDE : BW_OWNER_FREE;
    *length = mapping.length && mapping.length < *length ? mapping.length : *length;
    if (*kind == BW_OWNER_OUTSIDE)
        return NULL;
    BW_AUTO_ERROR struct bw_error *unknown = bw_block_groups_find(unowned->groups, address, &group);
    if (unknown)
        return unknown->code == BW_ERROR_NO_MEMORY ? BW_TAKE(unknown) : NULL;
    *kind = group.used ? BW_OWNER_FREE : BW_OWNER_UNUSED;
    const uint64_t left = group.logical + group.length - address;
    *length = address >= group.logical && left && left < *length ? left : *length;
    return NULL;
}

/* Visits the previous unowned piece, unless it can be joined with this one of the same kind. */
static struct bw_error *visit_unowned(struct unowned *unowned, struct bw_owner *before,
                                      const struct bw_owner *piece)
{
    const struct bw_owner_options *options = unowned->search->options;
    if (before->length && piece->length && before->kind == piece->kind &&
        before->logical + before->length == piece->logical) {
        before->length += piece->length;
        return NULL;
    }
    struct bw_error *error = before->length ? options->visit(options->context, before) : NULL;
    *before = *piece;
    return error;
}

static struct bw_error *visit_unowned_in_range(struct unowned *unowned,
                                               const struct bw_query_range *range)
{
    const struct bw_owner_search *search = unowned->search;
    const uint64_t end = range->start + range->length;
    struct bw_owner before = {0};
    for (uint64_t at = range->start, next; at < end; at = next) {
        next = end;
        if (bw_range_set_has(&search->shown, at, &next))
            continue;
        struct bw_owner piece = {.kind = BW_OWNER_HIDDEN, .range = range->number, .logical = at};
        const bool allocated = bw_range_set_has(&search->allocated, at, &next);
        piece.length = next - at;
        if (!allocated)
            BW_TRY(name_unallocated(unowned, at, &piece.length, &piece.kind));
        next = at + piece.length;
        BW_TRY(visit_unowned(unowned, &before, &piece));
    }
    return visit_unowned(unowned, &before, &(struct bw_owner){0});
}

static struct bw_error *visit_all_unowned(struct bw_owner_search *search)
{
    struct unowned unowned = {search, NULL};
    bw_range_set_join(&search->shown);
    bw_range_set_join(&search->allocated);
    struct bw_error *error = bw_block_groups_open(search->fs, &unowned.groups);
    for (size_t i = 0; i < search->ranges.ranges.count && !error; i++)
        error = visit_unowned_in_range(&unowned, &search->ranges.ranges.items[i]);
    bw_block_groups_close(unowned.groups);
    return error;
}

/* The frame. */

static struct bw_error *add_ranges(struct bw_owner_search *search)
{
    const struct bw_owner_options *options = search->options;
    for (size_t i = 0; i < options->count; i++) {
        const struct bw_address_range *range = &options->ranges[i];
        if (!range->length || range->length > UINT64_MAX - range->logical)
            return bw_error_create(BW_ERROR_USAGE, "invalid range: %" PRIu64 "+%" PRIu64,
                                   range->logical, range->length);
        if (!bw_query_ranges_add(&search->ranges, range->logical, range->length, i))
            return bw_error_no_memory();
    }
    bw_query_ranges_sort(&search->ranges);
    return NULL;
}

/* With a log that was replayed, trees have blocks that the extent tree does not know. */
static bool has_references(const struct bw_fs *fs)
{
    return fs->extent_tree.id && !fs->memory.blocks.count &&
           !(fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
}

/* Forgets the marks from a damaged extent tree. */
static void forget_marks(struct bw_owner_search *search)
{
    bw_key_map_clear(&search->marks);
    bw_key_map_clear(&search->block_numbers);
    search->allocated.ranges.count = search->allocated.joined = search->blocks.count = 0;
}

static struct bw_error *find_all(struct bw_owner_search *search)
{
    bool trusted = false;
    BW_TRY(add_ranges(search));
    BW_TRY(bw_tree_list_load(search->fs, &search->trees));
    if (!search->hooks && !search->options->subvolume && !search->fs->is_past)
        BW_TRY(bw_tree_list_load_log(search->fs, &search->trees));
    for (size_t i = 0; i < search->trees.entries.count; i++)
        BW_TRY(bw_key_map_put(&search->tree_numbers, search->trees.entries.items[i].tree.id,
                              (uint32_t)i));
    if (!search->options->no_extent_tree && has_references(search->fs))
        BW_TRY(bw_owner_follow_references(search, &trusted));
    search->reads_all = !trusted;
    if (!trusted)
        forget_marks(search);
    BW_TRY(bw_owner_descend(search));
    if (!search->options->no_paths)
        BW_TRY(bw_lost_inodes_name(search->fs, &search->paths, search->lost.items,
                                   search->lost.count, visit_lost_inode, search));
    if (search->options->subvolume || search->hooks)
        return NULL;
    BW_TRY(visit_blocks(search));
    return visit_all_unowned(search);
}

struct bw_error *bw_owners_find(struct bw_fs *fs, const struct bw_owner_options *options)
{
    return bw_owners_search(fs, options, NULL);
}

struct bw_error *bw_owners_search(struct bw_fs *fs, const struct bw_owner_options *given,
                                  const struct bw_owner_hooks *hooks)
{
    struct bw_owner_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_owner_search search = {.fs = fs, .options = &options, .hooks = hooks, .paths.fs = fs};
    struct bw_error *error = find_all(&search);
    bw_listed_trees_free(&search.trees.entries);
    bw_query_range_list_free(&search.ranges.ranges);
    bw_range_set_free(&search.allocated);
    bw_range_set_free(&search.shown);
    bw_owned_blocks_free(&search.blocks);
    bw_lost_inode_lists_free(&search.lost);
    bw_owner_list_free(&search.nameless);
    bw_key_map_free(&search.tree_numbers);
    bw_key_map_free(&search.marks);
    bw_key_map_free(&search.block_numbers);
    bw_inode_paths_free(&search.paths);
    return error;
}
