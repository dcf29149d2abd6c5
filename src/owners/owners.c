/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who uses addresses.
 *
 * 1. back_references.c follows the extent tree and marks all blocks that lead to the ranges. If
 *    that tree cannot be relied on, there are no marks.
 * 2. All trees are read in the order of their ids, but only marked blocks. Without marks all blocks
 *    are read, each for the first tree that leads to it; where something is found, the blocks above
 *    are marked, so that it is found for the other trees as well. This step visits the owners of
 *    data and, for a tree block of a subvolume, the inodes with items in or below it.
 * 3. Inodes that lost blocks may have held are named from the directories, lost_inodes.c.
 * 4. The tree blocks themselves are visited, and then the parts of the ranges that nothing so far
 *    has shown: hidden parts of extents, and space without an extent.
 *
 * `allocated` and `shown` remember what step 2 found, for step 4.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "btrfs-walk/space.h"
#include "ondisk/disk.h"
#include "ondisk/disk_items.h"
#include "owners/owner_search.h"

/* A tree, and the blocks from its root to the present one, by level. */
struct descent {
    struct bw_owner_search *search;
    const struct bw_listed_tree *tree;
    const struct bw_subvolume *subvolume; /* NULL: it is none */
    uint64_t path[BW_MAX_LEVEL];
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

/* Adds a tree block in a range, and visits the inodes below it. */
static struct bw_error *add_block(struct descent *descent, const struct bw_block_pointer *pointer)
{
    struct bw_owner_search *search = descent->search;
    const struct bw_owner_hooks *hooks = search->hooks;
    const struct bw_owner_options *options = search->options;
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
    if (!descent->subvolume)
        return NULL;

