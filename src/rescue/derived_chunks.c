/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chunks that have no item: from their extents on the devices, and their block groups. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "ondisk/disk_items.h"
#include "rescue/found_extents.h"

void bw_chunk_facts_free(struct bw_chunk_facts *facts)
{
    bw_newest_free(&facts->chunks);
    bw_newest_free(&facts->devices);
    bw_newest_free(&facts->groups);
    free(facts->extents);
    free(facts->seen);
    *facts = (struct bw_chunk_facts){0};
}

static int by_chunk(const void *left, const void *right)
{
    const struct bw_found_extent *a = left, *b = right;
    return a->chunk != b->chunk   ? (a->chunk > b->chunk) * 2 - 1
           : a->devid != b->devid ? (a->devid > b->devid) * 2 - 1
                                  : (a->offset > b->offset) - (a->offset < b->offset);
}

struct bw_error *bw_chunk_facts_extents(struct bw_chunk_facts *facts)
{
    const struct bw_newest *devices = &facts->devices;
    free(facts->extents);
    facts->extent_count = 0;
    facts->extents = malloc((devices->count + 1) * sizeof *facts->extents);
    if (!facts->extents)
        return bw_error_no_memory();
    for (size_t i = 0; i < devices->count; i++) {
        const struct bw_item item = bw_newest_view(devices, &devices->items[i]);
        const struct bw_disk_device_extent *disk = (const void *)item.data;
        if (item.size >= sizeof *disk)
            facts->extents[facts->extent_count++] =
                (struct bw_found_extent){bw_get64(disk->chunk_offset), item.key.objectid,
                                         item.key.offset, bw_get64(disk->length)};
    }
    qsort(facts->extents, facts->extent_count, sizeof *facts->extents, by_chunk);
    return NULL;
}

void bw_chunk_facts_uuid(const struct bw_device_scan *scan, const struct bw_chunk_facts *facts,
                         uint64_t devid, uint8_t uuid[BW_UUID_SIZE])
{
    memset(uuid, 0, BW_UUID_SIZE);
    for (size_t i = 0; i < scan->image_count; i++)
        if (scan->images[i].role != BW_IMAGE_UNUSED &&
            scan->images[i].superblock.device.devid == devid)
            memcpy(uuid, scan->images[i].superblock.device.uuid, BW_UUID_SIZE);
    const struct bw_newest *items = &facts->chunks;
    const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, devid};
    const size_t at =
        BW_FIRST_INDEX(i, items->count, bw_key_compare(&items->items[i].key, &key) >= 0);
    if (at == items->count || bw_key_compare(&items->items[at].key, &key) != 0)
        return;
    const struct bw_item item = bw_newest_view(items, &items->items[at]);
    const struct bw_disk_device_item *disk = (const void *)item.data;
    if (item.size >= sizeof *disk)
        memcpy(uuid, disk->uuid, BW_UUID_SIZE);
}

/* How many stripes the chunk has; 0 if its extents cannot be all of them. */
static unsigned count_stripes(struct bw_derived_chunk *chunk)
{
    const struct bw_raid_profile *profile = chunk->profile;
    const uint64_t length = chunk->extents[0].length;
    for (unsigned i = 1; i < chunk->count; i++)
        if (chunk->extents[i].length != length)
            return 0;
    if (!length || chunk->length % length)
        return 0;
    const uint64_t columns = chunk->length / length;
    if (!profile->striped)
        return columns == 1 && chunk->count >= profile->minimum_stripes &&
                       chunk->count <= profile->maximum_stripes
                   ? chunk->count
                   : 0;
    const uint64_t wanted =
        profile->parity_stripes ? columns + profile->parity_stripes : columns * profile->copies;
    chunk->columns = (unsigned)columns;
    return wanted == chunk->count ? chunk->count : 0;
}

static struct bw_error *add_chunk(const struct bw_derived_chunk *chunk,
                                  const struct bw_chunk_facts *facts, const int *order,
                                  struct bw_chunk_set *set)
{
    const size_t size = sizeof(struct bw_disk_chunk) + chunk->count * sizeof(struct bw_disk_stripe);
    BW_AUTO_FREE uint8_t *bytes = calloc(1, size);
    if (!bytes)
        return bw_error_no_memory();
    struct bw_disk_chunk *disk = (void *)bytes;
    struct bw_disk_stripe *stripes = (void *)(bytes + sizeof *disk);
    const struct bw_item item = {
        {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical}, bytes, (uint32_t)size};
    bool added;
    *disk = (struct bw_disk_chunk){.length = bw_put64(chunk->length),
                                   .owner = bw_put64(BW_EXTENT_TREE),
                                   .stripe_length = bw_put64(BW_STRIPE_LENGTH),
                                   .type = bw_put64(chunk->type),
                                   .io_align = bw_put32(BW_STRIPE_LENGTH),
                                   .io_width = bw_put32(BW_STRIPE_LENGTH),
                                   .sector_size = bw_put32(chunk->scan->sectorsize),
                                   .stripe_count = bw_put16((uint16_t)chunk->count),
                                   .sub_stripes =
                                       bw_put16(chunk->profile->flag == BW_GROUP_RAID10 ? 2 : 1)};
    for (unsigned i = 0; i < chunk->count; i++) {
        if (order[i] < 0) {
            stripes[i].devid = bw_put64(BW_UNKNOWN_DEVICE);
            continue;
        }
        const struct bw_found_extent *extent = &chunk->extents[order[i]];
        stripes[i].devid = bw_put64(extent->devid);
        stripes[i].offset = bw_put64(extent->offset);
        bw_chunk_facts_uuid(chunk->scan, facts, extent->devid, stripes[i].device_uuid);
    }
    return bw_chunk_set_add(set, &item, &added);
}

