/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which extent is which stripe: what is stored in the extents votes for it. */
#include "rescue/stripe_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/block.h"

/* How many sectors of data are tried, and how many votes for each extent are enough. */
enum { MOST_SECTORS = 4096, ENOUGH = 32 };

/* What it costs to look up a leaf in the chunks, and to read, where a look at a block costs 1. */
enum { LOOK_UP = 16, READ = 128 };

/* Takes from the work that is left; false if there is none. */
static bool may_work(const struct bw_derived_chunk *chunk, size_t cost)
{
    *chunk->work -= cost < *chunk->work ? cost : *chunk->work;
    return *chunk->work;
}

/* The votes: extents and stripes. */
struct ballot {
    const struct bw_derived_chunk *chunk;
    const struct bw_chunk_set *set;
    uint32_t votes[BW_MOST_STRIPES][BW_MOST_STRIPES];
    unsigned sectors; /* that were tried */
};

static bool is_inside(const struct bw_derived_chunk *chunk, uint64_t address)
{
    return address >= chunk->logical && address - chunk->logical < chunk->length;
}

unsigned bw_stripe_of(const struct bw_derived_chunk *chunk, uint64_t address, uint64_t *place)
{
    const uint64_t offset = address - chunk->logical, number = offset / BW_STRIPE_LENGTH;
    const uint64_t row = number / chunk->columns, column = number % chunk->columns;
    *place = row * BW_STRIPE_LENGTH + offset % BW_STRIPE_LENGTH;
    return (unsigned)(chunk->profile->parity_stripes ? (row + column) % chunk->count
                                                     : column * chunk->profile->copies);
}

/* The stripe that an extent is by most votes; chunk->count if there is none, or not by far. */
static unsigned elected(const struct ballot *ballot, unsigned extent)
{
    const uint32_t *votes = ballot->votes[extent];
    const unsigned count = ballot->chunk->count;
    unsigned best = 0;
    uint32_t others = 0;
    for (unsigned stripe = 1; stripe < count; stripe++)
        best = votes[stripe] > votes[best] ? stripe : best;
    for (unsigned stripe = 0; stripe < count; stripe++)
        others = stripe != best && votes[stripe] > others ? votes[stripe] : others;
    return votes[best] > 2 * others ? best : count;
}

static bool is_decided(const struct ballot *ballot)
{
    for (unsigned extent = 0; extent < ballot->chunk->count; extent++) {
        const unsigned stripe = elected(ballot, extent);
        if (stripe == ballot->chunk->count || ballot->votes[extent][stripe] < ENOUGH)
            return false;
    }
    return true;
}

/* The votes of tree blocks. */

/* The extent that a block was seen in; chunk->count if it was in none. */
static unsigned extent_of(const struct bw_derived_chunk *chunk, const struct bw_sighting *sighting)
{
    const uint64_t devid = chunk->scan->images[sighting->image].superblock.device.devid;
    unsigned at = 0;
    while (at < chunk->count &&
           (chunk->extents[at].devid != devid || sighting->offset < chunk->extents[at].offset ||
            sighting->offset - chunk->extents[at].offset >= chunk->extents[at].length))
        at++;
    return at;
}

static void ask_blocks(struct ballot *ballot)
{
    const struct bw_derived_chunk *chunk = ballot->chunk;
    for (size_t i = 0; i < chunk->scan->count; i++) {
        const struct bw_sighting *sighting = &chunk->scan->sightings[i];
        uint64_t place;
        if (!is_inside(chunk, sighting->bytenr))
            continue;
        const unsigned extent = extent_of(chunk, sighting);
        const unsigned stripe = bw_stripe_of(chunk, sighting->bytenr, &place);
        if (extent < chunk->count && sighting->offset - chunk->extents[extent].offset == place)
            ballot->votes[extent][stripe]++;
    }
}

/* The votes of data. */

/* Whether the sector at a place of an extent has a checksum. */
static bool has_checksum(const struct bw_derived_chunk *chunk, unsigned extent, uint64_t place,
                         const uint8_t *checksum)
{
    return bw_device_scan_has(chunk->scan,
                              bw_image_of_devid(chunk->scan, chunk->extents[extent].devid),
                              chunk->extents[extent].offset + place, checksum);
}

