/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Maps of space: areas and chunks, and the use of their cells.
 *
 * A scan of the extent tree counts the extents, and votes for the owners of cells. The references
 * of an extent contain the trees that refer to it, or the addresses of tree blocks that do, which
 * is usual after snapshots. The owners of such blocks are known only after the scan; a second scan
 * then votes for the owners of the extents with addresses.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/hash_table.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "data/references.h"
#include "fs/fs.h"
#include "ondisk/chunk.h"
#include "owners/tree_list.h"

/* The counters of a cell. */
struct bw_space_count {
    uint64_t allocated[BW_SPACE_KINDS];
    double used;
    double generation;      /* mean */
    uint64_t owner, weight; /* of a majority vote by bytes */
};

/* A part of a chunk that lies in one piece in an area. */
struct bw_space_piece {
    uint64_t logical, chunk_length;
    /* The byte at X of the chunk is taken to lie at X * factor / divisor of the piece. */
    unsigned factor, divisor;
    unsigned kind; /* enum bw_space_kind */
    size_t area;
    uint64_t offset;     /* in the area */
    uint64_t begin, end; /* of the piece what counts: the rest is taken by another one */
};

/* Where a device lies. */
struct bw_space_device {
    uint64_t devid, bytes;
    size_t area;
    uint64_t offset; /* in the area */
};

BW_VECTOR(bw_space_pieces, struct bw_space_piece);

BW_VECTOR(bw_space_devices, struct bw_space_device);

BW_VECTOR(bw_space_owners, struct bw_space_owner);

/* One that refers to a tree block. */
struct bw_referrer {
    uint64_t id; /* a tree, or the address of another block */
    bool is_block;
};

BW_MAP(bw_referrers, uint64_t, struct bw_referrer, bw_key);

struct bw_space_map {
    struct bw_space_map_info info;
    struct bw_space_map_options options;
    struct bw_fs *fs;                /* while it is made */
    struct bw_space_devices devices; /* by ascending id */
    struct bw_space_area *areas;
    struct bw_space_count *cells;  /* options.cells for each area */
    struct bw_space_pieces pieces; /* ascending by logical address, when extents are counted */
    struct bw_space_owners owners;
    struct bw_key_map owner_numbers; /* of `owners`, by id */
    struct bw_referrers referrers;   /* of tree blocks, by address */
    struct bw_key_set writable;      /* ids of the subvolumes that are not read-only */
    bool is_second_scan, needs_second_scan;
};

/* Cells. */

/* Where a cell begins. There are at most 2^22 of them. */
static uint64_t cell_begin(const struct bw_space_area *area, size_t number)
{
    const uint64_t count = area->cell_count;
    return number * (area->bytes / count) + number * (area->bytes % count) / count;
}

struct bw_space_cell bw_space_map_cell(const struct bw_space_map *map, size_t area, size_t number)
{
    const struct bw_space_area *in = &map->areas[area];
    const struct bw_space_count *count = &map->cells[area * map->options.cells + number];
    struct bw_space_cell cell = {.offset = cell_begin(in, number),
                                 .generation = (uint64_t)(count->generation + 0.5),
                                 .owner = count->owner};
    double allocated = 0, used = count->used;
    cell.bytes = cell_begin(in, number + 1) - cell.offset;
    for (unsigned kind = 0; kind < BW_SPACE_KINDS; kind++)
        allocated += (double)(cell.allocated[kind] = count->allocated[kind]);
    if (used > allocated) /* several extent trees have the same */
        used = allocated;
    cell.used = (uint64_t)(used + 0.5);
    cell.fill = cell.bytes ? used / (double)cell.bytes : 0;
    return cell;
}

/* Takes the part in the next cell off a range of an area, and returns its length; 0 at the end. */
static uint64_t claim_part(const struct bw_space_map *map, size_t area, uint64_t *begin,
                           uint64_t end, struct bw_space_count **cell)
{
    const struct bw_space_area *in = &map->areas[area];
    const uint64_t offset = *begin;
    if (offset >= end)
        return 0;
    size_t number = (size_t)((double)offset / (double)in->bytes * (double)in->cell_count);
    if (number >= in->cell_count)
        number = in->cell_count - 1;
    while (number && cell_begin(in, number) > offset)
        number--;
    while (number + 1 < in->cell_count && cell_begin(in, number + 1) <= offset)
        number++;
    *cell = &map->cells[area * map->options.cells + number];
    *begin = bw_min(cell_begin(in, number + 1), end);
    return *begin - offset;
}

