/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data on devices, found by their checksums: for chunks that have a block group, but of which
 * nothing tells where they are. Sectors at multiples of 64 KiB are taken, some of each chunk; their
 * checksums are looked for at multiples of 64 KiB of the devices, where all stripes begin.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/disk_items.h"
#include "rescue/found_extents.h"

enum { PIECE = 4 << 20, MOST_SAMPLES = 1 << 18, MOST_SEEN = 1 << 20 };

/* A sector of data that is looked for: the beginning of its checksum. */
struct sample {
    uint64_t checksum;
    uint64_t address; /* 0: several have the same checksum */
};

struct search {
    const struct bw_device_scan *scan;
    struct bw_chunk_facts *facts;
    const struct bw_chunk_set *set;
    struct sample *samples;
    size_t count, capacity;
};

static uint64_t short_checksum(const struct search *search, const uint8_t *checksum)
{
    const size_t size = bw_checksum_size(search->scan->identity->checksum_type);
    uint64_t result = 0;
    memcpy(&result, checksum, size < sizeof result ? size : sizeof result);
    return result;
}

/* What is looked for. */

/* The block group of data with an address, if its chunk is not known; NULL if there is none. */
static const struct bw_newest_item *lost_group(const struct search *search, uint64_t address)
{
    const struct bw_newest *groups = &search->facts->groups;
    const size_t after = BW_FIRST_INDEX(i, groups->count, groups->items[i].key.objectid > address);
    if (!after)
        return NULL;
    const struct bw_newest_item *group = &groups->items[after - 1];
    const struct bw_disk_block_group *disk = (const void *)bw_newest_view(groups, group).data;
    struct bw_piece piece;
    if (address - group->key.objectid >= group->key.offset || group->size < sizeof *disk ||
        (bw_get64(disk->flags) & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
        return NULL;
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_layout_find(&search->set->layout, group->key.objectid, 1, &piece);
    return unknown ? group : NULL;
}

static struct bw_error *take_item(struct search *search, const struct bw_item *item)
{
    const size_t size = bw_checksum_size(search->scan->identity->checksum_type);
    const uint32_t sectorsize = search->scan->sectorsize;
    const struct bw_newest_item *group = lost_group(search, item->key.offset);
    if (item->key.type != BW_EXTENT_CSUM || !group)
        return NULL;
    const uint64_t begin = item->key.offset - group->key.objectid;
    const uint64_t skipped = (BW_STRIPE_LENGTH - begin % BW_STRIPE_LENGTH) % BW_STRIPE_LENGTH;
    const size_t step = BW_STRIPE_LENGTH / sectorsize;
    for (size_t at = (size_t)skipped / sectorsize; (at + 1) * size <= item->size; at += step) {
        if (search->count == MOST_SAMPLES)
            return NULL;
        if (!BW_ARRAY_RESERVE(search->samples, search->count, search->capacity))
            return bw_error_no_memory();
        search->samples[search->count++] = (struct sample){
            short_checksum(search, item->data + at * size), item->key.offset + at * sectorsize};
    }
    return NULL;
}

static int by_checksum(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return a->checksum != b->checksum ? (a->checksum > b->checksum) * 2 - 1
                                      : (a->address > b->address) - (a->address < b->address);
}

/* Old leaves have the same sectors as new ones; what lies at several addresses proves nothing. */
static void settle(struct search *search)
{
    size_t kept = 0;
    if (search->count)
        qsort(search->samples, search->count, sizeof *search->samples, by_checksum);
    for (size_t i = 0; i < search->count; i++) {
        struct sample *last = &search->samples[kept ? kept - 1 : 0];
        if (!kept || last->checksum != search->samples[i].checksum)
            search->samples[kept++] = search->samples[i];
        else if (last->address != search->samples[i].address)
            last->address = 0;
    }
    search->count = kept;
}

static struct bw_error *take_samples(struct search *search)
{
    const struct bw_device_scan *scan = search->scan;
    BW_AUTO_FREE uint8_t *bytes = malloc(scan->identity->nodesize);
    struct bw_item item;
    if (!bytes)
        return bw_error_no_memory();
    for (size_t i = 0; i < scan->count && search->count < MOST_SAMPLES; i++) {
        const struct bw_sighting *sighting = &scan->sightings[i];
        if (sighting->level || bw_sighting_owner(scan, sighting) != BW_CSUM_TREE ||
            bw_chunk_set_judge(search->set, scan, sighting) != BW_AGREES ||
            !bw_device_scan_read(scan, sighting, bytes))
            continue;
        const struct bw_node leaf = bw_node_view(bytes, scan->identity->nodesize);
        for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);)
            BW_TRY(take_item(search, &item));
    }
    settle(search);
    return NULL;
}

/* Where it is. */

static struct bw_error *look(struct search *search, size_t image, uint64_t offset,
                             const uint8_t *sector)
{
    const uint32_t size = search->scan->sectorsize;
    struct bw_chunk_facts *facts = search->facts;
    uint8_t checksum[BW_CSUM_SIZE];
    if (memcmp(sector, sector + 1, size - 1) == 0 || facts->seen_count == MOST_SEEN)
        return NULL;
    bw_checksum_compute(search->scan->identity->checksum_type, sector, size, checksum);
    const uint64_t wanted = short_checksum(search, checksum);
    const size_t at = BW_FIRST_INDEX(i, search->count, search->samples[i].checksum >= wanted);
    if (at == search->count || search->samples[at].checksum != wanted ||
        !search->samples[at].address)
        return NULL;
    if (!BW_ARRAY_RESERVE(facts->seen, facts->seen_count, facts->seen_capacity))
        return bw_error_no_memory();
    facts->seen[facts->seen_count++] =
        (struct bw_data_place){search->samples[at].address, offset, image};
    return NULL;
}

static struct bw_error *read_image(struct search *search, size_t image, uint8_t *buffer)
{
    struct bw_xlator *device = search->scan->images[image].storage;
    const uint64_t size = bw_xlator_size(device);
    for (uint64_t at = 0; at < size; at += PIECE) {
        at = bw_xlator_next_stored(device, at);
        at -= at % BW_STRIPE_LENGTH;
        if (at >= size)
            break;
        const uint32_t length = size - at < PIECE ? (uint32_t)(size - at) : PIECE;
        BW_AUTO_ERROR struct bw_error *error =
            bw_device_scan_bytes(search->scan, image, at, length, buffer);
        for (uint32_t i = 0; !error && i + search->scan->sectorsize <= length;
             i += BW_STRIPE_LENGTH)
            BW_TRY(look(search, image, at + i, buffer + i));
    }
    return NULL;
}

static struct bw_error *read_images(struct search *search)
{
    const struct bw_device_scan *scan = search->scan;
    BW_AUTO_FREE uint8_t *buffer = aligned_alloc(BW_MIN_SECTORSIZE, PIECE);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; search->count && i < scan->image_count; i++)
        if (scan->images[i].storage &&
            (scan->images[i].role != BW_IMAGE_UNUSED || scan->images[i].is_unclaimed))
            BW_TRY(read_image(search, i, buffer));
    return NULL;
}

struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set)
{
    struct search search = {.scan = scan, .facts = facts, .set = set};
    struct bw_error *error = take_samples(&search);
    if (!error)
        error = read_images(&search);
    free(search.samples);
    return error;
}
