/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The space in use, by device. Every byte of a device gets exactly one kind, in ascending order,
 * and neighbours of the same kind and use are one range.
 *
 * The device map has the stripes of a device in their order. Within a stripe, each step goes to the
 * next address where the use of its chunk changes. All profiles share one formula: a stripe has
 * every n-th piece of 64 KiB of its chunk, where n is 1 without striping. With parity, rows of such
 * pieces are in use as a whole. The raid stripe tree replaces all this for the chunks whose data it
 * places.
 *
 * In doubt, space is in use: where ranges overlap, where chunks may be unknown, and where the
 * stripe tree is damaged. Superblocks and ranges that the caller added interrupt all of these.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "fs/image.h"
#include "ondisk/chunk.h"
#include "ondisk/superblock.h"
#include "owners/used_space.h"

/* A device whose ranges are visited. */
struct used_device {
    struct bw_used_map *map;
    struct bw_device_info info;
    bool chunks_lost; /* it may have chunks that are not known */
    struct bw_span superblocks[BW_SUPERBLOCK_COPIES];
    const struct bw_range_set *extra; /* added by the caller; NULL: nothing */
    uint64_t size;                    /* of its image, or of the device if it is missing */
    struct bw_used_range waiting;     /* until it is known where it ends; empty at first */
    bw_used_visitor *visit;
    void *context;
};

/* Adds the part of the next range that the device has. Superblocks, and ranges that the caller has
 * added, may lie in it. A range waits until it is known where it ends; then it is delivered. */
static struct bw_error *add_range(struct used_device *device, uint64_t offset, uint64_t length,
                                  enum bw_used_kind kind, bool in_use)
{
    struct bw_used_range *waiting = &device->waiting;
    if (offset >= device->size)
        return NULL;
    const uint64_t end = offset + bw_min(length, device->size - offset);
    for (uint64_t to; offset < end; offset = to) {
        struct bw_used_range part = {
            .devid = device->info.devid, .offset = offset, .kind = kind, .in_use = in_use};
        to = end;
        for (unsigned i = 0; i < BW_SUPERBLOCK_COPIES; i++) {
            const struct bw_span *copy = &device->superblocks[i];
            if (copy->start <= offset && copy->end > offset)
                part.kind = BW_USED_SUPERBLOCK;
            const uint64_t limit = copy->start > offset ? copy->start : copy->end;
            to = limit > offset ? bw_min(to, limit) : to;
        }
        if (part.kind != BW_USED_SUPERBLOCK && !in_use && device->extra &&
            bw_range_set_has(device->extra, offset, &to))
            part.kind = BW_USED_HISTORY;
        part.in_use |= part.kind != kind;
        part.length = to - offset;
        if (waiting->length && waiting->kind == part.kind && waiting->in_use == part.in_use) {
            waiting->length += part.length;
            continue;
        }
        if (waiting->length)
            BW_TRY(device->visit(device->context, waiting));
        *waiting = part;
    }
    return NULL;
}

/* Adds a range within a stripe; free space of seed devices counts as in use, because trees that
 * only the seed itself has are free for the file system that sprouted from it. */
static struct bw_error *add_in_stripe(struct used_device *device,
                                      const struct bw_device_range *range, uint64_t from,
                                      uint64_t to, enum bw_used_kind kind)
{
    return add_range(device, range->offset + from, to - from, kind,
                     kind != BW_USED_FREE || device->info.seed);
}

/* Stripes. */

/* The offset in a stripe, which has one of `columns` pieces in each row of the chunk, of the first
 * byte that comes from an offset in the chunk or after it. */
static uint64_t offset_in_stripe(unsigned columns, unsigned column, uint64_t chunk_offset)
{
    const uint64_t row_length = (uint64_t)columns * BW_STRIPE_LENGTH,
                   row = chunk_offset / row_length, within = chunk_offset % row_length,
                   start = (uint64_t)column * BW_STRIPE_LENGTH;
    const uint64_t rest = within < start ? 0 : within - start;
    return row * BW_STRIPE_LENGTH + bw_min(rest, BW_STRIPE_LENGTH);
}

/* The kind of the space at an offset in a chunk; `*end`, another one, is cut to where it changes.
 */
static enum bw_used_kind kind_in_chunk(const struct bw_used_map *map,
                                       const struct bw_device_range *range, uint64_t offset,
                                       uint64_t *end)
{
    uint64_t until = range->logical + *end;
    if (!(range->type & (BW_GROUP_DATA | BW_GROUP_METADATA)))
        return BW_USED_SYSTEM;
    const enum bw_used_kind kind = bw_used_kind_at(map, range->logical + offset, &until);
    *end = until - range->logical;
    return kind;
}

