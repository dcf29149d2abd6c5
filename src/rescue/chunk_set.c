/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of chunks, whether blocks are where these chunks put them, and facts about chunks. */
#include "rescue/chunk_set.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "fs/opening.h"
#include "ondisk/disk_items.h"

void bw_chunk_set_free(struct bw_chunk_set *set)
{
    bw_layout_free(&set->layout);
    bw_newest_free(&set->items);
}

struct bw_error *bw_chunk_set_add(struct bw_chunk_set *set, const struct bw_item *item)
{
    struct bw_chunk chunk;
    struct bw_chunk_info info;
    struct bw_copies known;
    struct bw_error *error = bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
    if (!error && bw_copies_begin(&known, set, chunk.logical))
        return NULL;
    if (!error)
        error = bw_chunk_describe(&chunk, &info);
    if (!error) {
        error = bw_layout_add_chunk(&set->layout, &info);
        free((void *)info.stripes);
    }
    return error ? bw_error_tolerate(error) : bw_newest_add_item(&set->items, item, 0);
}

struct bw_error *bw_chunk_set_add_array(struct bw_chunk_set *set, const struct bw_superblock *super)
{
    struct bw_item item; /* an invalid rest was reported before */
    for (size_t at = 0; bw_system_chunk_item(super->system_chunk_array,
                                             super->system_chunk_array_size, &at, &item);)
        BW_TRY(bw_chunk_set_add(set, &item));
    return NULL;
}

bool bw_chunk_set_next(const struct bw_chunk_set *set, size_t *at, struct bw_chunk *chunk)
{
    struct bw_item item;
    if (!bw_newest_next(&set->items, at, &item))
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        bw_chunk_decode(item.key.offset, item.data, item.size, chunk);
    return !error; /* it was decoded when it was added */
}

uint64_t bw_stripe_length(const struct bw_chunk *chunk)
{
    const struct bw_raid_profile *profile = chunk->profile;
    if (!profile->striped)
        return chunk->length;
    return chunk->length * profile->copies / (chunk->stripe_count - profile->parity_stripes);
}

bool bw_copies_begin(struct bw_copies *copies, const struct bw_chunk_set *set, uint64_t address)
{
    *copies = (struct bw_copies){.copy = 0};
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_layout_find(&set->layout, address, 1, &copies->piece);
    return !unknown;
}

bool bw_copies_next(struct bw_copies *copies)
{
    if (copies->copy == copies->piece.direct_copies)
        return false;
    const struct bw_layout_stripe *stripe = bw_piece_stripe(&copies->piece, ++copies->copy);
    copies->devid = stripe->devid;
    copies->offset = stripe->offset + copies->piece.stripe_offset;
    return true;
}

enum bw_agreement bw_chunk_set_test(const struct bw_chunk_set *set,
                                    const struct bw_device_scan *scan,
                                    const struct bw_block_match *match)
{
    const uint64_t devid = scan->images[match->image].superblock.device.devid;
    struct bw_copies copies;
    if (!bw_copies_begin(&copies, set, match->bytenr))
        return BW_NO_CHUNK;
    while (bw_copies_next(&copies))
        if (copies.devid == devid && copies.offset == match->offset)
            return BW_AGREES;
    return BW_DISAGREES;
}

void bw_chunk_facts_free(struct bw_chunk_facts *facts)
{
    bw_newest_free(&facts->chunks);
    bw_newest_free(&facts->devices);
    bw_newest_free(&facts->groups);
    bw_extent_list_free(&facts->extents);
    bw_data_places_free(&facts->seen);
    *facts = (struct bw_chunk_facts){0};
}

const struct bw_disk_device_item *bw_chunk_facts_device(const struct bw_chunk_facts *facts,
                                                        uint64_t devid)
{
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, devid};
    size_t at = bw_newest_first(&facts->chunks, &key);
    struct bw_item item;
    const bool is_found = bw_newest_next(&facts->chunks, &at, &item) &&
                          bw_key_compare(&item.key, &key) == 0 &&
                          item.size >= sizeof(struct bw_disk_device_item);
    return is_found ? (const void *)item.data : NULL;
}

static int by_chunk(const void *left, const void *right)
{
    const struct bw_found_extent *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->chunk, a->devid, a->offset}),
                          ((uint64_t[]){b->chunk, b->devid, b->offset}));
}

struct bw_error *bw_chunk_facts_settle(struct bw_chunk_facts *facts)
{
    const struct bw_newest *devices = &facts->devices;
    struct bw_item item;
    BW_TRY(bw_newest_settle(&facts->chunks));
    BW_TRY(bw_newest_settle(&facts->devices));
    BW_TRY(bw_newest_settle(&facts->groups));
    facts->extents.count = 0;
    BW_TRY(bw_extent_list_reserve(&facts->extents, devices->items.count + 1));
    for (size_t at = 0; bw_newest_next(devices, &at, &item);) {
        const struct bw_disk_device_extent *disk = (const void *)item.data;
        if (item.size >= sizeof *disk)
            BW_TRY(bw_extent_list_push(&facts->extents,
                                       (struct bw_found_extent){bw_get64(disk->chunk_offset),
                                                                item.key.objectid, item.key.offset,
                                                                bw_get64(disk->length)}));
    }
    bw_extent_list_sort(&facts->extents, by_chunk);
    return NULL;
}
