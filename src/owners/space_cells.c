/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counting what lies in the cells of a map of space: pieces of chunks, and extents in them. */
#include <stdlib.h>

#include "owners/space_map.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "owners/references.h"
#include "owners/tree_list.h"

/* Cells. */

/* Where a cell begins. There are at most 2^22 of them. */
static uint64_t cell_begin(const struct bw_space_area *area, size_t number)
{
    const uint64_t count = area->cell_count;
    return number * (area->bytes / count) + number * (area->bytes % count) / count;
}

/* The cell that holds an offset below the size of the area. */
static size_t cell_at(const struct bw_space_area *area, uint64_t offset)
{
    size_t number = (size_t)((double)offset / (double)area->bytes * (double)area->cell_count);
    if (number >= area->cell_count)
        number = area->cell_count - 1;
    while (number && cell_begin(area, number) > offset)
        number--;
    while (number + 1 < area->cell_count && cell_begin(area, number + 1) <= offset)
        number++;
    return number;
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

/* What of a range lies in one cell. */
struct part {
    struct bw_space_count *cell;
    uint64_t bytes;
};

/* Takes the part in the next cell off a range of an area. */
static bool take_part(const struct bw_space_map *map, size_t area, uint64_t *begin, uint64_t end,
                      struct part *part)
{
    const struct bw_space_area *in = &map->areas[area];
    if (*begin >= end)
        return false;
    const size_t number = cell_at(in, *begin);
    uint64_t limit = cell_begin(in, number + 1);
    if (limit > end)
        limit = end;
    part->cell = &map->cells[area * map->options.cells + number];
    part->bytes = limit - *begin;
    *begin = limit;
    return true;
}

/* Pieces of chunks. */

void bw_space_add_piece(struct bw_space_map *map, const struct bw_space_piece *piece, uint64_t used)
{
    const double fill = used < piece->chunk_length ? (double)used / (double)piece->chunk_length : 1;
    const uint64_t bytes = piece->end - piece->begin, end = piece->offset + piece->end;
    uint64_t at = piece->offset + piece->begin;
    map->info.allocated[piece->kind] += bytes;
    map->info.used[piece->kind] += (uint64_t)((double)bytes * fill + 0.5);
    for (struct part part; take_part(map, piece->area, &at, end, &part);) {
        part.cell->allocated[piece->kind] += part.bytes;
        part.cell->used += (double)part.bytes * fill;
    }
}

/* Extents. */

/* A vote by bytes: who has more than half of them wins. */
static void vote(struct bw_space_count *cell, uint64_t owner, uint64_t bytes)
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

static struct bw_error *add_to_owner(struct bw_space_map *map, uint64_t id, uint64_t bytes)
{
    uint32_t number = bw_map_get(&map->owner_numbers, id);
    if (number == UINT32_MAX) {
        number = (uint32_t)map->owner_count;
        if (!BW_ARRAY_RESERVE(map->owners, map->owner_count, map->owner_capacity) ||
            !bw_map_put(&map->owner_numbers, id, number))
            return bw_error_no_memory();
        map->owners[map->owner_count++] = (struct bw_space_owner){.id = id};
    }
    map->owners[number].bytes += bytes;
    return NULL;
}

/* Of two offsets in a chunk, X * factor / divisor without overflow: a chunk ends below 2^64. */
static uint64_t scale(const struct bw_space_piece *piece, uint64_t offset)
{
    return offset / piece->divisor * piece->factor +
           offset % piece->divisor * piece->factor / piece->divisor;
}

struct bw_error *bw_space_add_used(struct bw_space_map *map, const struct bw_space_piece *piece,
                                   uint64_t begin, uint64_t end, const struct bw_space_use *use)
{
    uint64_t from = scale(piece, begin), to = scale(piece, end);
    from = from < piece->begin ? piece->begin : from;
    to = to > piece->end ? piece->end : to;
    if (from >= to)
        return NULL;
    map->info.used[piece->kind] += to - from;
    BW_TRY(add_to_owner(map, use->owner, to - from));
    uint64_t at = piece->offset + from;
    for (struct part part; take_part(map, piece->area, &at, piece->offset + to, &part);) {
        struct bw_space_count *cell = part.cell;
        cell->used += (double)part.bytes;
        cell->generation +=
            ((double)use->generation - cell->generation) * (double)part.bytes / (double)cell->used;
        vote(cell, use->owner, part.bytes);
    }
    return NULL;
}

/* The tree that all references in the item of an extent name; 0: they are of several, or by the
 * address of a block that may be of several. */
static uint64_t owner_of(const struct bw_extent_entry *extent)
{
    struct bw_extent_entry entry = *extent;
    struct bw_reference reference;
    uint64_t owner = 0;
    while (bw_extent_reference_step(&entry, &reference)) {
        if (reference.kind == 0) /* simple quotas say it */
            return reference.source;
        const bool named =
            reference.kind == BW_TREE_BLOCK_REF || reference.kind == BW_EXTENT_DATA_REF;
        if (!named || (owner && owner != reference.source))
            return 0;
        owner = reference.source;
    }
    return owner;
}

static void note_generation(struct bw_space_map_info *info, uint64_t generation)
{
    if (generation > info->newest)
        info->newest = generation;
    if (generation && (!info->oldest || generation < info->oldest))
        info->oldest = generation;
}

/* Extents come by ascending address. What one of them has is not counted for another one. */
static struct bw_error *take_item(void *context, const struct bw_item *item)
{
    struct bw_space_map *map = context;
    const struct bw_space_piece *pieces = map->pieces;
    struct bw_extent_entry extent;
    if (!bw_extent_entry_decode(map->fs, item, &extent))
        return NULL;
    uint64_t begin = extent.bytenr, end;
    if (__builtin_add_overflow(begin, extent.length, &end))
        end = UINT64_MAX;
    begin = begin < map->counted_to ? map->counted_to : begin;
    if (begin >= end)
        return NULL;
    map->counted_to = end;
    if (extent.generation > map->fs->superblock.generation)
        extent.generation = 0;
    note_generation(&map->info, extent.generation);
    const struct bw_space_use use = {extent.generation, owner_of(&extent)};
    size_t i =
        BW_FIRST_INDEX(n, map->piece_count, pieces[n].logical + pieces[n].chunk_length > begin);
    for (; i < map->piece_count && pieces[i].logical < end; i++) {
        const uint64_t first = pieces[i].logical, after = first + pieces[i].chunk_length;
        BW_TRY(bw_space_add_used(map, &pieces[i], begin > first ? begin - first : 0,
                                 (end < after ? end : after) - first, &use));
    }
    return NULL;
}

static int compare_owners(const void *left, const void *right)
{
    const struct bw_space_owner *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static struct bw_error *scan_trees(struct bw_space_map *map, const struct bw_tree_list *trees)
{
    bool found = false;
    for (size_t i = 0; i < trees->count; i++) {
        if (trees->entries[i].tree.id != BW_EXTENT_TREE)
            continue;
        found = true;
        map->counted_to = 0;
        BW_TRY(bw_fs_scan(map->fs, &trees->entries[i].tree, "extent tree", take_item, map));
    }
    if (!found)
        bw_fs_report(map->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "the extent tree is lost"));
    return NULL;
}

struct bw_error *bw_space_add_extents(struct bw_space_map *map)
{
    struct bw_tree_list trees = {0};
    struct bw_error *error = bw_tree_list_load(map->fs, &trees);
    if (!error)
        error = scan_trees(map, &trees);
    free(trees.entries);
    if (map->owner_count)
        qsort(map->owners, map->owner_count, sizeof *map->owners, compare_owners);
    map->info.owners = map->owners;
    map->info.owner_count = map->owner_count;
    return error;
}