/* Pieces of chunks. */

/* Counts a piece as allocated, and `used` of the bytes of its chunk as used, evenly. */
static void space_add_piece(struct bw_space_map *map, const struct bw_space_piece *piece,
                            uint64_t used)
{
    const double fill = used < piece->chunk_length ? (double)used / (double)piece->chunk_length : 1;
    const uint64_t bytes = piece->end - piece->begin, end = piece->offset + piece->end;
    uint64_t at = piece->offset + piece->begin, part;
    struct bw_space_count *cell;
    map->info.allocated[piece->kind] += bytes;
    map->info.used[piece->kind] += (uint64_t)((double)bytes * fill + 0.5);
    while ((part = claim_part(map, piece->area, &at, end, &cell))) {
        cell->allocated[piece->kind] += part;
        cell->used += (double)part * fill;
    }
}

/* Extents. */

/* A vote by bytes: the owner of more than half of them wins. */
static void vote_for_owner(struct bw_space_count *cell, uint64_t owner, uint64_t bytes)
{
    if (cell->owner == owner) {
        cell->weight += bytes;
    } else if (cell->weight >= bytes) {
        cell->weight -= bytes;
    } else {
        cell->owner = owner;
        cell->weight = bytes - cell->weight;
    }
}

/* X * factor / divisor without overflow, for an offset in a chunk: chunks end below 2^64. */
static uint64_t scale_offset(const struct bw_space_piece *piece, uint64_t offset)
{
    return offset / piece->divisor * piece->factor +
           offset % piece->divisor * piece->factor / piece->divisor;
}

/* Adds bytes to an owner. */
static struct bw_error *add_to_owner(struct bw_space_map *map, uint64_t owner, uint64_t bytes)
{
    uint32_t number = bw_key_map_get(&map->owner_numbers, owner, UINT32_MAX);
    if (number == UINT32_MAX) {
        number = (uint32_t)map->owners.count;
        BW_TRY(bw_key_map_put(&map->owner_numbers, owner, number));
        BW_TRY(bw_space_owners_push(&map->owners, (struct bw_space_owner){.id = owner}));
    }
    map->owners.items[number].bytes += bytes;
    return NULL;
}

/* Finds the tree that an extent counts for. If several trees refer to it, a subvolume that can be
 * written comes before read-only snapshots, and then the oldest comes first. Below a shared block,
 * extents refer only to that tree anyway, so the rule does not depend on the height of trees.
 * `*block`: the address of a tree block among the references, which the first scan cannot follow;
 * 0: none. */
static uint64_t owner_of(const struct bw_space_map *map, const struct bw_extent_entry *extent,
                         uint64_t *block)
{
    struct bw_extent_entry entry = *extent;
    struct bw_reference reference;
    uint64_t owner = 0;
    bool is_writable = false;
    *block = 0;
    while (bw_extent_reference_step(&entry, &reference)) {
        uint64_t candidate = reference.source;
        if (reference.kind == 0) /* simple quotas record it */
            return candidate;
        if (reference.kind == BW_SHARED_BLOCK_REF && candidate == extent->bytenr) {
            candidate = BW_TREE_RELOC; /* its roots refer to themselves */
        } else if (reference.kind != BW_TREE_BLOCK_REF && reference.kind != BW_EXTENT_DATA_REF) {
            /* The addresses of tree blocks lead to a tree that refers to the first of them. */
            struct bw_referrer referrer = {candidate, true};
            for (unsigned level = 0;
                 map->is_second_scan && level < BW_MAX_LEVEL && referrer.is_block; level++)
                referrer =
                    bw_referrers_get(&map->referrers, referrer.id, (struct bw_referrer){0, false});
            *block = candidate;
            candidate = referrer.is_block ? 0 : referrer.id;
        }
        const bool writable = bw_key_set_has(&map->writable, candidate);
        const bool is_better = writable != is_writable ? writable : candidate < owner;
        if (candidate && (!owner || is_better)) {
            owner = candidate;
            is_writable = writable;
        }
    }
    return owner;
}

