/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space in use, by logical address: the union of the extent tree, the complement of the free
 * space tree, and the blocks and data that the trees refer to. On a healthy file system, the first
 * two agree and contain everything but the log. On a damaged one, each makes up for losses of the
 * others, and a range that none of them knows is in use: the map may be too large, never too small.
 *
 * The trees come last, and add only what the first two lack; so on a healthy file system nothing of
 * them is kept. In the end, ranges that the remap tree has moved count at their new address, too.
 */
#include "owners/used_space.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btree/memory.h"
#include "data/references.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "owners/level_reader.h"
#include "owners/ranges.h"
#include "owners/tree_list.h"

const char *bw_used_kind_name(enum bw_used_kind kind)
{
    static const char *const names[BW_USED_KINDS] = {
        [BW_USED_SUPERBLOCK] = "superblock",
        [BW_USED_RESERVED] = "reserved",
        [BW_USED_SYSTEM] = "system",
        [BW_USED_LOG] = "log",
        [BW_USED_METADATA] = "metadata",
        [BW_USED_DATA] = "data",
        [BW_USED_HISTORY] = "history",
        [BW_USED_PARITY] = "parity",
        [BW_USED_FREE] = "free",
        [BW_USED_UNALLOCATED] = "unallocated",
    };
    return names[kind];
}

/* Chunks. */

enum bw_used_kind bw_used_kind_at(const struct bw_used_map *map, uint64_t logical, uint64_t *end)
{
    for (enum bw_used_kind kind = BW_USED_LOG; kind < BW_USED_SETS; kind++)
        if (bw_range_set_has(&map->sets[kind], logical, end))
            return kind;
    return BW_USED_FREE;
}

/* The number of the first chunk that ends after an address. */
static size_t chunk_at(const struct bw_used_map *map, uint64_t logical)
{
    const struct bw_used_chunk *chunks = map->chunks.items;
    return BW_FIRST_INDEX(i, map->chunks.count, chunks[i].logical + chunks[i].length > logical);
}

/* Finds out whether chunks may be unknown. A chunk tree in memory was rebuilt, and may lack chunks;
 * if one is damaged, a complete device tree whose extents are all stripes of known chunks shows
 * that none is lacking. */
static struct bw_error *find_chunk_losses(struct bw_used_map *map, const struct bw_tree_list *trees)
{
    struct bw_item_stream stream;
    struct bw_error *error = bw_item_stream_begin(&stream, map->fs, trees, map->fs->chunk_tree.id);
    while (!error && !stream.ended)
        bw_item_stream_next(&stream);
    const bool lost =
        stream.lost || bw_memory_block(&map->fs->memory, map->fs->chunk_tree.root.bytenr);
    BW_TRY(bw_item_stream_end(&stream, error));
    map->chunk_tree = BW_CHUNKS_KNOWN;
    if (!lost)
        return NULL;

    /* Device extents and the device map are both sorted by device and offset. */
    const size_t count = bw_device_map_count(map->devices);
    size_t i = 0;
    error = bw_item_stream_begin(&stream, map->fs, trees, BW_DEVICE_TREE);
    bool agrees = !stream.ended;
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        const struct bw_key *key = &stream.item.key;
        const struct bw_disk_device_extent *disk = (const void *)stream.item.data;
        const struct bw_device_range *range = NULL;
        if (key->type != BW_DEVICE_EXTENT)
            continue;
        for (; i < count; i++) {
            range = bw_device_map_range(map->devices, i);
            if (range->devid > key->objectid ||
                (range->devid == key->objectid && range->offset >= key->offset))
                break;
        }
        agrees &= i < count && stream.item.size >= sizeof *disk && range->devid == key->objectid &&
                  range->offset == key->offset && range->use == BW_USE_CHUNK &&
                  range->length == bw_get64(disk->length);
    }
    agrees &= !stream.lost;
    map->chunk_tree = agrees ? BW_CHUNKS_FOUND : BW_CHUNKS_LOST;
    return bw_item_stream_end(&stream, error);
}

/* Adds a range as in use, in whole blocks. */
static struct bw_error *add_range(struct bw_range_set *set, uint64_t start, uint64_t end)
{
    const uint64_t mask = BW_MIN_SECTORSIZE - 1;
    start &= ~mask;
    end = end > UINT64_MAX - mask ? UINT64_MAX : (end + mask) & ~mask;
    return start < end ? bw_range_set_insert(set, start, end) : NULL;
}

/* The free space tree. */

/* Adds the space before a free range of a block group; it is in use from `*from` on. */
static struct bw_error *end_used(struct bw_used_map *map, const struct bw_used_chunk *chunk,
                                 uint64_t *from, uint64_t start, uint64_t end)
{
    end = bw_min(end, chunk->logical + chunk->length);
    if (start < *from || start >= end)
        return NULL;
    BW_TRY(add_range(&map->sets[chunk->kind], *from, start));
    *from = end;
    return NULL;
}