static void report(struct bw_fs *fs, const struct bw_derived_chunk *chunk, const char *what)
{
    if (fs)
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(
                         BW_ERROR_CORRUPT, "chunk %" PRIu64 " (%s, %" PRIu64 " bytes of %s) %s",
                         chunk->logical, chunk->profile ? chunk->profile->name : "unknown profile",
                         chunk->length, chunk->type & BW_GROUP_DATA ? "data" : "tree blocks",
                         what));
}

/* Says how many stripes are not known. */
static void report_stripes(struct bw_fs *fs, const struct bw_derived_chunk *chunk, const int *order)
{
    unsigned lost = 0;
    for (unsigned i = 0; i < chunk->count; i++)
        lost += order[i] < 0;
    char text[128];
    snprintf(text, sizeof text,
             "has lost %u of its %u stripes: nothing tells where they are on the devices", lost,
             chunk->count);
    if (lost)
        report(fs, chunk, text);
}

/* The extents, from what is stored in them. A group without any, where others have some, is most
 * likely one of an older state, that was removed. */
static struct bw_error *search(struct bw_fs *fs, struct bw_derived_chunk *chunk,
                               const struct bw_chunk_facts *facts, const char *why,
                               struct bw_chunk_set *set)
{
    struct bw_found_extent found[BW_MOST_STRIPES];
    int order[BW_MOST_STRIPES];
    const bool is_old = !chunk->count && facts->extent_count;
    memset(order, -1, sizeof order);
    if (!chunk->profile || !chunk->scan->is_whole ||
        !bw_found_extents(chunk, facts, set, found, order)) {
        report(is_old ? NULL : fs, chunk, why);
        return NULL;
    }
    report_stripes(fs, chunk, order);
    return add_chunk(chunk, facts, order, set);
}

static struct bw_error *derive(struct bw_fs *fs, struct bw_derived_chunk *chunk,
                               const struct bw_chunk_facts *facts, struct bw_chunk_set *set)
{
    int order[BW_MOST_STRIPES];
    memset(order, -1, sizeof order);
    if (!chunk->profile || !chunk->count || chunk->count > BW_MOST_STRIPES || !count_stripes(chunk))
        return search(fs, chunk, facts,
                      "is lost: its extents on the devices are not known, or do not make it up",
                      set);
    if (!chunk->profile->striped)
        for (unsigned i = 0; i < chunk->count; i++)
            order[i] = (int)i;
    else if (!bw_stripe_order_prove(chunk, set, order))
        return search(fs, chunk, facts, "is lost: the order of its stripes cannot be proven", set);
    return add_chunk(chunk, facts, order, set);
}

static struct bw_error *derive_group(struct bw_fs *fs, const struct bw_device_scan *scan,
                                     const struct bw_chunk_facts *facts, const struct bw_item *item,
                                     size_t *work, struct bw_chunk_set *set)
{
    const struct bw_disk_block_group *disk = (const void *)item->data;
    const uint64_t type = bw_get64(disk->flags);
    struct bw_piece piece;
    const size_t first =
        BW_FIRST_INDEX(n, facts->extent_count, facts->extents[n].chunk >= item->key.objectid);
    struct bw_derived_chunk chunk = {scan,
                                     item->key.objectid,
                                     item->key.offset,
                                     type,
                                     bw_raid_profile_of(type),
                                     facts->extents + first,
                                     0,
                                     1,
                                     work};
    while (first + chunk.count < facts->extent_count && chunk.count <= BW_MOST_STRIPES &&
           chunk.extents[chunk.count].chunk == chunk.logical)
        chunk.count++;
    BW_AUTO_ERROR struct bw_error *unknown = bw_layout_find(&set->layout, chunk.logical, 1, &piece);
    return unknown ? derive(fs, &chunk, facts, set) : NULL;
}

/* The groups that have nothing but data, or all others. */
static struct bw_error *derive_groups(struct bw_fs *fs, const struct bw_device_scan *scan,
                                      const struct bw_chunk_facts *facts, bool data, size_t *work,
                                      struct bw_chunk_set *set)
{
    for (size_t i = 0; i < facts->groups.count; i++) {
        const struct bw_item item = bw_newest_view(&facts->groups, &facts->groups.items[i]);
        const struct bw_disk_block_group *disk = (const void *)item.data;
        if (item.size >= sizeof *disk &&
            data == !(bw_get64(disk->flags) & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
            BW_TRY(derive_group(fs, scan, facts, &item, work, set));
    }
    return NULL;
}

struct bw_error *bw_chunks_derive(struct bw_fs *fs, const struct bw_device_scan *scan,
                                  const struct bw_chunk_facts *facts, size_t *work,
                                  struct bw_chunk_set *set)
{
    /* What proves chunks of data, their checksums, lies in the others. */
    BW_TRY(derive_groups(fs, scan, facts, false, work, set));
    return derive_groups(fs, scan, facts, true, work, set);
}
