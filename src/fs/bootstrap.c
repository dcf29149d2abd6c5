/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fills the address map of the graph. The chunk tree is read through the map that it fills. The
 * superblock contains the system chunks, in which the chunk tree lies, so these come first; then
 * the chunks in the chunk tree; then, with the remap-tree feature, the ranges that relocation has
 * moved.
 *
 * The scan of the chunk tree also meets the items of all devices, which come before the chunks. It
 * marks the images of these devices as known, and reports devices without an image as missing.
 */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "ondisk/chunk.h"

struct bw_error *bw_chunk_describe(const struct bw_chunk *chunk, struct bw_chunk_info *info)
{
    struct bw_stripe_info *stripes = calloc(chunk->stripe_count, sizeof *stripes);
    if (!stripes)
        return bw_error_no_memory();
    *info = (struct bw_chunk_info){.logical = chunk->logical,
                                   .length = chunk->length,
                                   .type = chunk->type,
                                   .profile = chunk->profile->name,
                                   .stripe_count = chunk->stripe_count,
                                   .stripes = stripes};
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        stripes[i].devid = bw_get64(chunk->stripes[i].devid);
        stripes[i].offset = bw_get64(chunk->stripes[i].offset);
        memcpy(stripes[i].device_uuid, chunk->stripes[i].device_uuid, BW_UUID_SIZE);
    }
    return NULL;
}

void bw_chunk_correct_uuids(struct bw_fs *fs, struct bw_chunk_info *info)
{
    for (size_t i = 0; i < info->stripe_count; i++) {
        struct bw_stripe_info *stripe = (struct bw_stripe_info *)(uintptr_t)&info->stripes[i];
        const struct bw_image *image = bw_image_of_device(fs, stripe->devid, stripe->device_uuid);
        if (!image || image->is_dump || bw_image_has_uuid(image, stripe->device_uuid))
            continue;
        memcpy(stripe->device_uuid, image->superblock.device.uuid, BW_UUID_SIZE);
        bw_fs_report_once(fs, BW_WARNING,
                          bw_error_create(BW_ERROR_CORRUPT,
                                          "a bit of the uuid of device %" PRIu64
                                          " is flipped, in the superblock or in chunks",
                                          stripe->devid));
    }
}

/* Sends a chunk to the layers. In a metadump, everything is at its logical address on one device.
 */
static struct bw_error *add_chunk(struct bw_fs *fs, const struct bw_chunk *chunk)
{
    struct bw_chunk_info info;
    BW_TRY(bw_chunk_describe(chunk, &info));
    bw_chunk_correct_uuids(fs, &info);
    BW_AUTO_FREE struct bw_stripe_info *stripes = (struct bw_stripe_info *)(uintptr_t)info.stripes;
    if (fs->is_dump) {
        const struct bw_device_identity *device = &fs->superblock.device;
        info.type &= BW_GROUP_DATA | BW_GROUP_SYSTEM | BW_GROUP_METADATA;
        info.profile = "single";
        info.stripe_count = 1;
        stripes->devid = device->devid;
        stripes->offset = info.logical;
        memcpy(stripes->device_uuid, device->uuid, BW_UUID_SIZE);
    }
    struct bw_error *error =
        bw_graph_control(fs->graph, &(struct bw_control){BW_CONTROL_CHUNK, {.chunk = &info}});
    BW_PROBE(fs->graph->probes, chunk__add, chunk,
             &(struct bw_chunk_event){{.error = error}, chunk});
    return error;
}

struct bw_error *bw_system_chunk_next(const struct bw_superblock *superblock, size_t *position,
                                      struct bw_chunk *chunk, bool *found)
{
    const size_t left = superblock->system_chunk_array_size - *position;
    struct bw_item item;
    *found = left;
    if (!left)
        return NULL;
    if (!bw_system_chunk_item(superblock->system_chunk_array, superblock->system_chunk_array_size,
                              position, &item) ||
        item.key.type != BW_CHUNK_ITEM)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "superblock: system chunk array is cut off, %zu byte%s left", left,
                               bw_plural(left));
    return bw_chunk_decode(item.key.offset, item.data, item.size, chunk);
}

struct bw_error *bw_bootstrap_system_chunks(struct bw_fs *fs)
{
    struct bw_chunk chunk;
    size_t position = 0;
    bool found;
    for (;;) {
        BW_TRY(bw_system_chunk_next(&fs->superblock, &position, &chunk, &found));
        if (!found)
            return NULL;
        BW_TRY(add_chunk(fs, &chunk));
    }
}

bool bw_image_has_uuid(const struct bw_image *image, const uint8_t uuid[BW_UUID_SIZE])
{
    return memcmp(image->superblock.device.uuid, uuid, BW_UUID_SIZE) == 0;
}

