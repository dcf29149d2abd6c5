/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunks that were found, and whether blocks lie where these put them. */
#include "past/chunk_set.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/opening.h"

void bw_chunk_set_free(struct bw_chunk_set *set)
{
    bw_layout_free(&set->layout);
    bw_newest_free(&set->items);
}

static struct bw_error *add_to_layout(struct bw_chunk_set *set, const struct bw_chunk *chunk)
{
    struct bw_chunk_info info;
    struct bw_piece piece;
    struct bw_error *error = bw_layout_find(&set->layout, chunk->logical, 1, &piece);
    if (!error)
        return bw_error_create(BW_ERROR_CORRUPT, "there is a chunk already");
    bw_error_free(error);
    error = bw_chunk_describe(chunk, &info);
    if (!error)
        error = bw_layout_add_chunk(&set->layout, &info);
    free((void *)info.stripes);
    return error;
}

struct bw_error *bw_chunk_set_add(struct bw_chunk_set *set, const struct bw_item *item, bool *added)
{
    struct bw_chunk chunk;
    struct bw_error *error = bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
    if (!error)
        error = add_to_layout(set, &chunk);
    *added = !error;
    if (!error)
        return bw_newest_add_item(&set->items, item, 0, 0);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    return NULL;
}

enum bw_agreement bw_chunk_set_judge(const struct bw_chunk_set *set,
                                     const struct bw_device_scan *scan,
                                     const struct bw_sighting *sighting)
{
    const struct bw_device_identity *device = &scan->images[sighting->image].superblock.device;
    struct bw_piece piece;
    BW_AUTO_ERROR struct bw_error *error =
        bw_layout_find(&set->layout, sighting->bytenr, scan->identity->nodesize, &piece);
    if (error)
        return BW_NO_CHUNK;
    for (unsigned copy = 1; copy <= piece.direct_copies; copy++) {
        const struct bw_layout_stripe *stripe = bw_piece_stripe(&piece, copy);
        if (stripe->devid == device->devid &&
            stripe->offset + piece.stripe_offset == sighting->offset)
            return BW_AGREES;
    }
    return BW_DISAGREES;
}

size_t bw_chunk_set_count(const struct bw_chunk_set *set, const struct bw_device_scan *scan)
{
    size_t count = 0;
    for (size_t i = 0; i < scan->count; i++)
        count += bw_chunk_set_judge(set, scan, &scan->sightings[i]) == BW_AGREES;
    return count;
}
