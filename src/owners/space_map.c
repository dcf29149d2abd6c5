/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps of space: where devices and chunks lie in them. Chunks are first cut so that no byte of a
 * device counts twice, however chunks overlap, and a map takes no longer than it has cells and
 * chunks. What is in the cells is counted by space_cells.c.
 */
#include "owners/space_map.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "btrfs-walk/space.h"
#include "ondisk/chunk.h"

static unsigned kind_of(uint64_t type)
{
    switch (type & (BW_GROUP_DATA | BW_GROUP_METADATA)) {
    case BW_GROUP_DATA:
        return BW_SPACE_DATA;
    case BW_GROUP_METADATA:
        return BW_SPACE_METADATA;
    case BW_GROUP_DATA | BW_GROUP_METADATA:
        return BW_SPACE_MIXED;
    default:
        return BW_SPACE_SYSTEM;
    }
}

/* Areas. */

static struct bw_error *take_device(void *context, const struct bw_device_info *device)
{
    struct bw_space_map *map = context;
    const uint64_t wanted = map->options.devid;
    if ((wanted && device->devid != wanted) ||
        (map->device_count && map->devices[map->device_count - 1].devid >= device->devid))
        return NULL;
    if (!BW_ARRAY_RESERVE(map->devices, map->device_count, map->device_capacity))
        return bw_error_no_memory();
    map->devices[map->device_count++] =
        (struct bw_space_device){.devid = device->devid, .bytes = device->total_bytes};
    return NULL;
}

/* Adds a device to an area. Areas end below 2^64: what is beyond is left out. */
static void place_device(struct bw_space_map *map, struct bw_space_device *device, size_t number)
{
    struct bw_space_area *area = &map->areas[number];
    device->area = number;
    device->offset = area->bytes;
    if (device->bytes > UINT64_MAX - area->bytes)
        device->bytes = UINT64_MAX - area->bytes;
    area->bytes += device->bytes;
    if (__builtin_add_overflow(map->info.bytes, device->bytes, &map->info.bytes))
        map->info.bytes = UINT64_MAX;
}

enum { CELLS = 64 * 64 }; /* of an area, if the caller does not say */

static struct bw_error *make_areas(struct bw_space_map *map)
{
    struct bw_space_map_options *options = &map->options;
    BW_TRY(bw_fs_devices(map->fs, take_device, map));
    if (!map->device_count)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %" PRIu64, options->devid);
    const bool apart = options->by_device || options->devid;
    const size_t count = apart ? map->device_count : 1;
    options->cells = options->cells ? options->cells : CELLS;
    while (options->cells > 1 && options->cells > BW_SPACE_MOST_CELLS / count)
        options->cells /= 4;
    options->cells += !options->cells;
    map->info.areas = map->areas = calloc(count, sizeof *map->areas);
    map->cells = calloc(count * options->cells, sizeof *map->cells);
    if (!map->areas || !map->cells)
        return bw_error_no_memory();
    map->info.area_count = count;
    for (size_t i = 0; i < count; i++)
        map->areas[i].cell_count = options->cells;
    for (size_t i = 0; i < map->device_count; i++)
        place_device(map, &map->devices[i], apart ? i : 0);
    for (size_t i = 0; apart && i < count; i++)
        map->areas[i].devid = map->devices[i].devid;
    return NULL;
}

/* Pieces. */

static struct bw_error *add_piece(struct bw_space_map *map, const struct bw_space_piece *piece)
{
    if (!BW_ARRAY_RESERVE(map->pieces, map->piece_count, map->piece_capacity))
        return bw_error_no_memory();
    map->pieces[map->piece_count++] = *piece;
    return NULL;
}

static const struct bw_space_device *find_device(const struct bw_space_map *map, uint64_t devid)
{
    const struct bw_space_device *devices = map->devices;
    const size_t i = BW_FIRST_INDEX(n, map->device_count, devices[n].devid >= devid);
    return i < map->device_count && devices[i].devid == devid ? &devices[i] : NULL;
}

/* A piece for each stripe, as far as it lies on its device. */
static struct bw_error *take_stripes(void *context, const struct bw_chunk_info *chunk)
{
    struct bw_space_map *map = context;
    const uint64_t length = bw_chunk_stripe_length(chunk);
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        const uint64_t offset = chunk->stripes[i].offset;
        const struct bw_space_device *device = find_device(map, chunk->stripes[i].devid);
        if (!device || offset >= device->bytes)
            continue;
        const uint64_t room = device->bytes - offset;
        BW_TRY(add_piece(map, &(struct bw_space_piece){.logical = chunk->logical,
                                                       .chunk_length = chunk->length,
                                                       .factor = 1,
                                                       .divisor = bw_chunk_different_stripes(chunk),
                                                       .kind = kind_of(chunk->type),
                                                       .area = device->area,
                                                       .offset = device->offset + offset,
                                                       .end = length < room ? length : room}));
    }
    return NULL;
}

