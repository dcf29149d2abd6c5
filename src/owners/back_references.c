/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the extents in the ranges, through their references in the extent tree, to the leaves that
 * refer to them, and from each block to the nodes above it, up to the roots. A reference names the
 * block above (SHARED_*), or the tree in which that is found by a key. The references of each block
 * are followed once, so that even crossed references end.
 *
 * References only decide which blocks the search reads. At the first doubt it does without them: an
 * item that is lost or missing, a reference that leads nowhere.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "data/references.h"
#include "ondisk/disk.h"
#include "owners/owner_search.h"

enum {
    /* The minimum that one item of a compressed extent can represent. */
    LONGEST_COMPRESSED = 1 << 20,
    /* The cost of one extent, in blocks of a pass over all trees. */
    BLOCKS_PER_EXTENT = 32,
    ALWAYS_FOLLOWED = 64,
};

struct follower {
    struct bw_owner_search *search;
    struct bw_numbers steps; /* marked blocks whose parents are not marked yet */
    uint64_t extents, most_extents;
    bool doubtful;
    struct bw_block_scan scan;
    uint64_t path[BW_MAX_LEVEL]; /* the blocks that the scan has reached, by level */
    uint8_t *buffer;             /* of a block, for its first key */
};

/* Marks a block above a search target; the search continues from there, unless it is a root. */
static struct bw_error *mark_block(struct follower *follower, uint64_t bytenr, bool is_root)
{
    bool new;
    if (!bw_owner_mark(follower->search, bytenr, &new))
        return bw_error_no_memory();
    if (!new || is_root)
        return NULL;
    return bw_numbers_push(&follower->steps, bytenr);
}

static struct bw_error *mark_path(struct follower *follower, unsigned lowest)
{
    const uint8_t top = follower->scan.tree.root.level;
    for (unsigned level = lowest; level <= top; level++)
        BW_TRY(mark_block(follower, follower->path[level], level == top));
    return NULL;
}

/* Descents. */

static void begin_scan(struct follower *follower, const struct bw_listed_tree *tree,
                       struct bw_key first, struct bw_key last)
{
    follower->scan.first = first;
    follower->scan.last = last;
    bw_block_scan_begin(&follower->scan, &follower->search->fs->reader, &tree->tree);
}

/* Advances to the next leaf or pointer, which becomes part of the path; false at the end. */
static bool next_in_path(struct follower *follower)
{
    const struct bw_block_scan *scan = &follower->scan;
    while (bw_block_scan_next(&follower->scan)) {
        follower->doubtful |= scan->step == BW_SCAN_LOST;
        follower->path[scan->pointer.expectation.level] = scan->pointer.bytenr;
        if (scan->step != BW_SCAN_LOST)
            return true;
    }
    return false;
}

static bool refers_to(const struct bw_node *leaf, uint64_t extent)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        const struct bw_disk_file_extent *disk = (const void *)item.data;
        if (item.key.type == BW_EXTENT_DATA && item.size >= sizeof *disk &&
            disk->type != BW_FILE_EXTENT_INLINE && bw_get64(disk->disk_bytenr) == extent)
            return true;
    }
    return false;
}

/* The leaves of a tree that refer to an extent. The reference says where the extent would begin in
 * the file, which may be before its beginning. */
static struct bw_error *follow_data(struct follower *follower, const struct bw_reference *reference)
{
    const struct bw_listed_tree *tree = bw_owner_tree(follower->search, reference->source);
    const uint64_t begin = reference->offset >> 63 ? 0 : reference->offset;
    const uint64_t room =
        reference->length > LONGEST_COMPRESSED ? reference->length : LONGEST_COMPRESSED;
    if (!tree)
        return NULL;
    bool is_found = false;
    begin_scan(follower, tree, (struct bw_key){reference->inode, BW_EXTENT_DATA, begin},
               (struct bw_key){reference->inode, BW_EXTENT_DATA, reference->offset + room});
    while (next_in_path(follower)) {
        follower->scan.selected = true;
        if (follower->scan.step != BW_SCAN_LEAF ||
            !refers_to(&follower->scan.node, reference->bytenr))
            continue;
        is_found = true;
        BW_TRY(mark_path(follower, 0));
    }
    follower->doubtful |= !is_found;
    return bw_block_scan_end(&follower->scan);
}