static int compare_owners(const void *left, const void *right)
{
    const struct bw_space_owner *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){b->bytes, a->id}), ((uint64_t[]){a->bytes, b->id}));
}

/* Counts the extents of all extent trees. They come by ascending address; a part shared with the
 * previous extent is not counted again. */
static struct bw_error *scan_extents(struct bw_space_map *map, const struct bw_tree_list *trees)
{
    const struct bw_space_piece *pieces = map->pieces.items;
    uint64_t counted_to = 0;
    struct bw_item_stream stream;
    struct bw_error *error = bw_item_stream_begin(&stream, map->fs, trees, BW_EXTENT_TREE);
    if (!error && !stream.count)
        bw_fs_report_text(map->fs, BW_DAMAGE, BW_ERROR_CORRUPT, "the extent tree is lost");
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        struct bw_extent_entry extent;
        if (!bw_extent_entry_decode(map->fs, &stream.item, &extent))
            continue;
        uint64_t end, block;
        if (__builtin_add_overflow(extent.bytenr, extent.length, &end))
            end = UINT64_MAX;
        const uint64_t begin = bw_max(extent.bytenr, counted_to);
        if (begin >= end)
            continue;
        counted_to = end;
        if (extent.generation > map->fs->superblock.generation)
            extent.generation = 0;
        if (extent.generation > map->info.newest)
            map->info.newest = extent.generation;
        if (extent.generation && (!map->info.oldest || extent.generation < map->info.oldest))
            map->info.oldest = extent.generation;
        const uint64_t owner = owner_of(map, &extent, &block);
        if (map->is_second_scan && !block)
            continue;
        map->needs_second_scan |= block != 0;
        if (extent.is_block && !map->is_second_scan)
            error = bw_referrers_put(
                &map->referrers, extent.bytenr,
                (struct bw_referrer){.id = owner ? owner : block, .is_block = !owner && block});

        /* The parts of its bytes from `begin` on, in the pieces of chunks and in their cells. */
        const bool votes = map->is_second_scan || !block;
        size_t i = BW_FIRST_INDEX(n, map->pieces.count,
                                  pieces[n].logical + pieces[n].chunk_length > begin);
        for (; !error && i < map->pieces.count && pieces[i].logical < end; i++) {
            const struct bw_space_piece *piece = &pieces[i];
            const uint64_t first = piece->logical, after = first + piece->chunk_length;
            const uint64_t from =
                bw_max(scale_offset(piece, bw_max(begin, first) - first), piece->begin);
            const uint64_t to = bw_min(scale_offset(piece, bw_min(end, after) - first), piece->end);
            if (from >= to)
                continue;
            if (votes)
                error = add_to_owner(map, owner, to - from);
            if (!map->is_second_scan)
                map->info.used[piece->kind] += to - from;
            struct bw_space_count *cell;
            uint64_t at = piece->offset + from, part;
            while ((part = claim_part(map, piece->area, &at, piece->offset + to, &cell))) {
                if (votes)
                    vote_for_owner(cell, owner, part);
                if (map->is_second_scan)
                    continue;
                cell->used += (double)part;
                cell->generation += ((double)extent.generation - cell->generation) * (double)part /
                                    (double)cell->used;
            }
        }
    }
    return bw_item_stream_end(&stream, error);
}

/* Counts the extents, and whose they are. */
static struct bw_error *add_extents(struct bw_space_map *map)
{
    struct bw_tree_list trees = {.report = true};
    struct bw_error *error = bw_tree_list_load(map->fs, &trees);
    for (size_t i = 0; !error && i < trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &trees.entries.items[i];
        bool is_new;
        if (tree->is_subvolume && tree->references && !(tree->flags & BW_ROOT_READ_ONLY))
            error = bw_key_set_add(&map->writable, tree->tree.id, &is_new);
    }
    if (!error)
        error = scan_extents(map, &trees);
    map->is_second_scan = true;
    if (!error && map->needs_second_scan)
        error = scan_extents(map, &trees);
    bw_referrers_free(&map->referrers);
    bw_key_set_free(&map->writable);
    bw_listed_trees_free(&trees.entries);
    bw_space_owners_sort(&map->owners, compare_owners);
    map->info.owners = map->owners.items;
    map->info.owner_count = map->owners.count;
    return error;
}

