/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an offset of a device to a logical address: the arithmetic of cluster/chunk-map backwards.
 * Where a tree says where data lie (raid-stripe-tree, remap-tree), what it finds is mapped forwards
 * again, since bytes may lie where nothing points at any more.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "fs/device_map.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"

/* Moved ranges. */

static struct bw_error *add_moved(void *context, const struct bw_item *item)
{
    struct bw_device_map *map = context;
    bw_le64 address;
    if (item->key.type != BW_REMAP || item->size < sizeof address)
        return NULL; /* bw_bootstrap_remap() has reported what is cut off */
    memcpy(&address, item->data, sizeof address);
    if (!BW_ARRAY_RESERVE(map->moved, map->moved_count, map->moved_capacity))
        return bw_error_no_memory();
    map->moved[map->moved_count++] =
        (struct bw_moved_range){item->key.objectid, item->key.offset, bw_get64(address)};
    return NULL;
}

static int compare_moved(const void *left, const void *right)
{
    const struct bw_moved_range *a = left, *b = right;
    return a->to == b->to ? 0 : a->to < b->to ? -1 : 1;
}

struct bw_error *bw_device_map_read_moved(struct bw_device_map *map)
{
    const struct bw_tree tree = {BW_REMAP_TREE, map->fs->superblock.remap_root, 0};
    if (!tree.root.bytenr)
        return NULL;
    BW_TRY(bw_fs_items(map->fs, &tree, (struct bw_key){0}, BW_KEY_MAX, add_moved, map));
    if (map->moved_count)
        qsort(map->moved, map->moved_count, sizeof *map->moved, compare_moved);
    return NULL;
}

static void shorten(struct bw_device_place *place, uint64_t length)
{
    if (place->length > length)
        place->length = length;
}

/* The address that leads to one that a chunk holds. */
static void undo_move(const struct bw_device_map *map, struct bw_device_place *place)
{
    size_t next = BW_FIRST_INDEX(i, map->moved_count, map->moved[i].to > place->logical);
    if (next < map->moved_count)
        shorten(place, map->moved[next].to - place->logical);
    if (!next)
        return;
    const struct bw_moved_range *range = &map->moved[next - 1];
    uint64_t skip = place->logical - range->to;
    if (skip >= range->length)
        return;
    shorten(place, range->length - skip);
    place->logical = range->from + skip;
}

/* Whether the logical address is still read from here. */
static bool leads_here(struct bw_fs *fs, struct bw_device_place *place, uint64_t devid,
                       uint64_t offset)
{
    struct bw_mapping forward;
    BW_AUTO_ERROR struct bw_error *error =
        bw_fs_map(fs, place->logical, place->length, place->copy, &forward);
    shorten(place, forward.length);
    return !error && !forward.rebuilt && forward.devid == devid && forward.offset == offset;
}

/* The raid stripe tree. */

/* Looks for the one stride of an extent that holds the offset. */
static bool try_extent(struct bw_fs *fs, const struct bw_stripe_extent *extent, uint64_t devid,
                       uint64_t offset, struct bw_device_place *place)
{
    for (unsigned i = 0; i < extent->count; i++) {
        uint64_t begin = extent->places[i].offset, skip = offset - begin;
        if (extent->places[i].devid != devid)
            continue;
        struct bw_device_place found = *place;
        found.logical = extent->logical + skip;
        found.copy = i + 1;
        if (offset < begin) {
            shorten(place, begin - offset);
        } else if (skip < extent->length) {
            shorten(&found, extent->length - skip);
            if (leads_here(fs, &found, devid, offset)) {
                *place = found;
                return true;
            }
            shorten(place, found.length);
        }
    }
    return false;
}

/* All extents of the chunk are looked at: they are sorted by logical address. */
static struct bw_error *search_stripe_tree(struct bw_fs *fs, uint64_t devid, uint64_t offset,
                                           struct bw_device_place *place)
{
    const struct bw_device_range *chunk = place->range;
    struct bw_item_range range;
    struct bw_stripe_extent extent;
    bw_item_range_begin(
        &range, &fs->reader, &fs->stripe_tree, (struct bw_key){chunk->logical, BW_RAID_STRIPE, 0},
        (struct bw_key){chunk->logical + chunk->chunk_length - 1, BW_RAID_STRIPE, UINT64_MAX});
    for (bool found = false; !found && bw_item_range_next(&range);) {
        if (range.error) {
            bw_fs_report_range(fs, &range);
            continue;
        }
        if (range.item.key.type != BW_RAID_STRIPE)
            continue;
        BW_AUTO_ERROR struct bw_error *bad = bw_stripe_extent_decode(&range.item, &extent);
        found = !bad && try_extent(fs, &extent, devid, offset, place);
    }
    return bw_item_range_end(&range, NULL);
}