/* The node above a block in a tree. */
static struct bw_error *follow_block(struct follower *follower, const struct bw_owned_block *block,
                                     uint64_t id)
{
    const struct bw_tree_reader *reader = &follower->search->fs->reader;
    const struct bw_listed_tree *tree = bw_owner_tree(follower->search, id);
    if (!tree || tree->tree.root.level <= block->level)
        return NULL;
    if (tree->tree.root.level == block->level + 1)
        return mark_block(follower, tree->tree.root.bytenr, true);

    /* The first key of the block; all keys if it cannot be read. */
    struct bw_key first = {0}, last = BW_KEY_MAX;
    if (!follower->buffer)
        follower->buffer = bw_block_buffer(reader, 1);
    if (!follower->buffer)
        return bw_error_no_memory();
    const struct bw_block_pointer pointer = bw_owned_block_pointer(block);
    struct bw_error *error = bw_block_read(reader, &pointer, follower->buffer);
    const struct bw_node node = bw_node_view(follower->buffer, reader->nodesize);
    if (!error && node.item_count)
        first = last = bw_first_key(&node);
    BW_TRY(bw_error_tolerate(error));

    /* Find the path to the block. The block itself need not be read. */
    bool is_found = false;
    begin_scan(follower, tree, first, last);
    while (!is_found && next_in_path(follower)) {
        const uint8_t level = follower->scan.pointer.expectation.level;
        is_found = level == block->level && follower->scan.pointer.bytenr == block->bytenr;
        follower->scan.selected = level > block->level;
    }
    BW_TRY(bw_block_scan_end(&follower->scan));
    follower->doubtful |= !is_found;
    return is_found ? mark_path(follower, block->level + 1u) : NULL;
}

/* Extent items. */

/* Data have other references than a block. */
static struct bw_error *follow_reference(struct follower *follower,
                                         const struct bw_owned_block *block,
                                         const struct bw_reference *reference)
{
    switch (reference->kind) {
    case BW_TREE_BLOCK_REF:
        return block ? follow_block(follower, block, reference->source) : NULL;
    case BW_SHARED_BLOCK_REF:
        return block ? mark_block(follower, reference->source, false) : NULL;
    case BW_EXTENT_DATA_REF:
        return block ? NULL : follow_data(follower, reference);
    default:
        return block ? NULL : mark_block(follower, reference->source, false);
    }
}

/* Follows the references of the extent items in a range of keys, and of items with one reference.
 * In a range that is searched, tree blocks are only noted: their references are followed when it is
 * their turn. `*any` is false if there is no extent item. */
