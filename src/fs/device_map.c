/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The map of devices: the stripes of all chunks, sorted by device and offset, and the holes between
 * them. bw_device_map_open() sorts the devices and the stripes, and merges both lists.
 *
 * bw_device_map_find() finds the logical address of an offset on a device: the range of the offset
 * by a binary search, then the address in its chunk by the inverse of cluster/chunk-map. If a tree
 * determines the location of data (raid-stripe-tree, remap-tree), the result is mapped forward
 * again, because the bytes may not be in use any more.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/space.h"
#include "fs/fs.h"
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"

BW_VECTOR(bw_moved_ranges, struct bw_moved_range);

BW_VECTOR(bw_device_ranges, struct bw_device_range);

struct bw_device_map {
    struct bw_fs *fs;
    struct bw_device_ranges ranges; /* They ascend by devid and offset. */
    struct bw_moved_ranges moved; /* moved by the remap-tree feature; in ascending order of `to` */
};

/* The kernel never allocates space before this offset. Source: BTRFS_DEVICE_RANGE_RESERVED in the
 * kernel's fs/btrfs/fs.h. */
enum { RESERVED_BYTES = 1 << 20 };

const char *bw_chunk_type_name(uint64_t type)
{
    static const uint64_t mask =
        BW_GROUP_DATA | BW_GROUP_METADATA | BW_GROUP_SYSTEM | BW_GROUP_METADATA_REMAP;
    switch (type & mask) {
    case BW_GROUP_DATA:
        return "Data";
    case BW_GROUP_METADATA:
        return "Metadata";
    case BW_GROUP_SYSTEM:
        return "System";
    case BW_GROUP_DATA | BW_GROUP_METADATA:
        return "Data+Metadata";
    case BW_GROUP_METADATA_REMAP:
        return "Remap";
    default:
        return "unknown";
    }
}

unsigned bw_chunk_different_stripes(const struct bw_chunk_info *chunk)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    if (!profile || !profile->striped)
        return 1;
    return (chunk->stripe_count - profile->parity_stripes) / profile->copies;
}

uint64_t bw_chunk_stripe_length(const struct bw_chunk_info *chunk)
{
    return chunk->length / bw_chunk_different_stripes(chunk);
}

void bw_device_map_close(struct bw_device_map *map)
{
    if (!map)
        return;
    bw_device_ranges_free(&map->ranges);
    bw_moved_ranges_free(&map->moved);
    free(map);
}

static void close_map(struct bw_device_map **map)
{
    bw_device_map_close(*map);
}

static int compare_ranges(const void *left, const void *right)
{
    const struct bw_device_range *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->devid, a->offset, a->logical}),
                          ((uint64_t[]){b->devid, b->offset, b->logical}));
}

/* Adds the space between stripes; the first MiB of a device is reserved. */
static struct bw_error *add_hole(struct bw_device_ranges *ranges, uint64_t devid, uint64_t from,
                                 uint64_t end)
{
    struct bw_device_range hole = {.devid = devid, .offset = from, .use = BW_USE_RESERVED};
    if (from < end && from < RESERVED_BYTES) {
        hole.length = bw_min(end, RESERVED_BYTES) - from;
        BW_TRY(bw_device_ranges_push(ranges, hole));
        hole.offset += hole.length;
    }
    if (hole.offset >= end)
        return NULL;
    hole.use = BW_USE_UNALLOCATED;
    hole.length = end - hole.offset;
    return bw_device_ranges_push(ranges, hole);
}

/* Merges the sorted lists of devices and stripes, and adds the holes. A device that only occurs in
 * chunks has no known end. */
static struct bw_error *merge_ranges(struct bw_device_map *map,
                                     const struct bw_device_ranges *devices,
                                     const struct bw_device_ranges *stripes)
{
    size_t device = 0, next = 0;
    while (device < devices->count || next < stripes->count) {
        bool is_known = device < devices->count;
        if (is_known && next < stripes->count)
            is_known = devices->items[device].devid <= stripes->items[next].devid;
        const uint64_t devid = is_known ? devices->items[device].devid : stripes->items[next].devid;
        uint64_t end = 0, last = 0; /* the end of the stripes so far, and the chunk of that one */
        for (; next < stripes->count && stripes->items[next].devid == devid; next++) {
            const struct bw_device_range *stripe = &stripes->items[next];
            if (stripe->offset < end)
                bw_fs_report_text(map->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                                  "chunks %" PRIu64 " and %" PRIu64 " overlap at %" PRIu64
                                  " of device %" PRIu64,
                                  last, stripe->logical, stripe->offset, devid);
            BW_TRY(add_hole(&map->ranges, devid, end, stripe->offset));
            BW_TRY(bw_device_ranges_push(&map->ranges, *stripe));
            if (stripe->offset + stripe->length <= end)
                continue;
            end = stripe->offset + stripe->length;
            last = stripe->logical;
        }
        if (is_known)
            BW_TRY(add_hole(&map->ranges, devid, end, devices->items[device++].length));
    }
    return NULL;
}