struct bw_image *bw_image_of_device(const struct bw_fs *fs, uint64_t devid,
                                    const uint8_t uuid[BW_UUID_SIZE])
{
    struct bw_image *similar = NULL;
    for (size_t i = 0; i < fs->image_count; i++) {
        struct bw_image *image = &fs->images[i];
        const struct bw_device_identity *device = &image->superblock.device;
        if (image->role == BW_IMAGE_UNUSED || (device->devid != devid && !image->is_dump))
            continue;
        if (image->is_dump || bw_image_has_uuid(image, uuid))
            return image;
        if (bw_bits_different(device->uuid, uuid, BW_UUID_SIZE) == 1)
            similar = image;
    }
    return similar;
}

/* Marks the image of a device item as known; false without such an image. */
static bool match_device(const struct bw_fs *fs, const struct bw_item *item)
{
    const struct bw_disk_device_item *disk = (const void *)item->data;
    if (item->key.type != BW_DEVICE_ITEM || item->size < sizeof *disk)
        return true;
    struct bw_image *image = bw_image_of_device(fs, bw_get64(disk->devid), disk->uuid);
    if (image)
        image->is_known = true;
    return image;
}

/* Marks the image of a device as known, or reports the device as missing. */
static void report_missing_device(struct bw_fs *fs, const struct bw_item *item)
{
    const struct bw_disk_device_item *disk = (const void *)item->data;
    const char *name = "uuid";
    char uuid[37] = "not known";
    if (match_device(fs, item))
        return;
    fs->status.missing_devices++;
    if (!uuid_is_null(disk->uuid))
        bw_uuid_text(disk->uuid, uuid);
    if (!uuid_is_null(disk->fsid) && !bw_superblock_has_block_id(&fs->superblock, disk->fsid) &&
        memcmp(disk->fsid, fs->superblock.device.fsid, BW_UUID_SIZE) != 0) {
        name = "of the seed with fsid";
        bw_uuid_text(disk->fsid, uuid);
    }
    bw_fs_report(fs, BW_WARNING,
                 bw_error_advise(bw_error_create(BW_ERROR_MISSING_DEVICE,
                                                 "device %" PRIu64
                                                 " (%s %s) is missing: the file system is degraded",
                                                 bw_get64(disk->devid), name, uuid),
                                 "`paths` adds devices"));
}

struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs, enum bw_bootstrap_devices devices)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, &fs->chunk_tree, "chunk");
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_chunk chunk;
        if (devices == BW_DEVICES_FOUND)
            match_device(fs, item);
        else if (devices == BW_DEVICES_MISSING)
            report_missing_device(fs, item);
        /* with the remap-tree feature, a chunk whose last extent was moved keeps its item, but has
         * no stripes */
        if (item->key.type != BW_CHUNK_ITEM || bw_chunk_is_remapped_away(item->data, item->size))
            continue;
        struct bw_error *error = bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
        if (!error)
            error = add_chunk(fs, &chunk);
        BW_TRY(bw_fs_report_damage(fs, error));
    }
    return bw_fs_items_error(&items);
}

void bw_bootstrap_report_unknown(struct bw_fs *fs)
{
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->role == BW_IMAGE_UNUSED || image->is_known)
            continue;
        /* 0 is the target of an unfinished replacement; all data is still on the device to be
         * replaced */
        bool replacing = image->superblock.device.devid == 0;
        fs->status.unused_images += !replacing;
        bw_fs_report_text(
            fs, BW_WARNING, BW_ERROR_USAGE, "%s is not used: device %" PRIu64 " is %s", image->name,
            image->superblock.device.devid,
            replacing ? "the target of an unfinished replacement" : "not part of the file system");
    }
}

/* Images without a superblock. */

bool bw_has_unclaimed(const struct bw_fs *fs)
{
    bool has = false;
    for (size_t i = 0; i < fs->image_count; i++)
        has |= fs->images[i].is_unclaimed;
    return has;
}

void bw_bootstrap_end(struct bw_fs *fs)
{
    bool had_unclaimed = false;
    for (size_t i = 0; i < fs->image_count; i++)
        had_unclaimed |= fs->images[i].is_unclaimed || fs->images[i].is_claimed;
    bw_images_refuse(fs);
    if (!had_unclaimed || !fs->chunk_tree.root.bytenr)
        return;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, &fs->chunk_tree, "chunk");
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        report_missing_device(fs, item);
}

struct bw_error *bw_bootstrap_remap(struct bw_fs *fs)
{
    const struct bw_tree tree = {BW_REMAP_TREE, fs->superblock.remap_root, 0};
    if (!tree.root.bytenr)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, &tree, "remap");
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_moved_range range;
        if (item->key.type != BW_REMAP)
            continue;
        struct bw_error *error = bw_moved_range_decode(item, &range);
        if (!error)
            error = bw_graph_control(
                fs->graph, &(struct bw_control){BW_CONTROL_MOVED_RANGE, {.moved = &range}});
        BW_TRY(bw_fs_report_damage(fs, error));
    }
    return bw_fs_items_error(&items);
}
