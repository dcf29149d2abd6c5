/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free ranges: all addresses whose contents no file shows. They are the complement of the space in
 * use (used_space.h), and the parts of it that neither a tree consists of nor a file shows.
 *
 * All trees are read, each block once. Their blocks and the extents of their files are `shown`;
 * those that files show as zeros are `preallocated`. Both are also added to the space in use, in
 * case the extent tree lacks them. Then each chunk is cut at all these limits, and neighbours of
 * the same kind are one range.
 */

#include "base/cleanup.h"
#include "base/range_set.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "btrfs-walk/space.h"
#include "ondisk/disk_items.h"
#include "owners/owner_search.h"
#include "owners/ranges.h"
#include "owners/tree_list.h"
#include "owners/used_space.h"

/* A running search. */
struct free_search {
    struct bw_fs *fs;
    struct bw_free_options options;
    struct bw_tree_list trees;
    struct bw_block_set seen; /* blocks that were read for any tree */
    struct bw_used_map *used;
    struct bw_range_set shown, preallocated;
};

const char *const bw_free_kind_names[] = {"free",         "unused",      "hidden",
                                          "preallocated", "unallocated", NULL};

static struct bw_error *add_span(struct bw_range_set *set, uint64_t start, uint64_t length)
{
    if (!length || length > UINT64_MAX - start)
        return NULL;
    return bw_range_set_insert(set, start, start + length);
}

/* Adds the blocks of a tree, and the extents of its files. */
static struct bw_error *read_tree(struct free_search *search, const struct bw_listed_tree *tree)
{
    struct bw_fs *fs = search->fs;
    const uint32_t size = fs->reader.nodesize;
    const bool has_files = bw_owner_has_files(tree);
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .pointers = true};
    bw_block_scan_begin(&scan, &fs->reader, &tree->tree);
    while (bw_block_scan_next(&scan)) {
        const uint64_t bytenr = scan.pointer.bytenr;
        const bool has_extents = scan.step == BW_SCAN_LEAF && has_files;
        struct bw_item item;
        bool is_new;
        if (scan.step == BW_SCAN_LOST)
            bw_fs_report_lost(fs, bytenr, BW_TAKE(scan.error));
        for (uint32_t slot = 0; has_extents && bw_leaf_next(&scan.node, &slot, &item);) {
            const struct bw_disk_file_extent *disk = (const void *)item.data;
            if (item.key.type != BW_EXTENT_DATA || item.size < sizeof *disk ||
                disk->type == BW_FILE_EXTENT_INLINE)
                continue;
            const uint64_t extent = bw_get64(disk->disk_bytenr),
                           length = bw_get64(disk->disk_num_bytes);
            const uint64_t into = bw_get64(disk->offset), shown = bw_get64(disk->num_bytes);
            if (!extent || length > UINT64_MAX - extent)
                continue;
            BW_TRY(bw_used_map_refer(search->used, BW_USED_DATA, extent, length));
            struct bw_range_set *set =
                disk->type == BW_FILE_EXTENT_PREALLOC ? &search->preallocated : &search->shown;

            /* A file needs all bytes of a compressed extent, even if it shows only a part. */
            if (disk->compression || into > length || shown > length - into)
                BW_TRY(add_span(set, extent, length));
            else
                BW_TRY(add_span(set, extent + into, shown));
        }
        if (scan.step != BW_SCAN_POINTER || bw_tree_has_dropped(tree, &scan.pointer))
            continue;
        BW_TRY(bw_block_set_insert(&search->seen, bytenr, &is_new));
        if (!is_new)
            continue;
        /* Leaves of trees without files are not read: it is enough to know where they are. */
        scan.selected = scan.pointer.expectation.level || has_files;
        BW_TRY(bw_used_map_refer(search->used, BW_USED_METADATA, bytenr, size));
        BW_TRY(add_span(&search->shown, bytenr, size));
    }
    return bw_block_scan_end(&scan);
}

/* Delivery. */

static struct bw_error *deliver_range(struct free_search *search, const struct bw_free_range *range)
{
    if (!range->length || !(search->options.kinds & 1U << range->kind))
        return NULL;
    return search->options.visit(search->options.context, range);
}

static struct bw_error *list_chunk(struct free_search *search, const struct bw_used_chunk *chunk)
{
    const uint64_t chunk_end = chunk->logical + chunk->length;
    struct bw_free_range before = {0};
    for (uint64_t at = chunk->logical, end; at < chunk_end; at = end) {
        enum bw_free_kind kind = BW_FREE_SPACE;
        end = chunk_end;
        if (bw_used_kind_at(search->used, at, &end) != BW_USED_FREE) {
            if (bw_range_set_has(&search->shown, at, &end))
                continue;
            kind = bw_range_set_has(&search->preallocated, at, &end) ? BW_FREE_PREALLOCATED
                                                                     : BW_FREE_HIDDEN;
        } else if (end - at == chunk->length) {
            kind = BW_FREE_UNUSED;
        }
        if (before.length && before.kind == kind && before.logical + before.length == at) {
            before.length += end - at;
            continue;
        }
        BW_TRY(deliver_range(search, &before));
        before = (struct bw_free_range){.kind = kind, .logical = at, .length = end - at};
    }
    return deliver_range(search, &before);
}

static void free_search_free(struct free_search *search)
{
    bw_used_map_close(search->used);
    bw_range_set_free(&search->shown);
    bw_range_set_free(&search->preallocated);
    bw_key_map_free(&search->seen.words);
    bw_listed_trees_free(&search->trees.entries);
}

struct bw_error *bw_free_ranges(struct bw_fs *fs, const struct bw_free_options *options)
{
    const unsigned in_chunks = ~(1U << BW_FREE_UNALLOCATED);
    BW_SCOPED(free_search) struct free_search search = {.fs = fs};
    BW_TRY(BW_TAKE_OPTIONS(&search.options, options));
    if (fs->is_stream)
        return bw_error_create(BW_ERROR_USAGE, "a send stream has no free space");
    if (!search.options.kinds)
        search.options.kinds = BW_FREE_ALL;
    if (search.options.kinds & in_chunks) {
        BW_TRY(bw_used_map_open(fs, NULL, &search.used));
        BW_TRY(bw_tree_list_load(fs, &search.trees));
        if (!fs->is_past)
            BW_TRY(bw_tree_list_load_log(fs, &search.trees));
        for (size_t i = 0; i < search.trees.entries.count; i++)
            BW_TRY(read_tree(&search, &search.trees.entries.items[i]));
        bw_range_set_join(&search.shown);
        bw_range_set_join(&search.preallocated);
        BW_TRY(bw_used_map_join(search.used));
        for (size_t i = 0; i < search.used->chunks.count; i++)
            BW_TRY(list_chunk(&search, &search.used->chunks.items[i]));
    }
    if (!(search.options.kinds & ~in_chunks))
        return NULL;

    struct bw_device_map *map;
    struct bw_error *error = NULL;
    BW_TRY(bw_device_map_open(fs, &map));
    for (size_t i = 0; i < bw_device_map_count(map) && !error; i++) {
        const struct bw_device_range *range = bw_device_map_range(map, i);
        if (range->use == BW_USE_UNALLOCATED)
            error = deliver_range(&search, &(struct bw_free_range){.kind = BW_FREE_UNALLOCATED,
                                                                   .length = range->length,
                                                                   .devid = range->devid,
                                                                   .offset = range->offset});
    }
    bw_device_map_close(map);
    return error;
}
