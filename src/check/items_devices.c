/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Judging the items of the chunk tree and the device tree. */
#include "check/item_rules.h"
#include "ondisk/chunk.h"

/* The kernel counts the stripes of a chunk in 32 bits. */
#define LARGEST_CHUNK ((uint64_t)BW_STRIPE_LENGTH * UINT32_MAX)

/* States of a replacement: never started, started, finished, cancelled, suspended. */
enum { REPLACE_STATES = 5, REPLACE_MODES = 2 };

static bool wrong_chunk_size(const struct bw_item *item, struct bw_item_fault *fault)
{
    const struct bw_disk_chunk *chunk = (const void *)item->data;
    const size_t size =
        sizeof *chunk + bw_get16(chunk->stripe_count) * sizeof(struct bw_disk_stripe);
    return item->size != size && bw_item_wrong(fault, "size is %" PRIu32 ", not %zu, of %u stripes",
                                               item->size, size, bw_get16(chunk->stripe_count));
}

bool bw_judge_chunk(const struct bw_item_rules *rules, const struct bw_item *item,
                    struct bw_item_fault *fault)
{
    const struct bw_disk_chunk *disk = (const void *)item->data;
    struct bw_chunk chunk;
    if (item->key.objectid != BW_FIRST_CHUNK)
        return bw_item_wrong(fault, "chunk with the object id %" PRIu64, item->key.objectid);
    if (wrong_chunk_size(item, fault) || bw_unaligned(rules, fault, "address", item->key.offset) ||
        bw_unaligned(rules, fault, "length", bw_get64(disk->length)))
        return true;
    if (bw_get64(disk->length) >= LARGEST_CHUNK)
        return bw_item_wrong(fault, "length %" PRIu64, bw_get64(disk->length));
    if (bw_get32(disk->sector_size) != rules->sectorsize)
        return bw_item_wrong(fault, "sector size %" PRIu32, bw_get32(disk->sector_size));
    if (bw_get64(disk->owner) != BW_EXTENT_TREE)
        return bw_item_wrong(fault, "owner %" PRIu64, bw_get64(disk->owner));
    if (bw_group_type_wrong(rules, fault, bw_get64(disk->type)))
        return true;
    return !bw_chunk_is_remapped_away(item->data, item->size) &&
           bw_item_refused(fault,
                           bw_chunk_decode(item->key.offset, item->data, item->size, &chunk));
}

bool bw_judge_device_item(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_device_item *device = (const void *)item->data;
    const uint64_t used = bw_get64(device->bytes_used), total = bw_get64(device->total_bytes);
    if (item->key.objectid != BW_DEVICE_ITEMS)
        return bw_item_wrong(fault, "device with the object id %" PRIu64, item->key.objectid);
    if (bw_get64(device->devid) != item->key.offset)
        return bw_item_wrong(fault, "devid %" PRIu64, bw_get64(device->devid));
    return used > total && bw_item_wrong(fault, "bytes_used %" PRIu64 " of %" PRIu64, used, total);
}

bool bw_judge_device_extent(const struct bw_item_rules *rules, const struct bw_item *item,
                            struct bw_item_fault *fault)
{
    const struct bw_disk_device_extent *extent = (const void *)item->data;
    const struct bw_item *previous = rules->previous;
    if (bw_get64(extent->chunk_tree) != BW_CHUNK_TREE)
        return bw_item_wrong(fault, "chunk tree %" PRIu64, bw_get64(extent->chunk_tree));
    if (bw_get64(extent->chunk_objectid) != BW_FIRST_CHUNK)
        return bw_item_wrong(fault, "chunk objectid %" PRIu64, bw_get64(extent->chunk_objectid));
    if (bw_unaligned(rules, fault, "offset on the device", item->key.offset) ||
        bw_unaligned(rules, fault, "chunk offset", bw_get64(extent->chunk_offset)) ||
        bw_unaligned(rules, fault, "length", bw_get64(extent->length)))
        return true;
    if (!bw_get64(extent->length))
        return bw_item_wrong(fault, "length 0");
    if (!previous || previous->key.type != BW_DEVICE_EXTENT ||
        previous->key.objectid != item->key.objectid || previous->size != sizeof *extent)
        return false;
    extent = (const void *)previous->data;
    return bw_get64(extent->length) > item->key.offset - previous->key.offset &&
           bw_item_wrong_as(fault, BW_CODE_items_overlap,
                            "the device extent before has %" PRIu64 " bytes at %" PRIu64,
                            bw_get64(extent->length), previous->key.offset);
}

/* Counts of errors; there may be fewer than today, or more. */
bool bw_judge_persistent(const struct bw_item_rules *rules, const struct bw_item *item,
                         struct bw_item_fault *fault)
{
    (void)rules;
    return item->key.objectid == BW_DEVICE_STATS &&
           (item->size == 0 || item->size % sizeof(bw_le64)) &&
           bw_item_wrong(fault, "size is %" PRIu32, item->size);
}

bool bw_judge_device_replace(const struct bw_item_rules *rules, const struct bw_item *item,
                             struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_device_replace *replace = (const void *)item->data;
    if (item->key.objectid || item->key.offset)
        return bw_item_wrong(fault, "no replacement has this key");
    if (bw_get64(replace->state) >= REPLACE_STATES)
        return bw_item_wrong(fault, "state %" PRIu64, bw_get64(replace->state));
    return bw_get64(replace->reading_mode) >= REPLACE_MODES &&
           bw_item_wrong(fault, "reading mode %" PRIu64, bw_get64(replace->reading_mode));
}