/* Adds everything between the free ranges of each block group: an item with the group comes before
 * its extents or bitmaps. A lost part of the tree counts as in use, because only ranges that it
 * lists are free. */
static struct bw_error *read_free_space(struct bw_used_map *map, const struct bw_tree_list *trees)
{
    const uint64_t valid = BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    const uint64_t sector = map->fs->superblock.sectorsize;
    struct bw_used_chunk *chunk = NULL; /* of the block group */
    uint64_t from = 0;                  /* the space in it is in use from here on, if not free */
    struct bw_item_stream stream;
    if ((map->fs->superblock.compat_ro_flags & valid) != valid)
        return NULL;
    struct bw_error *error = bw_item_stream_begin(&stream, map->fs, trees, BW_FREE_SPACE_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        const struct bw_key *key = &stream.item.key;
        if (key->type == BW_FREE_SPACE_INFO) {
            const size_t i = chunk_at(map, key->objectid);
            if (chunk)
                error = add_range(&map->sets[chunk->kind], from, chunk->logical + chunk->length);
            chunk = i < map->chunks.count ? &map->chunks.items[i] : NULL;
            if (chunk && (chunk->logical != key->objectid || chunk->length != key->offset))
                chunk = NULL;
            if (chunk)
                chunk->free_known = true;
            from = key->objectid;
        } else if (key->type == BW_FREE_SPACE_BITMAP) {
            uint64_t bits = key->offset / sector;
            if (bits > stream.item.size * UINT64_C(8))
                bits = stream.item.size * UINT64_C(8);
            uint32_t bit = 0, first;
            while (!error && chunk && bw_bits_next(stream.item.data, bits, &bit, &first))
                error = end_used(map, chunk, &from, key->objectid + first * sector,
                                 key->objectid + bit * sector);
        } else if (key->type == BW_FREE_SPACE_EXTENT && chunk && key->offset <= ~key->objectid) {
            error = end_used(map, chunk, &from, key->objectid, key->objectid + key->offset);
        }
    }
    if (!error && chunk)
        error = add_range(&map->sets[chunk->kind], from, chunk->logical + chunk->length);
    return bw_item_stream_end(&stream, error);
}

/* The extent tree. */

/* Extents in a range of addresses may be lost: the whole range is in use, except in chunks whose
 * free ranges are known. */
static struct bw_error *add_unknown(struct bw_used_map *map, uint64_t start, uint64_t end)
{
    for (size_t i = chunk_at(map, start); i < map->chunks.count; i++) {
        const struct bw_used_chunk *chunk = &map->chunks.items[i];
        if (chunk->logical >= end)
            break;
        if (!chunk->free_known)
            BW_TRY(
                add_range(&map->sets[chunk->kind], chunk->logical, chunk->logical + chunk->length));
    }
    return NULL;
}

/* Adds the extents, and the chunks between two of them where items may be lost. */
static struct bw_error *read_extents(struct bw_used_map *map, const struct bw_tree_list *trees)
{
    struct bw_item_stream stream;
    uint64_t last = 0;
    struct bw_error *error = bw_item_stream_begin(&stream, map->fs, trees, BW_EXTENT_TREE);
    const bool empty = stream.ended;
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        const struct bw_key *key = &stream.item.key;
        struct bw_extent_entry extent;
        uint64_t end;
        if (stream.after_loss)
            error = add_unknown(map, last, key->objectid + (key->objectid < UINT64_MAX));
        last = key->objectid;
        if (error)
            break;
        if (bw_extent_entry_decode(map->fs, &stream.item, &extent)) {
            if (__builtin_add_overflow(extent.bytenr, extent.length, &end))
                end = UINT64_MAX;
            error = add_range(&map->sets[extent.is_block ? BW_USED_METADATA : BW_USED_DATA],
                              extent.bytenr, end);
        } else if (key->type == BW_EXTENT_ITEM || key->type == BW_METADATA_ITEM) {
            error = add_unknown(map, key->objectid, key->objectid + 1); /* it is cut off */
        }
    }
    if (!error && (empty || stream.after_loss))
        error = add_unknown(map, empty ? 0 : last, UINT64_MAX);
    if ((empty || stream.lost) && !map->options.is_quiet)
        bw_fs_report_text(map->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "the extent tree is incomplete: more space may count as in use");
    return bw_item_stream_end(&stream, error);
}

/* Trees. */

/* Bits of bw_queued_block.value. */
enum { OF_LOG = 1, WITH_DATA = 2 };

struct tree_walk {
    struct bw_used_map *map;
    struct bw_level_reader reader;
    struct bw_block_set seen;
};

