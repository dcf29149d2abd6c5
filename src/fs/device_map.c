/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lies on the devices: the stripes of all chunks, sorted by device and offset, and the holes
 * between them. device_place.c looks into them. */
#include "fs/device_map.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "ondisk/chunk.h"

/* Nothing is allocated before this offset. Source: BTRFS_DEVICE_RANGE_RESERVED in the kernel's
 * fs/btrfs/fs.h. */
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
    return profile && profile->striped
               ? (chunk->stripe_count - profile->parity_stripes) / profile->copies
               : 1;
}

uint64_t bw_chunk_stripe_length(const struct bw_chunk_info *chunk)
{
    return chunk->length / bw_chunk_different_stripes(chunk);
}

/* A list of ranges that grows. */
struct ranges {
    struct bw_fs *fs;
    struct bw_device_range *items;
    size_t count, capacity;
};

static struct bw_error *add(struct ranges *ranges, const struct bw_device_range *range)
{
    if (!BW_ARRAY_RESERVE(ranges->items, ranges->count, ranges->capacity))
        return bw_error_no_memory();
    ranges->items[ranges->count++] = *range;
    return NULL;
}

static struct bw_error *take_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct ranges *stripes = context;
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
            BW_TRY(add(stripes, &range));
        else
            bw_fs_report(stripes->fs, BW_DAMAGE,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "chunk %" PRIu64 ": stripe %u is beyond any device",
                                         chunk->logical, range.stripe));
    }
    return NULL;
}

/* A device is a range from its beginning to its end. */
static struct bw_error *take_device(void *context, const struct bw_device_info *device)
{
    return add(context,
               &(struct bw_device_range){.devid = device->devid, .length = device->total_bytes});
}

static int compare(const void *left, const void *right)
{
    const struct bw_device_range *a = left, *b = right;
    if (a->devid != b->devid)
        return a->devid < b->devid ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->logical == b->logical ? 0 : a->logical < b->logical ? -1 : 1;
}

static struct bw_error *add_hole(struct ranges *ranges, uint64_t devid, uint64_t from, uint64_t end)
{
    struct bw_device_range hole = {.devid = devid, .offset = from, .use = BW_USE_RESERVED};
    if (from < end && from < RESERVED_BYTES) {
        hole.length = (end < RESERVED_BYTES ? end : RESERVED_BYTES) - from;
        BW_TRY(add(ranges, &hole));
        hole.offset += hole.length;
    }
    if (hole.offset >= end)
        return NULL;
    hole.use = BW_USE_UNALLOCATED;
    hole.length = end - hole.offset;
    return add(ranges, &hole);
}

/* Adds the stripes of one device, all of `count`, and what is between them. */
static struct bw_error *add_device(struct ranges *ranges, uint64_t devid, uint64_t total_bytes,
                                   const struct bw_device_range *stripes, size_t count)
{
    uint64_t end = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        const struct bw_device_range *stripe = &stripes[i];
        if (stripe->offset < end)
            bw_fs_report(ranges->fs, BW_DAMAGE,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "chunks %" PRIu64 " and %" PRIu64 " overlap at %" PRIu64
                                         " of device %" PRIu64,
                                         last, stripe->logical, stripe->offset, devid));
        BW_TRY(add_hole(ranges, devid, end, stripe->offset));
        BW_TRY(add(ranges, stripe));
        if (stripe->offset + stripe->length <= end)
            continue;
        end = stripe->offset + stripe->length;
        last = stripe->logical;
    }
    return add_hole(ranges, devid, end, total_bytes);
}

/* Both lists are sorted. A device that only a chunk knows has no end. */
static struct bw_error *join(struct ranges *ranges, const struct ranges *devices,
                             const struct ranges *stripes)
{
    size_t device = 0, stripe = 0;
    while (device < devices->count || stripe < stripes->count) {
        const struct bw_device_range *known = &devices->items[device],
                                     *first = &stripes->items[stripe];
        bool is_known =
            device < devices->count && (stripe == stripes->count || known->devid <= first->devid);
        uint64_t devid = is_known ? known->devid : first->devid;
        size_t end = stripe;
        while (end < stripes->count && stripes->items[end].devid == devid)
            end++;
        BW_TRY(add_device(ranges, devid, is_known ? known->length : 0, first, end - stripe));
        stripe = end;
        device += is_known;
    }
    return NULL;
}

static struct bw_error *make_ranges(struct bw_fs *fs, struct ranges *devices,
                                    struct ranges *stripes, struct ranges *ranges)
{
    BW_TRY(bw_fs_devices(fs, take_device, devices));
    BW_TRY(bw_fs_chunks(fs, take_chunk, stripes));
    if (stripes->count)
        qsort(stripes->items, stripes->count, sizeof *stripes->items, compare);
    if (devices->count)
        qsort(devices->items, devices->count, sizeof *devices->items, compare);
    return join(ranges, devices, stripes);
}

struct bw_error *bw_device_map_open(struct bw_fs *fs, struct bw_device_map **result)
{
    struct ranges devices = {.fs = fs}, stripes = devices, ranges = devices;
    struct bw_device_map *map = *result = calloc(1, sizeof *map);
    if (!map)
        return bw_error_no_memory();
    struct bw_error *error = make_ranges(fs, &devices, &stripes, &ranges);
    free(devices.items);
    free(stripes.items);
    map->fs = fs;
    map->ranges = ranges.items;
    map->count = ranges.count;
    if (!error)
        error = bw_device_map_read_moved(map);
    if (error)
        bw_device_map_close(BW_TAKE(*result));
    return error;
}

void bw_device_map_close(struct bw_device_map *map)
{
    if (!map)
        return;
    free(map->ranges);
    free(map->moved);
    free(map);
}

size_t bw_device_map_count(const struct bw_device_map *map)
{
    return map->count;
}

const struct bw_device_range *bw_device_map_range(const struct bw_device_map *map, size_t number)
{
    return &map->ranges[number];
}