static struct bw_error *add_plain(struct used_device *device, const struct bw_device_range *range,
                                  unsigned columns, unsigned column)
{
    uint64_t at = 0;
    while (at < range->length) {
        const uint64_t row = at / BW_STRIPE_LENGTH, into = at % BW_STRIPE_LENGTH;
        const uint64_t from = (row * columns + column) * BW_STRIPE_LENGTH + into;
        uint64_t end = range->chunk_length;
        if (from >= end)
            break;
        const enum bw_used_kind kind = kind_in_chunk(device->map, range, from, &end);
        uint64_t to = offset_in_stripe(columns, column, end);
        to = to > at && to < range->length ? to : range->length;
        BW_TRY(add_in_stripe(device, range, at, to, kind));
        at = to;
    }
    return at < range->length ? add_in_stripe(device, range, at, range->length, BW_USED_FREE)
                              : NULL;
}

/* Adds a stripe of a chunk with parity. Rows that are free as a whole are free; of all others, the
 * piece of the stripe is in use, be it parity or data. */
static struct bw_error *add_with_parity(struct used_device *device,
                                        const struct bw_device_range *range, unsigned columns)
{
    const unsigned count = range->stripe_count;
    const uint64_t row_length = (uint64_t)columns * BW_STRIPE_LENGTH,
                   rows = range->length / BW_STRIPE_LENGTH;
    for (uint64_t row = 0; row < rows && range->offset + row * BW_STRIPE_LENGTH < device->size;) {
        uint64_t end = range->chunk_length, free_rows = 0;
        if (kind_in_chunk(device->map, range, row * row_length, &end) == BW_USED_FREE)
            free_rows = (end == range->chunk_length ? rows : end / row_length) - row;
        if (free_rows) {
            BW_TRY(add_in_stripe(device, range, row * BW_STRIPE_LENGTH,
                                 (row + free_rows) * BW_STRIPE_LENGTH, BW_USED_FREE));
            row += free_rows;
            continue;
        }
        const unsigned column = (unsigned)((range->stripe + count - row % count) % count);
        uint64_t from = (row * columns + column) * BW_STRIPE_LENGTH, length;
        uint64_t at = range->offset + row * BW_STRIPE_LENGTH;
        for (uint64_t done = 0; done < BW_STRIPE_LENGTH; done += length) {
            enum bw_used_kind kind = BW_USED_PARITY;
            end = from + BW_STRIPE_LENGTH - done;
            if (column < columns)
                kind = kind_in_chunk(device->map, range, from, &end);
            length = end - from;
            BW_TRY(add_range(device, at, length, kind, true));
            at += length;
            from = end;
        }
        row++;
    }
    const uint64_t end = rows * BW_STRIPE_LENGTH;
    return end < range->length ? add_in_stripe(device, range, end, range->length, BW_USED_FREE)
                               : NULL;
}

/* The raid stripe tree. */

/* A chunk whose data the stripe tree places: used is where that tree has an extent on this device.
 * If a part of the tree is lost, the whole stripe is in use. */
static struct bw_error *add_by_stripe_tree(struct used_device *device,
                                           const struct bw_device_range *range)
{
    struct bw_fs *fs = device->map->fs;
    BW_SCOPED(bw_range_set) struct bw_range_set set = {0};
    bool complete = fs->stripe_tree.id;
    if (complete) {
        struct bw_item_range items;
        struct bw_error *error = NULL;
        bw_item_range_begin(
            &items, &fs->reader, &fs->stripe_tree,
            (struct bw_key){range->logical, BW_RAID_STRIPE, 0},
            (struct bw_key){range->logical + range->chunk_length - 1, BW_RAID_STRIPE, UINT64_MAX});
        while (!error && bw_item_range_next(&items)) {
            struct bw_stripe_extent extent;
            if (items.error) {
                complete = false;
                bw_fs_report_range(fs, &items);
                continue;
            }
            if (items.item.key.type != BW_RAID_STRIPE)
                continue;
            BW_AUTO_ERROR struct bw_error *bad = bw_stripe_extent_decode(&items.item, &extent);
            if (bad)
                complete = false;
            for (unsigned i = 0; !bad && !error && i < extent.count; i++)
                if (extent.places[i].devid == range->devid)
                    error = bw_range_set_insert(&set, extent.places[i].offset,
                                                extent.places[i].offset + extent.length);
        }
        BW_TRY(bw_item_range_end(&items, error));
    }
    bw_range_set_join(&set);
    for (uint64_t at = 0, to; at < range->length; at = to) {
        uint64_t end = range->offset + range->length;
        const bool used = !complete || bw_range_set_has(&set, range->offset + at, &end);
        to = end - range->offset;
        BW_TRY(add_in_stripe(device, range, at, to, used ? BW_USED_DATA : BW_USED_FREE));
    }
    return NULL;
}

/* Devices. */

/* Adds the range with a number and those that overlap it, which damage causes: then all of them are
 * in use. `*number` moves past them. */
