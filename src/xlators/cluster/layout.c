/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The chunk table and the arithmetic of the RAID profiles.
 *
 * Chunks are sorted by logical address, so one is found by a binary search. Profiles without
 * striping have each byte at the same offset of all their stripes. The others divide a chunk into
 * pieces of one stripe length (64 KiB) that rotate over the columns: its stripes, or in RAID10
 * pairs of them. With parity, the first column of a row is one stripe further than in the row
 * before.
 *
 * The superblock and the chunk tree both have the system chunks, and may give one two lengths. It
 * has the longer one, unless another chunk begins in the part that only the longer one has.
 */
#include "xlators/cluster/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/search.h"

void bw_layout_free(struct bw_layout *layout)
{
    for (size_t i = 0; i < layout->chunks.count; i++)
        free(layout->chunks.items[i].stripes);
    bw_layout_chunks_free(&layout->chunks);
    bw_layout_devices_free(&layout->devices);
}

struct bw_error *bw_layout_add_device(struct bw_layout *layout,
                                      const struct bw_control_device *device)
{
    return bw_layout_devices_push(&layout->devices, *device);
}

/* Index of the first chunk that ends after `address`. */
static size_t lower_bound(const struct bw_layout *layout, uint64_t address)
{
    const struct bw_layout_chunk *chunks = layout->chunks.items;
    return BW_FIRST_INDEX(i, layout->chunks.count,
                          chunks[i].logical > address ||
                              address - chunks[i].logical < chunks[i].length);
}

struct bw_error *bw_layout_add_chunk(struct bw_layout *layout, const struct bw_chunk_info *chunk)
{
    struct bw_layout_chunk *chunks = layout->chunks.items;
    const size_t count = layout->chunks.count;
    uint64_t length = chunk->length, shorter = length;

    /* The position, and the length of a chunk with two lengths. */
    size_t index = lower_bound(layout, chunk->logical);
    if (index < count && chunks[index].logical < chunk->logical) {
        if (chunk->logical - chunks[index].logical < chunks[index].shorter)
            return bw_error_create(BW_ERROR_CORRUPT, "chunk %" PRIu64 " lies in chunk %" PRIu64,
                                   chunk->logical, chunks[index].logical);
        chunks[index].length = chunks[index].shorter;
        index++;
    }
    const bool same = index < count && chunks[index].logical == chunk->logical;
    const uint64_t space =
        index + same < count ? chunks[index + same].logical - chunk->logical : UINT64_MAX;
    if (same) {
        shorter = bw_min(shorter, chunks[index].shorter);
        length = bw_max(length, chunks[index].length);
        if (length > space)
            length = shorter;
    }
    if (length > space)
        return bw_error_create(BW_ERROR_CORRUPT, "chunk %" PRIu64 " overlaps chunk %" PRIu64,
                               chunk->logical, chunks[index + same].logical);
    struct bw_layout_chunk added = {.logical = chunk->logical,
                                    .length = length,
                                    .shorter = shorter,
                                    .profile = bw_raid_profile_of(chunk->type),
                                    .stripe_count = (uint16_t)chunk->stripe_count,
                                    .in_stripe_tree = bw_chunk_in_stripe_tree(chunk->type),
                                    .alternatives = 1};
    BW_TRY(bw_layout_chunks_reserve(&layout->chunks, 1));
    added.stripes = calloc(chunk->stripe_count, sizeof *added.stripes);
    if (!added.stripes)
        return bw_error_no_memory();

    /* The devices of the stripes. */
    for (uint16_t i = 0; i < chunk->stripe_count; i++) {
        const struct bw_stripe_info *from = &chunk->stripes[i];
        const struct bw_control_device *devices = layout->devices.items;
        size_t number = 0;
        struct bw_layout_stripe *stripe = &added.stripes[i];
        *stripe = (struct bw_layout_stripe){from->devid, from->offset, BW_NO_CHILD, false, 1};
        while (number < layout->devices.count &&
               (devices[number].devid != from->devid ||
                memcmp(devices[number].uuid, from->device_uuid, BW_UUID_SIZE) != 0))
            number++;
        if (number == layout->devices.count)
            continue;
        const struct bw_control_device *device = &devices[number];
        stripe->child = (uint32_t)device->child;
        stripe->stale = device->stale;
        if (device->alternatives > 1)
            stripe->alternatives = (uint8_t)device->alternatives;
        if (stripe->alternatives > added.alternatives)
            added.alternatives = stripe->alternatives;
    }

