/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of chunks, and whether blocks are where these chunks put them. */
#include "rescue/chunk_set.h"

#include <stdlib.h>

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
    BW_TRY(bw_chunk_describe(chunk, &info));
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

struct bw_error *bw_chunk_set_add_array(struct bw_chunk_set *set, const struct bw_superblock *super)
{
    const uint8_t *next = super->system_chunk_array;
    bool added;
    for (size_t left = super->system_chunk_array_size; left;) {
        const struct bw_disk_key *disk = (const void *)next;
        const size_t size =
            left < sizeof *disk ? 0 : bw_chunk_item_size(next + sizeof *disk, left - sizeof *disk);
        if (!size)
            return NULL; /* the invalid rest was reported before */
        const struct bw_item item = {bw_key_decode(disk), next + sizeof *disk, (uint32_t)size};
        BW_TRY(bw_chunk_set_add(set, &item, &added));
        next += sizeof *disk + size;
        left -= sizeof *disk + size;
    }
    return NULL;
}

uint64_t bw_stripe_length(const struct bw_chunk *chunk)
{
    const struct bw_raid_profile *profile = chunk->profile;
    if (!profile->striped)
        return chunk->length;
    return chunk->length * profile->copies / (chunk->stripe_count - profile->parity_stripes);
}

enum bw_agreement bw_chunk_set_test(const struct bw_chunk_set *set,
                                    const struct bw_device_scan *scan,
                                    const struct bw_block_match *match)
{
    const struct bw_device_identity *device = &scan->images[match->image].superblock.device;
    struct bw_piece piece;
    BW_AUTO_ERROR struct bw_error *error =
        bw_layout_find(&set->layout, match->bytenr, scan->identity->nodesize, &piece);
    if (error)
        return BW_NO_CHUNK;
    for (unsigned copy = 1; copy <= piece.direct_copies; copy++) {
        const struct bw_layout_stripe *stripe = bw_piece_stripe(&piece, copy);
        if (stripe->devid == device->devid && stripe->offset + piece.stripe_offset == match->offset)
            return BW_AGREES;
    }
    return BW_DISAGREES;
}