static int compare_moved(const void *left, const void *right)
{
    const struct bw_moved_range *a = left, *b = right;
    return bw_compare(a->to, b->to);
}

struct bw_error *bw_device_map_open(struct bw_fs *fs, struct bw_device_map **result)
{
    struct bw_device_map *map __attribute__((cleanup(close_map))) = calloc(1, sizeof *map);
    *result = NULL;
    if (!map)
        return bw_error_no_memory();
    map->fs = fs;

    /* The devices, from beginning to end. */
    BW_SCOPED(bw_device_ranges) struct bw_device_ranges devices = {0};
    BW_SCOPED(bw_device_list) struct bw_device_list infos = {0};
    BW_TRY(bw_fs_devices(fs, &infos));
    for (size_t i = 0; i < infos.count; i++)
        BW_TRY(bw_device_ranges_push(
            &devices, (struct bw_device_range){.devid = infos.items[i].devid,
                                               .length = infos.items[i].total_bytes}));

    /* The stripes of all chunks. */
    BW_SCOPED(bw_device_ranges) struct bw_device_ranges stripes = {0};
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        struct bw_device_range range = {.length = bw_chunk_stripe_length(chunk),
                                        .use = BW_USE_CHUNK,
                                        .stripe_count = chunk->stripe_count,
                                        .logical = chunk->logical,
                                        .chunk_length = chunk->length,
                                        .type = chunk->type,
                                        .profile = chunk->profile};
        for (range.stripe = 0; range.stripe < chunk->stripe_count; range.stripe++) {
            range.devid = chunk->stripes[range.stripe].devid;
            range.offset = chunk->stripes[range.stripe].offset;
            if (range.offset + range.length >= range.offset)
                BW_TRY(bw_device_ranges_push(&stripes, range));
            else
                bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                                  "chunk %" PRIu64 ": stripe %u is beyond any device",
                                  chunk->logical, range.stripe);
        }
    }
    bw_device_ranges_sort(&stripes, compare_ranges);
    bw_device_ranges_sort(&devices, compare_ranges);
    BW_TRY(merge_ranges(map, &devices, &stripes));

    /* Ranges moved by relocation, with the remap-tree feature. */
    const struct bw_tree remap = {BW_REMAP_TREE, fs->superblock.remap_root, 0};
    if (remap.root.bytenr) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, fs, &remap, (struct bw_key){0}, BW_KEY_MAX);
        for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
            struct bw_moved_range range;
            if (item->key.type != BW_REMAP)
                continue;
            BW_AUTO_ERROR struct bw_error *bad = bw_moved_range_decode(item, &range);
            if (!bad) /* otherwise, bw_bootstrap_remap() has reported it */
                BW_TRY(bw_moved_ranges_push(&map->moved, range));
        }
        BW_TRY(bw_fs_items_error(&items));
    }
    bw_moved_ranges_sort(&map->moved, compare_moved);
    *result = BW_TAKE(map);
    return NULL;
}

size_t bw_device_map_count(const struct bw_device_map *map)
{
    return map->ranges.count;
}

const struct bw_device_range *bw_device_map_range(const struct bw_device_map *map, size_t number)
{
    return &map->ranges.items[number];
}

/* From an offset on a device to a logical address. */

static void limit_length(struct bw_device_place *place, uint64_t length)
{
    place->length = bw_min(place->length, length);
}

/* Replaces an address in a chunk by the address before the move. */
static void undo_move(const struct bw_device_map *map, struct bw_device_place *place)
{
    size_t next = BW_FIRST_INDEX(i, map->moved.count, map->moved.items[i].to > place->logical);
    if (next < map->moved.count)
        limit_length(place, map->moved.items[next].to - place->logical);
    if (!next)
        return;
    const struct bw_moved_range *range = &map->moved.items[next - 1];
    uint64_t skip = place->logical - range->to;
    if (skip >= range->length)
        return;
    limit_length(place, range->length - skip);
    place->logical = range->from + skip;
}

/* Whether the logical address is still read from this offset. */
static bool leads_here(struct bw_fs *fs, struct bw_device_place *place, uint64_t devid,
                       uint64_t offset)
{
    struct bw_mapping forward;
    BW_AUTO_ERROR struct bw_error *error =
        bw_fs_map(fs, place->logical, place->length, place->copy, &forward);
    limit_length(place, forward.length);
    return !error && !forward.rebuilt && forward.devid == devid && forward.offset == offset;
}

/* Searches the strides of all extents of the chunk in the stripe tree for an offset. They are
 * sorted by logical address, not by offset. */