static struct bw_error *add_ranges(struct used_device *device, size_t *number)
{
    const struct bw_device_range *first = bw_device_map_range(device->map->devices, *number);
    const size_t count = bw_device_map_count(device->map->devices), begin = (*number)++;
    uint64_t end = first->offset + first->length;
    for (; *number < count; ++*number) {
        const struct bw_device_range *next = bw_device_map_range(device->map->devices, *number);
        if (next->devid != first->devid || next->offset >= end)
            break;
        if (next->offset + next->length > end)
            end = next->offset + next->length;
    }

    if (first->use == BW_USE_RESERVED)
        return add_range(device, first->offset, first->length, BW_USED_RESERVED, true);
    if (first->use != BW_USE_CHUNK)
        return add_range(device, first->offset, first->length, BW_USED_UNALLOCATED,
                         device->chunks_lost);
    if (*number > begin + 1)
        return add_range(device, first->offset, end - first->offset,
                         first->type & BW_GROUP_DATA ? BW_USED_DATA : BW_USED_METADATA, true);

    /* A single stripe. */
    const struct bw_raid_profile *profile = bw_raid_profile_of(first->type);
    unsigned columns = 1, column = 0;
    if (device->map->fs->stripes && bw_chunk_in_stripe_tree(first->type))
        return add_by_stripe_tree(device, first);
    if (profile->striped) {
        columns = (first->stripe_count - profile->parity_stripes) / profile->copies;
        column = first->stripe / profile->copies;
    }
    if (profile->striped && profile->parity_stripes)
        return add_with_parity(device, first, columns);
    return add_plain(device, first, columns, column);
}

struct bw_error *bw_used_map_device(struct bw_used_map *map, uint64_t devid, bw_used_visitor *visit,
                                    void *context)
{
    static const uint64_t zoned_starts[BW_SUPERBLOCK_COPIES] = {0, UINT64_C(512) << 30,
                                                                UINT64_C(4) << 40};
    const struct bw_superblock *superblock = &map->fs->superblock;

    /* The device, and the ranges that the caller has added to it. */
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(map->fs, &devices));
    size_t number = 0;
    while (number < devices.count && devices.items[number].devid != devid)
        number++;
    if (number == devices.count)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %" PRIu64, devid);
    struct used_device device = {
        .map = map, .info = devices.items[number], .visit = visit, .context = context};
    bw_range_set_join(&map->sets[BW_USED_HISTORY]);
    for (size_t i = 0; i < map->extras.count; i++) {
        bw_range_set_join(&map->extras.items[i].set);
        if (map->extras.items[i].devid == devid)
            device.extra = &map->extras.items[i].set;
    }
    device.size = device.info.path ? device.info.image_bytes : device.info.total_bytes;

    /* It may have chunks that are not known if the chunk tree is damaged. If all extents of the
     * device tree are known, the number of allocated bytes in the superblock of the device decides.
     * A rebuilt superblock without roots lacks it. */
    uint64_t bytes = 0, shortest = UINT64_C(8) << 30;
    for (size_t i = 0; i < bw_device_map_count(map->devices); i++) {
        const struct bw_device_range *range = bw_device_map_range(map->devices, i);
        if (range->use != BW_USE_CHUNK || range->devid != devid)
            continue;
        bytes += range->length;
        shortest = bw_min(shortest, range->length);
    }
    const struct bw_image *image = bw_image_of_device(map->fs, devid, device.info.uuid);
    device.chunks_lost = map->chunk_tree != BW_CHUNKS_KNOWN;
    if (map->chunk_tree == BW_CHUNKS_FOUND && image && superblock->chunk_root.bytenr)
        device.chunks_lost = bytes != image->superblock.device.bytes_used;

    /* Its superblocks. On a zoned device, each copy is a log in two zones, where nothing is
     * allocated. A stripe occupies a whole zone, so the shortest one shows the length of zones.
     * Source: sb_zone_number() in the kernel's fs/btrfs/zoned.c. */
    const bool zoned = superblock->incompat_flags & BW_INCOMPAT_ZONED;
    for (unsigned i = 0; i < BW_SUPERBLOCK_COPIES; i++) {
        const uint64_t start = zoned ? zoned_starts[i] : bw_superblock_offset(i);
        if (zoned && start < device.size)
            device.superblocks[i] = (struct bw_span){start, start + 2 * shortest};
        else if (!zoned && device.size >= BW_SUPERBLOCK_SIZE &&
                 start <= device.size - BW_SUPERBLOCK_SIZE)
            device.superblocks[i] = (struct bw_span){start, start + BW_SUPERBLOCK_SIZE};
    }

    /* Its ranges; those that the map lacks are at the end of the image. */
    uint64_t end = 0;
    for (size_t i = 0; i < bw_device_map_count(map->devices);) {
        if (bw_device_map_range(map->devices, i)->devid != devid) {
            i++;
            continue;
        }
        BW_TRY(add_ranges(&device, &i));
        end = device.waiting.offset + device.waiting.length;
    }
    if (end < device.size)
        BW_TRY(add_range(&device, end, device.size - end, BW_USED_UNALLOCATED, false));
    return device.waiting.length ? visit(context, &device.waiting) : NULL;
}
