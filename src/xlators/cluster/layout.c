/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chunk table and the arithmetic of the RAID profiles.
 *
 * Chunks are sorted by logical address, so one is found by a binary search. Profiles without
 * striping have each byte at the same offset of all their stripes. The others divide a chunk into
 * pieces of one stripe length (64 KiB) that rotate over the columns: its stripes, or in RAID10
 * pairs of them. With parity, the first column of a row is one stripe further than in the row
 * before.
 */
#include "xlators/cluster/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/search.h"

void bw_layout_free(struct bw_layout *layout)
{
    for (size_t i = 0; i < layout->chunk_count; i++)
        free(layout->chunks[i].stripes);
    free(layout->chunks);
    free(layout->devices);
    *layout = (struct bw_layout){0};
}

struct bw_error *bw_layout_add_device(struct bw_layout *layout,
                                      const struct bw_control_device *device)
{
    if (!BW_ARRAY_RESERVE(layout->devices, layout->device_count, layout->device_capacity))
        return bw_error_no_memory();
    layout->devices[layout->device_count++] = *device;
    return NULL;
}

static const struct bw_control_device *find_device(const struct bw_layout *layout, uint64_t devid,
                                                   const uint8_t *uuid)
{
    for (size_t i = 0; i < layout->device_count; i++)
        if (layout->devices[i].devid == devid &&
            memcmp(layout->devices[i].uuid, uuid, BW_UUID_SIZE) == 0)
            return &layout->devices[i];
    return NULL;
}

/* Index of the first chunk that ends after `address`. */
static size_t lower_bound(const struct bw_layout *layout, uint64_t address)
{
    const struct bw_layout_chunk *chunks = layout->chunks;
    return BW_FIRST_INDEX(i, layout->chunk_count,
                          chunks[i].logical > address ||
                              address - chunks[i].logical < chunks[i].length);
}

struct bw_error *bw_layout_add_chunk(struct bw_layout *layout, const struct bw_chunk_info *chunk)
{
    size_t index = lower_bound(layout, chunk->logical), next = index;
    bool same = index < layout->chunk_count && layout->chunks[index].logical == chunk->logical;
    next += same;
    if (next < layout->chunk_count && layout->chunks[next].logical - chunk->logical < chunk->length)
        return bw_error_create(BW_ERROR_CORRUPT, "chunk %" PRIu64 " overlaps chunk %" PRIu64,
                               chunk->logical, layout->chunks[next].logical);
    if (!same && index < layout->chunk_count && layout->chunks[index].logical < chunk->logical)
        return bw_error_create(BW_ERROR_CORRUPT, "chunk %" PRIu64 " lies in chunk %" PRIu64,
                               chunk->logical, layout->chunks[index].logical);
    struct bw_layout_chunk added = {.logical = chunk->logical,
                                    .length = chunk->length,
                                    .profile = bw_raid_profile_of(chunk->type),
                                    .stripe_count = (uint16_t)chunk->stripe_count,
                                    .in_stripe_tree = bw_chunk_in_stripe_tree(chunk->type),
                                    .alternatives = 1};
    added.stripes = calloc(chunk->stripe_count, sizeof *added.stripes);
    if (!added.stripes ||
        (!same && !BW_ARRAY_RESERVE(layout->chunks, layout->chunk_count, layout->chunk_capacity))) {
        free(added.stripes);
        return bw_error_no_memory();
    }

    /* The devices of the stripes. */
    for (uint16_t i = 0; i < chunk->stripe_count; i++) {
        const struct bw_stripe_info *from = &chunk->stripes[i];
        const struct bw_control_device *device =
            find_device(layout, from->devid, from->device_uuid);
        struct bw_layout_stripe *stripe = &added.stripes[i];
        *stripe = (struct bw_layout_stripe){from->devid, from->offset, BW_NO_CHILD, false, 1};
        if (!device)
            continue;
        stripe->child = (uint32_t)device->child;
        stripe->stale = device->stale;
        if (device->alternatives > 1)
            stripe->alternatives = (uint8_t)device->alternatives;
        if (stripe->alternatives > added.alternatives)
            added.alternatives = stripe->alternatives;
    }

    if (same) {
        free(layout->chunks[index].stripes);
    } else {
        memmove(layout->chunks + index + 1, layout->chunks + index,
                (layout->chunk_count - index) * sizeof *layout->chunks);
        layout->chunk_count++;
    }
    layout->chunks[index] = added;
    return NULL;
}

unsigned bw_layout_data_stripes(const struct bw_layout_chunk *chunk)
{
    return chunk->stripe_count - chunk->profile->parity_stripes;
}

const struct bw_layout_stripe *bw_layout_row_stripe(const struct bw_layout_chunk *chunk,
                                                    uint64_t row, unsigned part)
{
    return &chunk->stripes[(row + part) % chunk->stripe_count];
}

/* Striped profiles: pieces of one stripe length rotate over the stripes (or groups of equal
 * stripes). */