struct bw_error *bw_used_map_refer(struct bw_used_map *map, enum bw_used_kind kind, uint64_t start,
                                   uint64_t length)
{
    uint64_t end, until;
    if (__builtin_add_overflow(start, length, &end))
        end = UINT64_MAX;
    /* Most references are known from the extent tree or the free space tree. */
    for (uint64_t at = start; at < end; at = until) {
        until = end;
        if (bw_used_kind_at(map, at, &until) == BW_USED_FREE)
            return add_range(&map->added[kind], start, end);
    }
    return NULL;
}

/* Adds space that a tree refers to; with the lock. */
static void add_reference(struct tree_walk *walk, uint64_t start, uint64_t length, uint32_t value,
                          enum bw_used_kind kind)
{
    struct bw_error *error =
        bw_used_map_refer(walk->map, value & OF_LOG ? BW_USED_LOG : kind, start, length);
    if (error)
        walk->reader.no_memory = true;
    bw_error_free(error);
}

/* Adds a tree block; returns whether it is to be read. With the lock. */
static bool reach_block(struct tree_walk *walk, uint64_t bytenr, unsigned level, uint32_t value)
{
    bool added = false;
    if (bw_block_set_insert(&walk->seen, bytenr, &added))
        walk->reader.no_memory = true;
    if (added)
        add_reference(walk, bytenr, walk->map->fs->superblock.nodesize, value, BW_USED_METADATA);
    return added && (level || value & WITH_DATA);
}

static void on_node(void *context, unsigned worker, const struct bw_queued_block *block,
                    const struct bw_node *node, bool *wanted)
{
    struct tree_walk *walk = context;
    (void)worker;
    pthread_mutex_lock(&walk->reader.lock);
    uint32_t slot = block->dropped ? bw_tree_first_slot(block->dropped, node) : 0;
    for (; slot < node->item_count; slot++)
        wanted[slot] = reach_block(walk, bw_node_pointer_at(node, slot).bytenr, node->level - 1u,
                                   block->value);
    pthread_mutex_unlock(&walk->reader.lock);
}

static void on_leaf(void *context, unsigned worker, const struct bw_queued_block *block,
                    const struct bw_node *node)
{
    struct tree_walk *walk = context;
    struct bw_block_references references = bw_block_references_open(node, 0, false);
    struct bw_reference reference;
    (void)worker;
    pthread_mutex_lock(&walk->reader.lock);
    while (bw_block_references_next(&references, &reference))
        if (reference.length)
            add_reference(walk, reference.bytenr, reference.length, block->value, BW_USED_DATA);
    pthread_mutex_unlock(&walk->reader.lock);
}

/* Adds what all trees refer to, each block once. Leaves are read for references to data: those of
 * log trees always, because the extent tree lacks data of the log; others with options.files.
 */
static struct bw_error *walk_trees(struct bw_used_map *map, const struct bw_tree_list *trees)
{
    struct tree_walk walk = {.map = map,
                             .reader = {.fs = map->fs,
                                        .threads = map->options.threads,
                                        .node = on_node,
                                        .leaf = on_leaf,
                                        .context = &walk,
                                        .progress = map->options.progress,
                                        .progress_context = map->options.context}};
    struct bw_error *error = bw_level_reader_begin(&walk.reader);
    for (size_t i = 0; !error && i < trees->entries.count; i++) {
        const struct bw_listed_tree *tree = &trees->entries.items[i];
        const bool has_data = tree->is_log || (map->options.files &&
                                               (tree->has_inodes || tree->tree.id == BW_ROOT_TREE));
        uint32_t value = has_data ? WITH_DATA : 0;
        value |= tree->is_log ? OF_LOG : 0;
        const struct bw_queued_block block = {bw_tree_root_pointer(&tree->tree, false), value,
                                              tree->references ? NULL : tree};
        if (tree->tree.root.bytenr &&
            reach_block(&walk, block.pointer.bytenr, block.pointer.expectation.level, value))
            error = bw_level_reader_add(&walk.reader, &block);
    }
    if (!error)
        error = bw_level_reader_run(&walk.reader);
    bw_level_reader_end(&walk.reader);
    bw_key_map_free(&walk.seen.words);
    return error;
}

struct bw_error *bw_used_map_join(struct bw_used_map *map)
{
    for (unsigned kind = 0; kind < BW_USED_SETS; kind++) {
        const struct bw_spans *added = &map->added[kind].ranges;
        for (size_t i = 0; i < added->count; i++)
            BW_TRY(add_range(&map->sets[kind], added->items[i].start, added->items[i].end));
        bw_range_set_join(&map->sets[kind]);
    }
    return NULL;
}

/* The remap tree. */