/*
 * The places of devices and chunks in a map. Overlapping chunks are cut first: then each byte of a
 * device counts only once, and making a map takes time in proportion to its cells and chunks.
 */

/* Areas. */

enum { CELLS = 64 * 64 }; /* of an area, if the caller does not say */

/* Makes the areas, each with its cells, and gives each device its place in one. */
static struct bw_error *make_areas(struct bw_space_map *map)
{
    struct bw_space_map_options *options = &map->options;
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(map->fs, &devices));
    for (size_t i = 0; i < devices.count; i++) {
        const struct bw_device_info *device = &devices.items[i];
        const size_t known = map->devices.count;
        if ((options->devid && device->devid != options->devid) ||
            (known && map->devices.items[known - 1].devid >= device->devid))
            continue;
        BW_TRY(bw_space_devices_push(
            &map->devices,
            (struct bw_space_device){.devid = device->devid, .bytes = device->total_bytes}));
    }
    if (!map->devices.count)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %" PRIu64, options->devid);
    const bool apart = options->by_device || options->devid;
    const size_t count = apart ? map->devices.count : 1;
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
    for (size_t i = 0; i < map->devices.count; i++) {
        struct bw_space_device *device = &map->devices.items[i];
        struct bw_space_area *area = &map->areas[apart ? i : 0];
        device->area = apart ? i : 0;
        device->offset = area->bytes;
        if (device->bytes > UINT64_MAX - area->bytes) /* areas end below 2^64 */
            device->bytes = UINT64_MAX - area->bytes;
        area->bytes += device->bytes;
        area->devid = apart ? device->devid : 0;
        if (__builtin_add_overflow(map->info.bytes, device->bytes, &map->info.bytes))
            map->info.bytes = UINT64_MAX;
    }
    return NULL;
}

/* Pieces. */

/* Adds the pieces of a chunk. In the logical order, it is one piece, after the piece of the
 * previous chunk; otherwise one for each stripe, as far as it lies on its device. */
static struct bw_error *add_chunk(struct bw_space_map *map, const struct bw_chunk_info *chunk)
{
    static const uint8_t kinds[] = {[0] = BW_SPACE_SYSTEM,
                                    [BW_GROUP_DATA] = BW_SPACE_DATA,
                                    [BW_GROUP_METADATA] = BW_SPACE_METADATA,
                                    [BW_GROUP_DATA | BW_GROUP_METADATA] = BW_SPACE_MIXED};
    const struct bw_space_device *devices = map->devices.items;
    const uint64_t length = bw_chunk_stripe_length(chunk);
    struct bw_space_piece piece = {.logical = chunk->logical,
                                   .chunk_length = chunk->length,
                                   .divisor = bw_chunk_different_stripes(chunk),
                                   .kind =
                                       kinds[chunk->type & (BW_GROUP_DATA | BW_GROUP_METADATA)]};
    if (map->options.order == BW_SPACE_LOGICAL) {
        const size_t count = map->pieces.count;
        const struct bw_space_piece *last = count ? &map->pieces.items[count - 1] : NULL;
        piece.factor = chunk->stripe_count;
        piece.offset = last ? last->offset + last->end : 0;
        const uint64_t room = map->areas[0].bytes - piece.offset;
        if (__builtin_mul_overflow(length, chunk->stripe_count, &piece.end) || piece.end > room)
            piece.end = room;
        return bw_space_pieces_push(&map->pieces, piece);
    }
    piece.factor = 1;
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        const uint64_t devid = chunk->stripes[i].devid, offset = chunk->stripes[i].offset;
        const size_t at = BW_FIRST_INDEX(n, map->devices.count, devices[n].devid >= devid);
        if (at == map->devices.count || devices[at].devid != devid || offset >= devices[at].bytes)
            continue;
        const uint64_t room = devices[at].bytes - offset;
        piece.area = devices[at].area;
        piece.offset = devices[at].offset + offset;
        piece.end = length < room ? length : room;
        BW_TRY(bw_space_pieces_push(&map->pieces, piece));
    }
    return NULL;
}