static void ask_sector(struct ballot *ballot, uint64_t address, const uint8_t *checksum)
{
    uint64_t place;
    const unsigned stripe = bw_stripe_of(ballot->chunk, address, &place);
    ballot->sectors++;
    for (unsigned extent = 0; extent < ballot->chunk->count; extent++)
        if (may_work(ballot->chunk, READ))
            ballot->votes[extent][stripe] += has_checksum(ballot->chunk, extent, place, checksum);
}

/* The first sector of each piece that an item has checksums of. */
static void ask_item(struct ballot *ballot, const struct bw_item *item)
{
    const size_t size = bw_checksum_size(ballot->chunk->scan->identity->checksum_type);
    const uint32_t sectorsize = ballot->chunk->scan->sectorsize;
    uint64_t piece = UINT64_MAX, address = item->key.offset;
    if (item->key.type != BW_EXTENT_CSUM)
        return;
    const uint64_t first = ballot->chunk->logical, left = first > address ? first - address : 0;
    const size_t skipped =
        left / sectorsize < item->size / size ? (size_t)(left / sectorsize) : item->size;
    address += skipped * sectorsize;
    for (size_t at = skipped * size; at + size <= item->size && ballot->sectors < MOST_SECTORS;
         at += size, address += sectorsize) {
        if (!is_inside(ballot->chunk, address) || address / BW_STRIPE_LENGTH == piece)
            continue;
        piece = address / BW_STRIPE_LENGTH;
        ask_sector(ballot, address, item->data + at);
        if (is_decided(ballot))
            return;
    }
}

static bool ask_leaf(struct ballot *ballot, const struct bw_sighting *sighting)
{
    const struct bw_device_scan *scan = ballot->chunk->scan;
    BW_AUTO_FREE uint8_t *bytes = malloc(scan->identity->nodesize);
    struct bw_item item;
    if (!bytes)
        return false;
    if (!bw_device_scan_read(scan, sighting, bytes))
        return true;
    const struct bw_node leaf = bw_node_view(bytes, scan->identity->nodesize);
    for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);)
        ask_item(ballot, &item);
    return true;
}

static void ask_data(struct ballot *ballot)
{
    const struct bw_device_scan *scan = ballot->chunk->scan;
    for (size_t i = scan->count; i-- > 0 && ballot->sectors < MOST_SECTORS;) {
        const struct bw_sighting *sighting = &scan->sightings[i];
        if (sighting->level || bw_sighting_owner(scan, sighting) != BW_CSUM_TREE)
            continue;
        if (!may_work(ballot->chunk, LOOK_UP))
            return;
        if (bw_chunk_set_judge(ballot->set, scan, sighting) != BW_AGREES ||
            !may_work(ballot->chunk, READ))
            continue;
        if (!ask_leaf(ballot, sighting) || is_decided(ballot))
            return;
    }
}

/* The count. */

bool bw_take_stripe(const struct bw_derived_chunk *chunk, unsigned extent, unsigned first,
                    int order[BW_MOST_STRIPES])
{
    const unsigned alike = !chunk->profile->striped         ? chunk->count
                           : chunk->profile->parity_stripes ? 1
                                                            : chunk->profile->copies;
    for (unsigned stripe = first; stripe < first + alike; stripe++)
        if (order[stripe] < 0) {
            order[stripe] = (int)extent;
            return true;
        }
    return false;
}

/* What is left over when all others are known is known as well. */
static bool count_votes(const struct ballot *ballot, int *order)
{
    const unsigned count = ballot->chunk->count;
    unsigned left = 0, last = 0;
    for (unsigned extent = 0; extent < count; extent++) {
        const unsigned stripe = elected(ballot, extent);
        if (stripe == count) {
            left++;
            last = extent;
        } else if (!bw_take_stripe(ballot->chunk, extent, stripe, order)) {
            return false;
        }
    }
    for (unsigned stripe = 0; left == 1 && stripe < count; stripe++)
        if (order[stripe] < 0)
            order[stripe] = (int)last;
    return left <= 1;
}

bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES])
{
    BW_AUTO_FREE struct ballot *ballot = calloc(1, sizeof *ballot);
    if (!ballot || !may_work(chunk, chunk->scan->count))
        return false;
    ballot->chunk = chunk;
    ballot->set = set;
    if (chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM))
        ask_blocks(ballot);
    else
        ask_data(ballot);
    return count_votes(ballot, order);
}
