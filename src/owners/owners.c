/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asking for owners: the ranges, the two ways to search, and what is said after the files: the tree
 * blocks, and what belongs to nothing.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btrfs-walk/space.h"
#include "ondisk/disk.h"
#include "owners/search.h"

const char *bw_owner_kind_name(enum bw_owner_kind kind)
{
    static const char *const names[] = {
        [BW_OWNER_DATA] = "data",      [BW_OWNER_METADATA] = "metadata",
        [BW_OWNER_BLOCK] = "block",    [BW_OWNER_HIDDEN] = "hidden",
        [BW_OWNER_FREE] = "free",      [BW_OWNER_UNUSED] = "unused",
        [BW_OWNER_OUTSIDE] = "outside"};
    return names[kind];
}

/* What the searches find. */

struct bw_error *bw_owner_allocate(struct bw_owner_search *search, uint64_t start, uint64_t length)
{
    return bw_covered_add(&search->allocated, start, start + length) ? NULL : bw_error_no_memory();
}

struct bw_error *bw_owner_add_block(struct bw_owner_search *search,
                                    const struct bw_owned_block *block, size_t *index)
{
    const uint32_t number = bw_map_get(&search->block_numbers, block->bytenr);
    size_t next = 0;
    *index = number;
    if (number == UINT32_MAX) {
        *index = search->block_count;
        if (!BW_ARRAY_RESERVE(search->blocks, search->block_count, search->block_capacity) ||
            *index >= UINT32_MAX ||
            !bw_map_put(&search->block_numbers, block->bytenr, (uint32_t)*index))
            return bw_error_no_memory();
        search->blocks[search->block_count++] = *block;
    }
    struct bw_owned_block *known = &search->blocks[*index];
    const struct bw_query_range *range =
        bw_query_ranges_next(&search->ranges, &next, block->bytenr, search->fs->reader.nodesize);
    known->range = range ? range->number : 0;
    if (!known->has_key && block->has_key) {
        known->has_key = true;
        known->key = block->key;
    }
    known->tree = known->tree ? known->tree : block->tree;
    return NULL;
}

/* An owner that is handed out once for each path. */
struct giving {
    const struct bw_owner_options *options;
    struct bw_owner *owner;
    bool given;
};

static struct bw_error *give_path(void *context, const char *path, size_t length)
{
    struct giving *giving = context;
    giving->given = true;
    giving->owner->path = (struct bw_bytes){path, length};
    return giving->options->take(giving->options->context, giving->owner);
}

/* Names may be lost only if something is. */
static bool may_have_lost_names(const struct bw_fs *fs, const struct bw_owner *owner)
{
    return fs->lost.count && owner->subvolume && !owner->subvolume->deleted;
}

struct bw_error *bw_owner_give(struct bw_owner_search *search, struct bw_owner *owner)
{
    const struct bw_owner_options *options = search->options;
    struct giving giving = {options, owner, false};
    const bool wanted = owner->subvolume && !options->no_paths &&
                        (!search->hooks || search->hooks->wants(options->context, owner));
    if (wanted)
        BW_TRY(bw_inode_paths_list(&search->paths, owner->subvolume, owner->inode, give_path,
                                   &giving));
    owner->path = (struct bw_bytes){0};
    if (giving.given)
        return NULL;
    return wanted && may_have_lost_names(search->fs, owner)
               ? bw_owner_postpone(search, owner, owner->inode, owner->inode)
               : options->take(options->context, owner);
}

struct bw_error *bw_owner_postpone(struct bw_owner_search *search, const struct bw_owner *owner,
                                   uint64_t first, uint64_t last)
{
    const size_t count = search->lost_count;
    if (first > last)
        return NULL;
    if (!BW_ARRAY_RESERVE(search->lost, count, search->lost_capacity) ||
        !BW_ARRAY_RESERVE(search->nameless, count, search->nameless_capacity))
        return bw_error_no_memory();
    search->lost[count] = (struct bw_lost_inodes){owner->subvolume, first, last, count};
    search->nameless[count] = *owner;
    search->lost_count++;
    return NULL;
}

static struct bw_error *give_lost(void *context, const struct bw_lost_inodes *lost, uint64_t inode,
                                  const char *path, size_t length)
{
    const struct bw_owner_search *search = context;
    struct bw_owner owner = search->nameless[lost->number];
    if (!path && !owner.inode)
        return NULL;
    owner.inode = inode;
    owner.path = (struct bw_bytes){path, length};
    return search->options->take(search->options->context, &owner);
}

/* Tree blocks. */

/* The block itself knows best which tree it was written for, and its first key. */
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

static int by_address(const void *first, const void *second)
{
    const struct bw_owned_block *a = first, *b = second;
    return a->bytenr < b->bytenr ? -1 : a->bytenr > b->bytenr;
}

static struct bw_error *give_blocks(struct bw_owner_search *search)
{
    BW_AUTO_FREE uint8_t *buffer = bw_block_buffer(&search->fs->reader, 1);
    if (!buffer)
        return bw_error_no_memory();
    if (search->block_count)
        qsort(search->blocks, search->block_count, sizeof *search->blocks, by_address);
    for (size_t i = 0; i < search->block_count; i++) {
        struct bw_owned_block *block = &search->blocks[i];
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
        BW_TRY(search->options->take(search->options->context, &owner));
        if (!bw_covered_add(&search->shown, owner.logical, owner.logical + owner.length))
            return bw_error_no_memory();
    }
    return NULL;
}