static int by_place(const void *left, const void *right)
{
    const struct bw_space_piece *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->area, a->offset, a->logical}),
                          ((uint64_t[]){b->area, b->offset, b->logical}));
}

static int by_address(const void *left, const void *right)
{
    const struct bw_space_piece *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->logical, a->area, a->offset}),
                          ((uint64_t[]){b->logical, b->area, b->offset}));
}

/* The whole. */

static struct bw_error *make_map(struct bw_space_map *map)
{
    const bool logical = map->options.order == BW_SPACE_LOGICAL;
    if (map->options.cells > BW_SPACE_MOST_CELLS)
        return bw_error_create(BW_ERROR_USAGE, "a map has at most %d cells", BW_SPACE_MOST_CELLS);
    if (logical && (map->options.by_device || map->options.devid))
        return bw_error_create(BW_ERROR_USAGE, "only the physical order separates devices");
    BW_TRY(make_areas(map));
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(map->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++)
        BW_TRY(add_chunk(map, &chunks.items[i]));

    /* If pieces overlap, the first one counts. */
    uint64_t end = 0;
    bw_space_pieces_sort(&map->pieces, by_place);
    for (size_t i = 0; i < map->pieces.count; i++) {
        struct bw_space_piece *piece = &map->pieces.items[i];
        if (i && piece->area != piece[-1].area)
            end = 0;
        if (piece->offset < end)
            piece->begin = end - piece->offset;
        if (piece->begin > piece->end)
            piece->begin = piece->end;
        if (piece->offset + piece->end > end)
            end = piece->offset + piece->end;
    }
    bw_space_pieces_sort(&map->pieces, by_address);

    /* The use of the cells: of the block groups, or of the extents. */
    if (map->options.detail == BW_SPACE_CHUNKS) {
        struct bw_block_groups *groups;
        struct bw_block_group_info group;
        struct bw_error *error = bw_block_groups_open(map->fs, &groups);
        for (size_t i = 0; !error && i < map->pieces.count; i++) {
            /* Pieces of a chunk follow each other, and ask for its block group once. */
            const struct bw_space_piece *piece = &map->pieces.items[i];
            if (!i || piece->logical != piece[-1].logical)
                error = bw_block_groups_read(groups, piece->logical, &group);
            space_add_piece(map, piece, group.used);
        }
        bw_block_groups_close(groups);
        return error;
    }
    for (size_t i = 0; i < map->pieces.count; i++)
        space_add_piece(map, &map->pieces.items[i], 0);
    return add_extents(map);
}

struct bw_error *bw_space_map_open(struct bw_fs *fs, const struct bw_space_map_options *options,
                                   struct bw_space_map **result)
{
    *result = NULL;
    if (fs->is_stream)
        return bw_error_create(BW_ERROR_USAGE, "a send stream has no extents on a disk");
    struct bw_space_map *map = *result = calloc(1, sizeof *map);
    if (!map)
        return bw_error_no_memory();
    map->fs = fs;
    map->options.struct_size = sizeof map->options;
    struct bw_error *error = BW_TAKE_OPTIONS(&map->options, options);
    if (!error)
        error = make_map(map);
    if (error)
        bw_space_map_close(BW_TAKE(*result));
    return error;
}

void bw_space_map_close(struct bw_space_map *map)
{
    if (!map)
        return;
    bw_space_devices_free(&map->devices);
    free(map->areas);
    free(map->cells);
    bw_space_pieces_free(&map->pieces);
    bw_space_owners_free(&map->owners);
    bw_key_map_free(&map->owner_numbers);
    free(map);
}

const struct bw_space_map_info *bw_space_map_info(const struct bw_space_map *map)
{
    return &map->info;
}