/* Chunks. */

/* Striped profiles: see find_striped() in xlators/cluster/layout.c. */
static uint64_t find_striped(const struct bw_device_range *range,
                             const struct bw_raid_profile *profile, uint64_t within,
                             struct bw_device_place *place)
{
    uint64_t row = within / BW_STRIPE_LENGTH, rest = within % BW_STRIPE_LENGTH;
    unsigned count = range->stripe_count, data = count - profile->parity_stripes;
    unsigned columns = data / profile->copies, column = range->stripe / profile->copies;
    place->copy = range->stripe % profile->copies + 1;
    shorten(place, BW_STRIPE_LENGTH - rest);
    if (profile->parity_stripes)
        column = (unsigned)((range->stripe + count - row % count) % count);
    if (column >= columns) {
        place->parity = column - columns + 1;
        place->copy = column = 0;
    }
    return (row * columns + column) * BW_STRIPE_LENGTH + rest;
}

static struct bw_error *find_in_chunk(const struct bw_device_map *map, uint64_t offset,
                                      struct bw_device_place *place)
{
    const struct bw_device_range *range = place->range;
    const struct bw_raid_profile *profile = bw_raid_profile_of(range->type);
    uint64_t devid = range->devid, within = offset - range->offset;
    if (map->fs->stripes && bw_chunk_in_stripe_tree(range->type))
        return search_stripe_tree(map->fs, devid, offset, place);
    place->copy = range->stripe + 1;
    if (profile->striped)
        within = find_striped(range, profile, within, place);
    place->logical = range->logical + within;
    if (within >= range->chunk_length) {
        place->copy = place->parity = 0;
        return NULL;
    }
    shorten(place, range->chunk_length - within);
    if (!map->fs->superblock.remap_root.bytenr || place->parity)
        return NULL;
    undo_move(map, place);
    if (!leads_here(map->fs, place, devid, offset))
        place->copy = 0;
    return NULL;
}

/* Devices. */

/* The range that holds an offset; NULL if none does. They cover the device, so only where some
 * overlap it may be another than the last one to begin. */
static const struct bw_device_range *range_at(const struct bw_device_map *map, uint64_t devid,
                                              uint64_t offset, bool *known)
{
    const struct bw_device_range *ranges = map->ranges;
    size_t next = BW_FIRST_INDEX(i, map->count,
                                 ranges[i].devid > devid ||
                                     (ranges[i].devid == devid && ranges[i].offset > offset));
    *known = (next && ranges[next - 1].devid == devid) ||
             (next < map->count && ranges[next].devid == devid);
    for (; next && ranges[next - 1].devid == devid; next--)
        if (offset - ranges[next - 1].offset < ranges[next - 1].length)
            return &ranges[next - 1];
    return NULL;
}

/* Whether a copy of the superblock is there; what lies before one ends where it begins. Those of
 * zoned devices have no fixed place. */
static bool in_superblock(const struct bw_fs *fs, uint64_t offset, struct bw_device_place *place)
{
    bool zoned = fs->superblock.incompat_flags & BW_INCOMPAT_ZONED;
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !zoned; copy++) {
        uint64_t begin = bw_superblock_offset(copy), skip = offset - begin;
        if (offset < begin) {
            shorten(place, begin - offset);
            return false;
        }
        if (skip < BW_SUPERBLOCK_SIZE) {
            shorten(place, BW_SUPERBLOCK_SIZE - skip);
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
    shorten(place, range->length - (offset - range->offset));
    if (in_superblock(map->fs, offset, place))
        place->use = BW_USE_SUPERBLOCK;
    return place->use == BW_USE_CHUNK ? find_in_chunk(map, offset, place) : NULL;
}