/* Data that were moved are needed at their new address; those that were not, at the old one. */
static struct bw_error *follow_moves(struct bw_used_map *map)
{
    const struct bw_tree tree = {BW_REMAP_TREE, map->fs->superblock.remap_root, 0};
    for (unsigned kind = 0; kind < BW_USED_SETS; kind++)
        bw_range_set_free(&map->added[kind]);
    if (!tree.root.bytenr)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    uint64_t end = 0; /* of the ranges before */
    bw_fs_items_begin(&items, map->fs, &tree, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_moved_range range;
        if (item->key.type != BW_REMAP)
            continue;
        /* Invalid ranges, and those that overlap the previous one, are not followed: opening the
         * file system has reported them. */
        BW_AUTO_ERROR struct bw_error *bad = bw_moved_range_decode(item, &range);
        if (bad || range.from < end)
            continue;
        end = range.from + range.length;
        for (unsigned kind = 0; kind < BW_USED_SETS; kind++) {
            const struct bw_spans *spans = &map->sets[kind].ranges;
            size_t i = BW_FIRST_INDEX(k, spans->count, spans->items[k].end > range.from);
            for (; i < spans->count && spans->items[i].start < end; i++) {
                const struct bw_span span = spans->items[i];
                const uint64_t first = bw_max(span.start, range.from) - range.from;
                const uint64_t last = bw_min(span.end, end) - range.from;
                BW_TRY(add_range(&map->added[kind], range.to + first, range.to + last));
            }
        }
    }
    BW_TRY(bw_fs_items_error(&items));
    return bw_used_map_join(map);
}

/* Fills the map from all trees of the file system. */
static struct bw_error *find_used_space(struct bw_used_map *map)
{
    struct bw_fs *fs = map->fs;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_device_map_open(fs, &map->devices));
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        /* Mixed chunks count as data where only the free space tree is known. */
        const struct bw_chunk_info *chunk = &chunks.items[i];
        const bool has_data = chunk->type & BW_GROUP_DATA;
        BW_TRY(bw_used_chunks_push(
            &map->chunks,
            (struct bw_used_chunk){.logical = chunk->logical,
                                   .length = chunk->length,
                                   .kind = has_data ? BW_USED_DATA : BW_USED_METADATA}));
    }
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {.report = true};
    BW_TRY(bw_tree_list_load(fs, &trees));
    BW_TRY(find_chunk_losses(map, &trees));
    BW_TRY(read_free_space(map, &trees));
    BW_TRY(read_extents(map, &trees));
    for (unsigned kind = 0; kind < BW_USED_SETS; kind++)
        bw_range_set_join(&map->sets[kind]);
    if (!fs->is_past)
        BW_TRY(bw_tree_list_load_log(fs, &trees));
    BW_TRY(walk_trees(map, &trees));
    BW_TRY(bw_used_map_join(map));
    return follow_moves(map);
}

struct bw_error *bw_used_map_open(struct bw_fs *fs, const struct bw_used_options *given,
                                  struct bw_used_map **result)
{
    static const struct bw_used_options none = {.struct_size = sizeof none};
    struct bw_used_map *map = *result = calloc(1, sizeof *map);
    if (!map)
        return bw_error_no_memory();
    map->fs = fs;
    struct bw_error *error = BW_TAKE_OPTIONS(&map->options, given ? given : &none);
    if (!error)
        error = find_used_space(map);
    if (error)
        bw_used_map_close(BW_TAKE(*result));
    return error;
}

struct bw_error *bw_used_map_add(struct bw_used_map *map, uint64_t logical, uint64_t length)
{
    if (length > UINT64_MAX - logical)
        length = UINT64_MAX - logical;
    return add_range(&map->sets[BW_USED_HISTORY], logical, logical + length);
}

struct bw_error *bw_used_map_add_device(struct bw_used_map *map, uint64_t devid, uint64_t offset,
                                        uint64_t length)
{
    size_t i = 0;
    while (i < map->extras.count && map->extras.items[i].devid != devid)
        i++;
    if (i == map->extras.count)
        BW_TRY(bw_used_extras_push(&map->extras, (struct bw_used_extra){.devid = devid}));
    if (length > UINT64_MAX - offset)
        length = UINT64_MAX - offset;
    return add_range(&map->extras.items[i].set, offset, offset + length);
}

void bw_used_map_close(struct bw_used_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->extras.count; i++)
        bw_range_set_free(&map->extras.items[i].set);
    bw_used_extras_free(&map->extras);
    for (unsigned kind = 0; kind < BW_USED_SETS; kind++) {
        bw_range_set_free(&map->sets[kind]);
        bw_range_set_free(&map->added[kind]);
    }
    bw_device_map_close(map->devices);
    bw_used_chunks_free(&map->chunks);
    free(map);
}