/* One piece, after that of the chunk before. */
static struct bw_error *take_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct bw_space_map *map = context;
    const struct bw_space_piece *last = map->piece_count ? &map->pieces[map->piece_count - 1] : 0;
    const uint64_t offset = last ? last->offset + last->end : 0;
    const uint64_t room = map->areas[0].bytes - offset;
    uint64_t length;
    if (__builtin_mul_overflow(bw_chunk_stripe_length(chunk), chunk->stripe_count, &length) ||
        length > room)
        length = room;
    return add_piece(map, &(struct bw_space_piece){.logical = chunk->logical,
                                                   .chunk_length = chunk->length,
                                                   .factor = chunk->stripe_count,
                                                   .divisor = bw_chunk_different_stripes(chunk),
                                                   .kind = kind_of(chunk->type),
                                                   .offset = offset,
                                                   .end = length});
}

static int by_place(const void *left, const void *right)
{
    const struct bw_space_piece *a = left, *b = right;
    if (a->area != b->area)
        return a->area < b->area ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->logical < b->logical ? -1 : a->logical > b->logical;
}

static int by_address(const void *left, const void *right)
{
    const struct bw_space_piece *a = left, *b = right;
    return a->logical != b->logical ? (a->logical < b->logical ? -1 : 1) : by_place(left, right);
}

/* Of pieces that overlap, the first one counts. */
static void cut_pieces(struct bw_space_map *map)
{
    uint64_t end = 0;
    size_t area = 0;
    for (size_t i = 0; i < map->piece_count; i++) {
        struct bw_space_piece *piece = &map->pieces[i];
        if (piece->area != area)
            end = 0;
        area = piece->area;
        if (piece->offset < end)
            piece->begin = end - piece->offset;
        if (piece->begin > piece->end)
            piece->begin = piece->end;
        if (piece->offset + piece->end > end)
            end = piece->offset + piece->end;
    }
}

static void sort_pieces(struct bw_space_map *map, int (*compare)(const void *, const void *))
{
    if (map->piece_count)
        qsort(map->pieces, map->piece_count, sizeof *map->pieces, compare);
}

/* Pieces of a chunk follow each other, and ask for its block group once. */
static struct bw_error *fill_from_groups(struct bw_space_map *map, struct bw_block_groups *groups)
{
    struct bw_block_group_info group = {.used = 0};
    for (size_t i = 0; i < map->piece_count; i++) {
        const struct bw_space_piece *piece = &map->pieces[i];
        if (!i || piece->logical != piece[-1].logical) {
            group.used = 0;
            struct bw_error *error = bw_block_groups_find(groups, piece->logical, &group);
            if (error && error->code == BW_ERROR_NO_MEMORY)
                return error;
            if (error && error->code == BW_ERROR_NOT_FOUND)
                bw_fs_report(map->fs, BW_DAMAGE, BW_TAKE(error));
            bw_error_free(error);
        }
        bw_space_add_piece(map, piece, group.used);
    }
    return NULL;
}

static struct bw_error *fill(struct bw_space_map *map)
{
    if (map->options.detail == BW_SPACE_CHUNKS) {
        struct bw_block_groups *groups;
        struct bw_error *error = bw_block_groups_open(map->fs, &groups);
        if (!error)
            error = fill_from_groups(map, groups);
        bw_block_groups_close(groups);
        return error;
    }
    for (size_t i = 0; i < map->piece_count; i++)
        bw_space_add_piece(map, &map->pieces[i], 0);
    return bw_space_add_extents(map);
}

/* The whole. */

static struct bw_error *make(struct bw_space_map *map)
{
    const bool logical = map->options.order == BW_SPACE_LOGICAL;
    if (map->options.cells > BW_SPACE_MOST_CELLS)
        return bw_error_create(BW_ERROR_USAGE, "a map has at most %d cells", BW_SPACE_MOST_CELLS);
    if (logical && (map->options.by_device || map->options.devid))
        return bw_error_create(BW_ERROR_USAGE,
                               "devices can be told apart in the physical order only");
    BW_TRY(make_areas(map));
    BW_TRY(bw_fs_chunks(map->fs, logical ? take_chunk : take_stripes, map));
    sort_pieces(map, by_place);
    cut_pieces(map);
    sort_pieces(map, by_address);
    return fill(map);
}

struct bw_error *bw_space_map_open(struct bw_fs *fs, const struct bw_space_map_options *options,
                                   struct bw_space_map **result)
{
    struct bw_space_map *map = *result = calloc(1, sizeof *map);
    if (!map)
        return bw_error_no_memory();
    map->fs = fs;
    map->options.struct_size = sizeof map->options;
    struct bw_error *error = BW_TAKE_OPTIONS(&map->options, options);
    if (!error)
        error = make(map);
    if (error)
        bw_space_map_close(BW_TAKE(*result));
    return error;
}

void bw_space_map_close(struct bw_space_map *map)
{
    if (!map)
        return;
    free(map->devices);
    free(map->areas);
    free(map->cells);
    free(map->pieces);
    free(map->owners);
    bw_map_free(&map->owner_numbers);
    free(map);
}

const struct bw_space_map_info *bw_space_map_info(const struct bw_space_map *map)
{
    return &map->info;
}