static struct bw_error *search_stripe_tree(struct bw_fs *fs, uint64_t devid, uint64_t offset,
                                           struct bw_device_place *place)
{
    const struct bw_device_range *chunk = place->range;
    struct bw_item_range range;
    bw_item_range_begin(
        &range, &fs->reader, &fs->stripe_tree, (struct bw_key){chunk->logical, BW_RAID_STRIPE, 0},
        (struct bw_key){chunk->logical + chunk->chunk_length - 1, BW_RAID_STRIPE, UINT64_MAX});
    for (bool is_found = false; !is_found && bw_item_range_next(&range);) {
        if (range.error) {
            bw_fs_report_range(fs, &range);
            continue;
        }
        struct bw_stripe_extent extent = {.count = 0};
        if (range.item.key.type == BW_RAID_STRIPE)
            bw_error_free(bw_stripe_extent_decode(&range.item, &extent));
        for (unsigned i = 0; i < extent.count && !is_found; i++) {
            const uint64_t begin = extent.places[i].offset, skip = offset - begin;
            if (extent.places[i].devid != devid)
                continue;
            if (offset < begin) {
                limit_length(place, begin - offset);
            } else if (skip < extent.length) {
                struct bw_device_place found = *place;
                found.logical = extent.logical + skip;
                found.copy = i + 1;
                limit_length(&found, extent.length - skip);
                is_found = leads_here(fs, &found, devid, offset);
                if (is_found)
                    *place = found;
                limit_length(place, found.length);
            }
        }
    }
    return bw_item_range_end(&range, NULL);
}

/* Inverts striped profiles; see find_striped() in xlators/cluster/layout.c. */
static uint64_t find_striped(const struct bw_device_range *range,
                             const struct bw_raid_profile *profile, uint64_t within,
                             struct bw_device_place *place)
{
    uint64_t row = within / BW_STRIPE_LENGTH, rest = within % BW_STRIPE_LENGTH;
    unsigned count = range->stripe_count, data = count - profile->parity_stripes;
    unsigned columns = data / profile->copies, column = range->stripe / profile->copies;
    place->copy = range->stripe % profile->copies + 1;
    limit_length(place, BW_STRIPE_LENGTH - rest);
    if (profile->parity_stripes)
        column = (unsigned)((range->stripe + count - row % count) % count);
    if (column >= columns) {
        place->parity = column - columns + 1;
        place->copy = column = 0;
    }
    return (row * columns + column) * BW_STRIPE_LENGTH + rest;
}

/* Finds the range that contains an offset, or NULL. Ranges cover the whole device, so this is the
 * last one that begins at or before the offset, unless ranges overlap. */
static const struct bw_device_range *range_at(const struct bw_device_map *map, uint64_t devid,
                                              uint64_t offset, bool *known)
{
    const struct bw_device_range *ranges = map->ranges.items;
    size_t next = BW_FIRST_INDEX(i, map->ranges.count,
                                 ranges[i].devid > devid ||
                                     (ranges[i].devid == devid && ranges[i].offset > offset));
    *known = (next && ranges[next - 1].devid == devid) ||
             (next < map->ranges.count && ranges[next].devid == devid);
    for (; next && ranges[next - 1].devid == devid; next--)
        if (offset - ranges[next - 1].offset < ranges[next - 1].length)
            return &ranges[next - 1];
    return NULL;
}

/* Whether the offset is in a superblock copy; otherwise, the place ends before the next copy. On
 * zoned devices, copies have no fixed offsets. */
static bool in_superblock(const struct bw_fs *fs, uint64_t offset, struct bw_device_place *place)
{
    bool zoned = fs->superblock.incompat_flags & BW_INCOMPAT_ZONED;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !zoned; copy++) {
        uint64_t begin = bw_superblock_offset(copy), skip = offset - begin;
        if (offset < begin) {
            limit_length(place, begin - offset);
            return false;
        }
        if (skip < BW_SUPERBLOCK_SIZE) {
            limit_length(place, BW_SUPERBLOCK_SIZE - skip);
            return true;
        }
    }
    return false;
}

struct bw_error *bw_device_map_find(const struct bw_device_map *map, uint64_t devid,
                                    uint64_t offset, uint64_t length, struct bw_device_place *place)
{
    bool known;
    const struct bw_device_range *range = range_at(map, devid, offset, &known);
    if (!known)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %" PRIu64, devid);
    *place = (struct bw_device_place){.use = BW_USE_OUTSIDE, .range = range, .length = length};
    if (!range)
        return NULL;
    place->use = range->use;
    limit_length(place, range->length - (offset - range->offset));
    if (in_superblock(map->fs, offset, place))
        place->use = BW_USE_SUPERBLOCK;
    if (place->use != BW_USE_CHUNK)
        return NULL;
    if (map->fs->stripes && bw_chunk_in_stripe_tree(range->type))
        return search_stripe_tree(map->fs, devid, offset, place);

    /* The address in the chunk, and whether it is still read from here. */
    const struct bw_raid_profile *profile = bw_raid_profile_of(range->type);
    uint64_t within = offset - range->offset;
    place->copy = range->stripe + 1;
    if (profile->striped)
        within = find_striped(range, profile, within, place);
    place->logical = range->logical + within;
    if (within >= range->chunk_length) {
        place->copy = place->parity = 0;
        return NULL;
    }
    limit_length(place, range->chunk_length - within);
    if (!map->fs->superblock.remap_root.bytenr || place->parity)
        return NULL;
    undo_move(map, place);
    if (!leads_here(map->fs, place, devid, offset))
        place->copy = 0;
    return NULL;
}