/* What belongs to nothing. */

struct rest {
    struct bw_owner_search *search;
    struct bw_block_groups *groups;
};

/* What an address without an extent is; `*length` is cut to how far that holds. */
static struct bw_error *name_unallocated(struct rest *rest, uint64_t address, uint64_t *length,
                                         enum bw_owner_kind *kind)
{
    struct bw_fs *fs = rest->search->fs;
    struct bw_block_group_info group;
    struct bw_mapping mapping = {.length = *length};
    BW_AUTO_ERROR struct bw_error *unmapped = bw_fs_map(fs, address, *length, 1, &mapping);
    if (unmapped && unmapped->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(unmapped);
    *kind = unmapped && !mapping.copies ? BW_OWNER_OUTSIDE : BW_OWNER_FREE;
    *length = mapping.length && mapping.length < *length ? mapping.length : *length;
    if (*kind == BW_OWNER_OUTSIDE)
        return NULL;
    BW_AUTO_ERROR struct bw_error *unknown = bw_block_groups_find(rest->groups, address, &group);
    if (unknown)
        return unknown->code == BW_ERROR_NO_MEMORY ? BW_TAKE(unknown) : NULL;
    *kind = group.used ? BW_OWNER_FREE : BW_OWNER_UNUSED;
    const uint64_t left = group.logical + group.length - address;
    *length = address >= group.logical && left && left < *length ? left : *length;
    return NULL;
}

/* Hands out a piece of a range that has no owner; joins it with the one before, if that is of the
 * same kind. */
static struct bw_error *give_rest(struct rest *rest, struct bw_owner *before,
                                  const struct bw_owner *piece)
{
    const struct bw_owner_options *options = rest->search->options;
    if (before->length && piece->length && before->kind == piece->kind &&
        before->logical + before->length == piece->logical) {
        before->length += piece->length;
        return NULL;
    }
    struct bw_error *error = before->length ? options->take(options->context, before) : NULL;
    *before = *piece;
    return error;
}

static struct bw_error *give_rests(struct rest *rest, const struct bw_query_range *range)
{
    const struct bw_owner_search *search = rest->search;
    const uint64_t end = range->start + range->length;
    struct bw_owner before = {0};
    for (uint64_t at = range->start, next; at < end; at = next) {
        next = end;
        if (bw_covered_at(&search->shown, at, &next))
            continue;
        struct bw_owner piece = {.kind = BW_OWNER_HIDDEN, .range = range->number, .logical = at};
        const bool allocated = bw_covered_at(&search->allocated, at, &next);
        piece.length = next - at;
        if (!allocated)
            BW_TRY(name_unallocated(rest, at, &piece.length, &piece.kind));
        next = at + piece.length;
        BW_TRY(give_rest(rest, &before, &piece));
    }
    return give_rest(rest, &before, &(struct bw_owner){0});
}

static struct bw_error *give_all_rests(struct bw_owner_search *search)
{
    struct rest rest = {search, NULL};
    bw_covered_join(&search->shown);
    bw_covered_join(&search->allocated);
    struct bw_error *error = bw_block_groups_open(search->fs, &rest.groups);
    for (size_t i = 0; i < search->ranges.count && !error; i++)
        error = give_rests(&rest, &search->ranges.items[i]);
    bw_block_groups_close(rest.groups);
    return error;
}

/* The frame. */

static struct bw_error *take_ranges(struct bw_owner_search *search)
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
    return fs->extent_tree.id && !fs->memory.count &&
           !(fs->superblock.incompat_flags & BW_INCOMPAT_EXTENT_TREE_V2);
}

/* What a damaged extent tree has said. */
static void forget(struct bw_owner_search *search)
{
    bw_map_clear(&search->marks);
    bw_map_clear(&search->block_numbers);
    search->allocated.count = search->allocated.joined = search->block_count = 0;
}

static struct bw_error *find_all(struct bw_owner_search *search)
{
    bool trusted = false;
    BW_TRY(take_ranges(search));
    BW_TRY(bw_tree_list_load(search->fs, &search->trees));
    if (!search->hooks && !search->options->subvolume && !search->fs->is_past)
        BW_TRY(bw_tree_list_load_log(search->fs, &search->trees));
    for (size_t i = 0; i < search->trees.count; i++)
        if (!bw_map_put(&search->tree_numbers, search->trees.entries[i].tree.id, (uint32_t)i))
            return bw_error_no_memory();
    if (!search->options->no_extent_tree && has_references(search->fs))
        BW_TRY(bw_owner_climb(search, &trusted));
    search->reads_all = !trusted;
    if (!trusted)
        forget(search);
    BW_TRY(bw_owner_descend(search));
    if (!search->options->no_paths)
        BW_TRY(bw_lost_inodes_name(search->fs, &search->paths, search->lost, search->lost_count,
                                   give_lost, search));
    if (search->options->subvolume || search->hooks)
        return NULL;
    BW_TRY(give_blocks(search));
    return give_all_rests(search);
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
    free(search.trees.entries);
    free(search.ranges.items);
    free(search.allocated.items);
    free(search.shown.items);
    free(search.blocks);
    free(search.lost);
    free(search.nameless);
    bw_map_free(&search.tree_numbers);
    bw_map_free(&search.marks);
    bw_map_free(&search.block_numbers);
    bw_inode_paths_free(&search.paths);
    return error;
}
