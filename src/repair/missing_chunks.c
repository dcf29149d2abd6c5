/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The item of a chunk that the chunk tree lacks: from the system chunks in the superblock, an older
 * leaf of the chunk tree, or the device extents (rescue/chunk_tree.c). In any case these must be
 * right: the block group has the same length and type, and the device tree has an extent for each
 * stripe and no other ones, on known devices. No other chunk is in its place. If the order of the
 * stripes matters, an old item or the contents have proven it.
 */
#include "base/cleanup.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "repair/repair.h"
#include "rescue/rescue.h"

/* Whether each stripe of a chunk has its device extent, and there is no other one. */
static struct bw_error *has_extents(struct bw_repair *repair, const struct bw_chunk *chunk,
                                    bool *has_all)
{
    struct bw_tree devices;
    unsigned count = 0;
    BW_TRY(bw_repair_find_tree(repair->fs, BW_DEVICE_TREE, &devices));
    *has_all = devices.id;
    if (!devices.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, &devices);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->key.type != BW_DEVICE_EXTENT || item->size < sizeof *extent ||
            bw_get64(extent->chunk_offset) != chunk->logical)
            continue;
        bool is_stripe = false;
        for (unsigned i = 0; i < chunk->stripe_count; i++)
            is_stripe |= bw_get64(chunk->stripes[i].devid) == item->key.objectid &&
                         bw_get64(chunk->stripes[i].offset) == item->key.offset;
        *has_all = *has_all && is_stripe && bw_get64(extent->length) == bw_stripe_length(chunk);
        count++;
    }
    *has_all = *has_all && count == chunk->stripe_count;
    return bw_fs_items_error(&items);
}

/* Whether the chunk tree has the devices of all stripes, and no chunk where this one is. */
static struct bw_error *fits(struct bw_repair *repair, const struct bw_chunk *chunk, bool *does_fit)
{
    unsigned known = 0;
    *does_fit = true;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, &repair->fs->chunk_tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_chunk other;
        const struct bw_disk_device_item *device = (const void *)item->data;
        if (item->key.type == BW_CHUNK_ITEM) {
            BW_AUTO_ERROR struct bw_error *error =
                bw_chunk_decode(item->key.offset, item->data, item->size, &other);
            *does_fit = *does_fit && !error &&
                        (other.logical >= chunk->logical + chunk->length ||
                         chunk->logical >= other.logical + other.length);
        }
        for (unsigned i = 0; item->key.type == BW_DEVICE_ITEM && item->size >= sizeof *device &&
                             i < chunk->stripe_count;
             i++)
            known += bw_get64(chunk->stripes[i].devid) == item->key.offset &&
                     memcmp(chunk->stripes[i].device_uuid, device->uuid, BW_UUID_SIZE) == 0;
    }
    *does_fit = *does_fit && known == chunk->stripe_count;
    return bw_fs_items_error(&items);
}

struct bw_error *bw_repair_make_chunk(struct bw_repair *repair, const struct bw_key *group,
                                      struct bw_newest *known, struct bw_buffer *item)
{
    struct bw_item found;
    struct bw_chunk chunk;
    uint64_t type = 0;
    bool is_right = false;
    if (!known->items.count)
        BW_TRY(bw_rescue_find_chunks(repair->fs, known));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, bw_repair_group_tree(repair->fs), *group, *group);
    const struct bw_item *row = bw_fs_items_next(&items);
    if (row && row->size >= sizeof(struct bw_disk_block_group))
        type = bw_get64(((const struct bw_disk_block_group *)row->data)->flags);
    BW_TRY(bw_fs_items_error(&items));
    for (size_t at = 0; !is_right && bw_newest_next(known, &at, &found);) {
        BW_AUTO_ERROR struct bw_error *error =
            bw_chunk_decode(found.key.offset, found.data, found.size, &chunk);
        is_right = !error && chunk.logical == group->objectid && chunk.length == group->offset &&
                   chunk.type == type;
    }
    if (is_right)
        BW_TRY(has_extents(repair, &chunk, &is_right));
    if (is_right)
        BW_TRY(fits(repair, &chunk, &is_right));
    if (is_right)
        bw_buffer_append(item, found.data, found.size);
    return bw_buffer_error(item);
}