static void find_striped(uint64_t offset, struct bw_piece *piece)
{
    const struct bw_layout_chunk *chunk = piece->chunk;
    uint64_t number = offset / BW_STRIPE_LENGTH, within = offset % BW_STRIPE_LENGTH;
    unsigned copies = chunk->profile->copies;
    unsigned columns = chunk->stripe_count / copies;
    if (chunk->profile->parity_stripes)
        columns = bw_layout_data_stripes(chunk);
    piece->row = number / columns;
    piece->data_stripe = (uint16_t)(number % columns);
    if (chunk->profile->parity_stripes)
        piece->first_stripe = (uint16_t)((piece->row + piece->data_stripe) % chunk->stripe_count);
    else
        piece->first_stripe = (uint16_t)(piece->data_stripe * copies);
    piece->direct_copies = (uint16_t)copies;
    piece->stripe_offset = piece->row * BW_STRIPE_LENGTH + within;
    if (piece->length > BW_STRIPE_LENGTH - within)
        piece->length = (uint32_t)(BW_STRIPE_LENGTH - within);
}

struct bw_error *bw_layout_find(const struct bw_layout *layout, uint64_t address, uint32_t length,
                                struct bw_piece *piece)
{
    size_t index = lower_bound(layout, address);
    if (index == layout->chunk_count || layout->chunks[index].logical > address) {
        *piece = (struct bw_piece){.length = length};
        if (index < layout->chunk_count && layout->chunks[index].logical - address < length)
            piece->length = (uint32_t)(layout->chunks[index].logical - address);
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the chunk tree has no chunk for logical address %" PRIu64, address);
    }
    const struct bw_layout_chunk *chunk = &layout->chunks[index];
    uint64_t offset = address - chunk->logical;
    *piece = (struct bw_piece){.chunk = chunk, .length = length};
    if (length > chunk->length - offset)
        piece->length = (uint32_t)(chunk->length - offset);
    if (chunk->profile->striped) {
        find_striped(offset, piece);
        return NULL;
    }
    piece->direct_copies = chunk->profile->copies ? chunk->profile->copies : chunk->stripe_count;
    piece->stripe_offset = offset;
    return NULL;
}

/* The stripe of the chunk that lies on a device; NULL if none does. */
static const struct bw_layout_stripe *stripe_on(const struct bw_layout_chunk *chunk, uint64_t devid)
{
    for (unsigned i = 0; i < chunk->stripe_count; i++)
        if (chunk->stripes[i].devid == devid)
            return &chunk->stripes[i];
    return NULL;
}

void bw_layout_place(struct bw_piece *piece, uint64_t address,
                     const struct bw_stripe_extent *extent)
{
    uint64_t skip = address - extent->logical;
    if (piece->length > extent->length - skip)
        piece->length = (uint32_t)(extent->length - skip);
    piece->is_placed = true;
    piece->stripe_offset = 0;
    piece->direct_copies = extent->count;
    for (unsigned i = 0; i < extent->count; i++) {
        uint64_t devid = extent->places[i].devid;
        const struct bw_layout_stripe *stripe = stripe_on(piece->chunk, devid);
        struct bw_layout_stripe *place = &piece->places[i];
        *place = (struct bw_layout_stripe){devid, 0, BW_NO_CHILD, false, 1};
        if (stripe)
            *place = *stripe;
        place->offset = extent->places[i].offset + skip;
    }
}

/* The number of copies without alternatives. */
static unsigned count_ways(const struct bw_piece *piece)
{
    switch (piece->chunk->profile->parity_stripes) {
    case 0:
        return piece->direct_copies;
    case 1:
        return 2;
    default:
        /* Directly, by P, and by Q with each of the other stripes except Q regarded as bad, too. */
        return piece->chunk->stripe_count;
    }
}

/* Whether a way exists with an image of this number. Ways to compute a piece read several devices,
 * and use the first image of those that have fewer. */
static bool has_alternative(const struct bw_piece *piece, unsigned way, unsigned alternative)
{
    return alternative == 1 || way > piece->direct_copies ||
           bw_piece_stripe(piece, way)->alternatives >= alternative;
}

unsigned bw_piece_copies(const struct bw_piece *piece)
{
    const unsigned ways = count_ways(piece);
    unsigned count = ways;
    for (unsigned alternative = 2; alternative <= piece->chunk->alternatives; alternative++)
        for (unsigned way = 1; way <= ways; way++)
            count += has_alternative(piece, way, alternative);
    return count < UINT8_MAX ? count : UINT8_MAX; /* as bw_request.copy */
}

/* Counts the ways from `first` to `last` with each image; stops at number `*copy`, from 1 on. */
static bool find_way(const struct bw_piece *piece, unsigned first, unsigned last, unsigned *copy,
                     struct bw_piece_copy *found)
{
    for (unsigned alternative = 1; alternative <= piece->chunk->alternatives; alternative++)
        for (unsigned way = first; way <= last; way++)
            if (has_alternative(piece, way, alternative) && --*copy == 0) {
                *found = (struct bw_piece_copy){way, alternative};
                return true;
            }
    return false;
}

struct bw_piece_copy bw_piece_split_copy(const struct bw_piece *piece, unsigned copy)
{
    const unsigned ways = count_ways(piece);
    if (!copy || piece->chunk->alternatives <= 1)
        return (struct bw_piece_copy){copy, 0};
    const unsigned stored = piece->direct_copies < ways ? piece->direct_copies : ways;
    struct bw_piece_copy found = {ways + 1, 0};
    if (!find_way(piece, 1, stored, &copy, &found))
        find_way(piece, stored + 1, ways, &copy, &found);
    return found;
}

const struct bw_layout_stripe *bw_piece_stripe(const struct bw_piece *piece, unsigned copy)
{
    return piece->is_placed ? &piece->places[copy - 1]
                            : &piece->chunk->stripes[piece->first_stripe + copy - 1];
}