    if (!same)
        return bw_layout_chunks_insert(&layout->chunks, index, added);
    free(layout->chunks.items[index].stripes);
    layout->chunks.items[index] = added;
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

struct bw_error *bw_layout_find(const struct bw_layout *layout, uint64_t address, uint32_t length,
                                struct bw_piece *piece)
{
    const size_t index = lower_bound(layout, address);
    const struct bw_layout_chunk *chunk = NULL; /* the chunk at the address, or after it */
    if (index < layout->chunks.count)
        chunk = &layout->chunks.items[index];
    if (!chunk || chunk->logical > address) {
        *piece = (struct bw_piece){.length = length};
        if (chunk && chunk->logical - address < length)
            piece->length = (uint32_t)(chunk->logical - address);
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the chunk tree has no chunk for logical address %" PRIu64, address);
    }
    uint64_t offset = address - chunk->logical;
    const uint64_t room = chunk->length - offset;
    *piece = (struct bw_piece){.chunk = chunk, .length = (uint32_t)bw_min(length, room)};
    const struct bw_raid_profile *profile = chunk->profile;
    piece->direct_copies = profile->copies ? profile->copies : chunk->stripe_count;
    piece->stripe_offset = offset;
    if (!profile->striped)
        return NULL;

    /* Pieces of one stripe length rotate over the stripes, or groups of equal stripes. */
    const uint64_t number = offset / BW_STRIPE_LENGTH, within = offset % BW_STRIPE_LENGTH;
    unsigned columns = chunk->stripe_count / profile->copies;
    if (profile->parity_stripes)
        columns = bw_layout_data_stripes(chunk);
    piece->row = number / columns;
    piece->data_stripe = (uint16_t)(number % columns);
    piece->first_stripe = (uint16_t)(piece->data_stripe * profile->copies);
    if (profile->parity_stripes)
        piece->first_stripe = (uint16_t)((piece->row + piece->data_stripe) % chunk->stripe_count);
    piece->stripe_offset = piece->row * BW_STRIPE_LENGTH + within;
    piece->length = (uint32_t)bw_min(piece->length, BW_STRIPE_LENGTH - within);
    return NULL;
}

void bw_layout_place(struct bw_piece *piece, uint64_t address,
                     const struct bw_stripe_extent *extent)
{
    uint64_t skip = address - extent->logical;
    piece->length = (uint32_t)bw_min(piece->length, extent->length - skip);
    piece->is_placed = true;
    piece->stripe_offset = 0;
    piece->direct_copies = extent->count;
    for (unsigned i = 0; i < extent->count; i++) {
        /* The stripe of the chunk on the same device, but at another offset. */
        const uint64_t devid = extent->places[i].devid;
        struct bw_layout_stripe *place = &piece->places[i];
        *place = (struct bw_layout_stripe){devid, 0, BW_NO_CHILD, false, 1};
        for (unsigned k = 0; k < piece->chunk->stripe_count; k++)
            if (piece->chunk->stripes[k].devid == devid) {
                *place = piece->chunk->stripes[k];
                break;
            }
        place->offset = extent->places[i].offset + skip;
    }
}

/* The number of copies without alternatives. */
static unsigned count_methods(const struct bw_piece *piece)
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

/* Whether a method exists with an image of this number. Methods to compute a piece read several
 * devices, and use the first image of devices with fewer. */
static bool has_alternative(const struct bw_piece *piece, unsigned method, unsigned alternative)
{
    return alternative == 1 || method > piece->direct_copies ||
           bw_piece_stripe(piece, method)->alternatives >= alternative;
}

unsigned bw_piece_copies(const struct bw_piece *piece)
{
    const unsigned methods = count_methods(piece);
    unsigned count = methods;
    for (unsigned alternative = 2; alternative <= piece->chunk->alternatives; alternative++)
        for (unsigned method = 1; method <= methods; method++)
            count += has_alternative(piece, method, alternative);
    return count < UINT8_MAX ? count : UINT8_MAX; /* as bw_request.copy */
}

/* Counts the methods from `first` to `last` with each image; stops at number `*copy`, from 1 on. */
static bool find_method(const struct bw_piece *piece, unsigned first, unsigned last, unsigned *copy,
                        struct bw_piece_copy *found)
{
    for (unsigned alternative = 1; alternative <= piece->chunk->alternatives; alternative++)
        for (unsigned method = first; method <= last; method++)
            if (has_alternative(piece, method, alternative) && --*copy == 0) {
                *found = (struct bw_piece_copy){method, alternative};
                return true;
            }
    return false;
}

struct bw_piece_copy bw_piece_split_copy(const struct bw_piece *piece, unsigned copy)
{
    const unsigned methods = count_methods(piece);
    if (!copy || piece->chunk->alternatives <= 1)
        return (struct bw_piece_copy){copy, 0};
    const unsigned stored = piece->direct_copies < methods ? piece->direct_copies : methods;
    struct bw_piece_copy found = {methods + 1, 0};
    if (!find_method(piece, 1, stored, &copy, &found))
        find_method(piece, stored + 1, methods, &copy, &found);
    return found;
}

const struct bw_layout_stripe *bw_piece_stripe(const struct bw_piece *piece, unsigned copy)
{
    return piece->is_placed ? &piece->places[copy - 1]
                            : &piece->chunk->stripes[piece->first_stripe + copy - 1];
}