    /* The block may have been added before, for another tree. */
    const struct bw_owned_block *added = &search->blocks.items[index];
    struct bw_owner owner = {.kind = BW_OWNER_METADATA,
                             .range = added->range,
                             .logical = added->bytenr,
                             .length = search->fs->reader.nodesize,
                             .extent = added->bytenr,
                             .tree = descent->tree->tree.id,
                             .subvolume = descent->subvolume,
                             .level = added->level,
                             .has_key = added->has_key,
                             .key = added->key};
    if (hooks && !hooks->accepts(options->context, &owner))
        return options->visit(options->context, &owner);
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {.first = expectation->first_key,
                                 .last = bw_key_before(expectation->end_key),
                                 .adopt = true};
    uint64_t last_inode = 0;
    bw_block_scan_begin(&scan, &search->fs->reader, &descent->tree->tree);
    while (bw_block_scan_next(&scan)) {
        /* The items of an inode are next to each other. */
        for (uint32_t slot = 0; slot < scan.node.item_count; slot++) {
            const uint64_t inode = bw_leaf_key(&scan.node, slot).objectid;
            if (inode == last_inode || inode < BW_SUBVOLUME_ROOT_INODE || inode > BW_LAST_SUBVOLUME)
                continue;
            last_inode = owner.inode = inode;
            BW_TRY(bw_owner_visit(search, &owner));
        }
        if (!scan.error)
            continue;

        /* Inodes that may have been below a block that is lost. */
        const struct bw_key *first = &scan.pointer.expectation.first_key,
                            *end = &scan.pointer.expectation.end_key;
        const uint64_t last = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
        bw_fs_report_lost(search->fs, scan.pointer.bytenr, BW_TAKE(scan.error));
        owner.inode = 0;
        BW_TRY(bw_owner_postpone(search, &owner, bw_max(first->objectid, BW_SUBVOLUME_ROOT_INODE),
                                 bw_min(last, BW_LAST_SUBVOLUME)));
    }
    return bw_block_scan_end(&scan);
}

/* Data in the ranges. */

/* Visits the parts of a file extent that lie in the ranges; `*hit` is set if its extent does. */
static struct bw_error *visit_file_extent(struct descent *descent, const struct bw_item *item,
                                          bool *hit)
{
    struct bw_owner_search *search = descent->search;
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    const bool whole = search->options->whole_extents;
    if (item->size < sizeof *disk || disk->type == BW_FILE_EXTENT_INLINE)
        return NULL;
    const uint64_t extent = bw_get64(disk->disk_bytenr), stored = bw_get64(disk->disk_num_bytes);
    const uint64_t into = bw_get64(disk->offset), shown = bw_get64(disk->num_bytes);
    if (!extent || !stored || stored > UINT64_MAX - extent ||
        (!disk->compression && (into > stored || shown > stored - into)))
        return NULL;

    /* The part that the file uses. It is the whole extent if that is compressed. */
    const bool is_all = whole || disk->compression;
    const uint64_t used = is_all ? extent : extent + into;
    const uint64_t used_length = is_all ? stored : shown;
    struct bw_owner owner = {.kind = BW_OWNER_DATA,
                             .extent = extent,
                             .tree = descent->tree->tree.id,
                             .inode = item->key.objectid,
                             .subvolume = descent->subvolume};
    const struct bw_query_range *range;
    for (size_t next = 0; (range = bw_query_ranges_next(&search->ranges, &next, extent, stored));) {
        if (!*hit)
            BW_TRY(bw_owner_allocate(search, extent, stored));
        *hit = true;
        const uint64_t start = bw_max(range->start, used),
                       end = bw_min(range->start + range->length, used + used_length);
        if (start >= end)
            continue;
        owner.range = range->number;
        owner.logical = start;
        owner.length = end - start;
        /* A part of uncompressed data is a part of the file. */
        owner.offset = is_all ? item->key.offset : item->key.offset + (start - used);
        owner.file_length = is_all ? shown : owner.length;
        BW_TRY(bw_range_set_insert(&search->shown, start, end));
        BW_TRY(bw_owner_visit(search, &owner));
    }
    return NULL;
}

/* Reads the trees, and visits the owners of data. */
static struct bw_error *descend(struct bw_owner_search *search)
{
    const struct bw_subvolume *only = search->options->subvolume;
    struct descent descent = {.search = search};
    BW_SCOPED(bw_block_set) struct bw_block_set seen = {0};
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .pointers = true};
    for (size_t i = 0; i < search->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &search->trees.entries.items[i];
        if (search->hooks && !search->hooks->should_continue(search->options->context))
            break;
        if (only && tree->tree.id != bw_subvolume_id(only))
            continue;
        /* Marks lead to files only: blocks of other trees are known from the extent tree then. */
        const bool has_files = bw_owner_has_files(tree);
        if (!search->reads_all && !tree->is_log &&
            !(has_files && bw_key_map_has(&search->marks, tree->tree.root.bytenr)))
            continue;
        descent.tree = tree;
        descent.subvolume =
            tree->is_subvolume ? bw_subvolume_by_id(search->fs, tree->tree.id) : NULL;
        bw_block_scan_begin(&scan, &search->fs->reader, &tree->tree);
        while (bw_block_scan_next(&scan)) {
            const uint64_t bytenr = scan.pointer.bytenr;
            const uint8_t level = scan.pointer.expectation.level;
            struct bw_item item;
            bool is_new = false, is_hit = false;
            size_t next = 0;
            descent.path[level] = bytenr;
            if (scan.step == BW_SCAN_LOST)
                bw_fs_report_lost(search->fs, bytenr, BW_TAKE(scan.error));
            if (scan.step == BW_SCAN_LEAF) {
                for (uint32_t slot = 0; has_files && bw_leaf_next(&scan.node, &slot, &item);) {
                    bool hit = false;
                    if (item.key.type == BW_EXTENT_DATA)
                        BW_TRY(visit_file_extent(&descent, &item, &hit));
                    is_hit |= hit;
                }
                if (is_hit)
                    BW_TRY(mark_path(&descent, 0));
            }
            if (scan.step != BW_SCAN_POINTER || bw_tree_has_dropped(tree, &scan.pointer))
                continue;
            if (bw_query_ranges_next(&search->ranges, &next, bytenr, search->fs->reader.nodesize))
                BW_TRY(add_block(&descent, &scan.pointer));
            if (search->reads_all)
                BW_TRY(bw_block_set_insert(&seen, bytenr, &is_new));
            is_new |= tree->is_log || bw_key_map_has(&search->marks, bytenr);
            scan.selected = is_new && (level || has_files);
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    return NULL;
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
                                         uint64_t inode, const struct bw_bytes *path)
{
    const struct bw_owner_search *search = context;
    struct bw_owner owner = search->nameless.items[lost->number];
    if (!path->data && !owner.inode)
        return NULL;
    owner.inode = inode;
    owner.path = *path;
    return search->options->visit(search->options->context, &owner);
}

/* Tree blocks. */

static struct bw_error *visit_blocks(struct bw_owner_search *search)
{
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->fs->reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    bw_owned_blocks_sort(&search->blocks, bw_compare_first);
    for (size_t i = 0; i < search->blocks.count; i++) {
        struct bw_owned_block *block = &search->blocks.items[i];

        /* The block itself is the best source for its tree and its first key. */
        const struct bw_block_pointer pointer = bw_owned_block_pointer(block);
        struct bw_error *error = bw_block_read(&search->fs->reader, &pointer, buffer);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error) {
            bw_fs_report_lost(search->fs, block->bytenr, error);
        } else {
            const struct bw_node node = bw_node_view(buffer, search->fs->reader.nodesize);
            block->tree = bw_get64(((const struct bw_disk_header *)buffer)->owner);
            block->has_key = node.item_count;
            if (block->has_key)
                block->key = bw_first_key(&node);
        }

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

/* The use of an address without an extent; `*length` is cut to the range with the same use. */
static struct bw_error *name_unallocated(struct bw_fs *fs, struct bw_block_groups *groups,
                                         uint64_t address, uint64_t *length,
                                         enum bw_owner_kind *kind)
{
    struct bw_block_group_info group;
    struct bw_mapping mapping = {.length = *length};
    BW_AUTO_ERROR struct bw_error *unmapped = bw_fs_map(fs, address, *length, 1, &mapping);
    if (unmapped && unmapped->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(unmapped);
    *kind = unmapped && !mapping.copies ? BW_OWNER_OUTSIDE : BW_OWNER_FREE;
    *length = mapping.length && mapping.length < *length ? mapping.length : *length;
    if (*kind == BW_OWNER_OUTSIDE)
        return NULL;
    BW_AUTO_ERROR struct bw_error *unknown = bw_block_groups_find(groups, address, &group);
    if (unknown)
        return bw_error_tolerate(BW_TAKE(unknown));
    *kind = group.used ? BW_OWNER_FREE : BW_OWNER_UNUSED;
    const uint64_t left = group.logical + group.length - address;
    *length = address >= group.logical && left && left < *length ? left : *length;
    return NULL;
}

/* Visits the previous unowned piece, unless it can be joined with this one of the same kind. */
static struct bw_error *visit_unowned(const struct bw_owner_options *options,
                                      struct bw_owner *before, const struct bw_owner *piece)
{
    if (before->length && piece->length && before->kind == piece->kind &&
        before->logical + before->length == piece->logical) {
        before->length += piece->length;
        return NULL;
    }
    struct bw_error *error = before->length ? options->visit(options->context, before) : NULL;
    *before = *piece;
    return error;
}

/* Visits what no owner has shown: the rest of extents, and ranges without any. */
static struct bw_error *visit_all_unowned(struct bw_owner_search *search)
{
    struct bw_block_groups *groups = NULL;
    bw_range_set_join(&search->shown);
    bw_range_set_join(&search->allocated);
    struct bw_error *error = bw_block_groups_open(search->fs, &groups);
    for (size_t i = 0; i < search->ranges.ranges.count && !error; i++) {
        const struct bw_query_range *range = &search->ranges.ranges.items[i];
        const uint64_t end = range->start + range->length;
        struct bw_owner before = {0};
        for (uint64_t at = range->start, next; at < end && !error; at = next) {
            next = end;
            if (bw_range_set_has(&search->shown, at, &next))
                continue;
            struct bw_owner piece = {
                .kind = BW_OWNER_HIDDEN, .range = range->number, .logical = at};
            const bool allocated = bw_range_set_has(&search->allocated, at, &next);
            piece.length = next - at;
            if (!allocated)
                error = name_unallocated(search->fs, groups, at, &piece.length, &piece.kind);
            next = at + piece.length;
            if (!error)
                error = visit_unowned(search->options, &before, &piece);
        }
        if (!error)
            error = visit_unowned(search->options, &before, &(struct bw_owner){0});
    }
    bw_block_groups_close(groups);
    return error;
}

struct bw_error *bw_owners_find(struct bw_fs *fs, const struct bw_owner_options *options)
{
    return bw_owners_search(fs, options, NULL);
}

static void bw_owner_search_free(struct bw_owner_search *search)
{
    bw_listed_trees_free(&search->trees.entries);
    bw_query_range_list_free(&search->ranges.ranges);
    bw_range_set_free(&search->allocated);
    bw_range_set_free(&search->shown);
    bw_owned_blocks_free(&search->blocks);
    bw_lost_inode_lists_free(&search->lost);
    bw_owner_list_free(&search->nameless);
    bw_key_map_free(&search->tree_numbers);
    bw_key_map_free(&search->marks);
    bw_key_map_free(&search->block_numbers);
    bw_inode_paths_free(&search->paths);
}

/* The four steps of the search. */
struct bw_error *bw_owners_search(struct bw_fs *fs, const struct bw_owner_options *given,
                                  const struct bw_owner_hooks *hooks)
{
    struct bw_owner_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    BW_SCOPED(bw_owner_search)
    struct bw_owner_search search = {.fs = fs, .options = &options, .hooks = hooks, .paths.fs = fs};
    for (size_t i = 0; i < options.count; i++) {
        const struct bw_address_range *range = &options.ranges[i];
        if (!range->length || range->length > UINT64_MAX - range->logical)
            return bw_error_create(BW_ERROR_USAGE, "invalid range: %" PRIu64 "+%" PRIu64,
                                   range->logical, range->length);
        if (!bw_query_ranges_add(&search.ranges, range->logical, range->length, i))
            return bw_error_no_memory();
    }
    bw_query_ranges_sort(&search.ranges);

    BW_TRY(bw_tree_list_load(search.fs, &search.trees));
    if (!search.hooks && !options.subvolume && !fs->is_past)
        BW_TRY(bw_tree_list_load_log(search.fs, &search.trees));
    for (size_t i = 0; i < search.trees.entries.count; i++)
        BW_TRY(bw_key_map_put(&search.tree_numbers, search.trees.entries.items[i].tree.id,
                              (uint32_t)i));

    /* With a log that was replayed, trees have blocks that the extent tree does not know. Marks
     * that come from a damaged extent tree are forgotten. */
    bool trusted = false;
    if (!options.no_extent_tree && fs->extent_tree.id && !fs->memory.blocks.count &&
        !(fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2))
        BW_TRY(bw_owner_follow_references(&search, &trusted));
    search.reads_all = !trusted;
    if (!trusted) {
        bw_key_map_clear(&search.marks);
        bw_key_map_clear(&search.block_numbers);
        search.allocated.ranges.count = search.allocated.joined = search.blocks.count = 0;
    }

    BW_TRY(descend(&search));
    if (!options.no_paths)
        BW_TRY(bw_lost_inodes_name(search.fs, &search.paths, search.lost.items, search.lost.count,
                                   visit_lost_inode, &search));
    if (options.subvolume || search.hooks)
        return NULL;
    BW_TRY(visit_blocks(&search));
    return visit_all_unowned(&search);
}