static struct bw_error *follow_items(struct follower *follower, struct bw_key first,
                                     struct bw_key last, bool in_range, bool *any)
{
    struct bw_owner_search *search = follower->search;
    struct bw_fs *fs = search->fs;
    struct bw_extent_entry extent = {0}; /* the last one */
    struct bw_owned_block block = {0};   /* if it is one */
    bool wanted = false;                 /* its references are followed */
    struct bw_error *error = NULL;
    struct bw_item_range range;
    bw_item_range_begin(&range, &fs->reader, &fs->extent_tree, first, last);
    while (!error && !follower->doubtful && bw_item_range_next(&range)) {
        struct bw_reference reference = {0};
        follower->doubtful |= range.error != NULL;
        if (range.error) {
            bw_fs_report_range(fs, &range);
            continue;
        }
        if (!bw_extent_entry_decode(fs, &range.item, &extent)) {
            if (wanted && range.item.key.objectid == extent.bytenr &&
                bw_extent_keyed(&extent, &range.item, &reference))
                error = follow_reference(follower, extent.is_block ? &block : NULL, &reference);
            continue;
        }

        /* A block of another tree than a subvolume has one reference, to that tree. */
        struct bw_extent_entry copy = extent;
        const bool of_tree =
            bw_extent_reference_step(&copy, &reference) && reference.kind == BW_TREE_BLOCK_REF;
        block = (struct bw_owned_block){.bytenr = extent.bytenr,
                                        .generation = extent.generation,
                                        .tree = of_tree ? reference.source : 0,
                                        .level = extent.level};
        size_t index, next = 0;
        wanted =
            !in_range || bw_query_ranges_next(&search->ranges, &next, extent.bytenr, extent.length);
        if (in_range && wanted) {
            follower->doubtful |= ++follower->extents > follower->most_extents ||
                                  extent.length > UINT64_MAX - extent.bytenr;
            if (!follower->doubtful)
                error = bw_owner_allocate(search, extent.bytenr, extent.length);
            if (!error && !follower->doubtful && extent.is_block) {
                wanted = false;
                error = bw_owner_add_block(search, &block, &index);
                if (!error)
                    error = mark_block(follower, extent.bytenr, false);
            }
        }
        while (!error && wanted && bw_extent_reference_step(&extent, &reference))
            error = follow_reference(follower, extent.is_block ? &block : NULL, &reference);
        follower->doubtful |= bw_cursor_bad(&extent.inside);
    }
    *any = extent.bytenr;
    return bw_item_range_end(&range, error);
}

static void follower_free(struct follower *follower)
{
    bw_numbers_free(&follower->steps);
    free(follower->buffer);
    bw_block_scan_free(&follower->scan);
}

/* Follows the extents in the ranges, and then the extents of all marked blocks. */
struct bw_error *bw_owner_follow_references(struct bw_owner_search *search, bool *trusted)
{
    BW_SCOPED(follower) struct follower follower = {.search = search, .scan.pointers = true};
    uint64_t metadata = 0;
    bool any;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(search->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++)
        if (chunks.items[i].type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM))
            metadata += chunks.items[i].length;
    follower.most_extents =
        ALWAYS_FOLLOWED + metadata / search->fs->superblock.nodesize / BLOCKS_PER_EXTENT;
    follower.doubtful = search->ranges.ranges.count > follower.most_extents;
    for (size_t i = 0; i < search->ranges.ranges.count && !follower.doubtful; i++) {
        const struct bw_query_range *range = &search->ranges.ranges.items[i];
        const struct bw_key until = {range->start, UINT8_MAX, UINT64_MAX};
        struct bw_key first = {range->start, 0, 0};

        /* The extent that holds the first address may begin before it: with the last item until
         * there. */
        BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
        bw_leaf_finder_init(&finder, &search->fs->reader, &search->fs->extent_tree);
        BW_TRY(bw_fs_find_leaf(search->fs, &finder, &until));
        const int64_t slot = finder.lost ? -1 : bw_leaf_last_until(&finder, &until);
        follower.doubtful |= finder.lost;
        if (slot >= 0)
            first.objectid = bw_leaf_key(&finder.leaf, (uint32_t)slot).objectid;
        BW_TRY(follow_items(
            &follower, first,
            (struct bw_key){range->start + range->length - 1, UINT8_MAX, UINT64_MAX}, true, &any));
    }
    while (follower.steps.count && !follower.doubtful) {
        const uint64_t bytenr = follower.steps.items[--follower.steps.count];
        BW_TRY(follow_items(&follower, (struct bw_key){bytenr, BW_EXTENT_ITEM, 0},
                            (struct bw_key){bytenr, BW_SHARED_DATA_REF, UINT64_MAX}, false, &any));
        follower.doubtful |= !any;
    }
    *trusted = !follower.doubtful;
    return NULL;
}
