/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stripes of chunks and device extents, both in the order of devices and offsets, held against each
 * other; and the devices against their superblocks, their images and the sums over them.
 */
#include "check/stripes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "btrfs-walk/space.h"
#include "owners/item_stream.h"
#include "ondisk/disk_items.h"
#include "fs/image.h"

bool bw_stripes_add(struct bw_stripe_list *list, const struct bw_chunk *chunk)
{
    const struct bw_chunk_info info = {
        .length = chunk->length, .type = chunk->type, .stripe_count = chunk->stripe_count};
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        if (!BW_ARRAY_RESERVE(list->stripes, list->count, list->capacity))
            return false;
        struct bw_checked_stripe *stripe = &list->stripes[list->count++];
        *stripe = (struct bw_checked_stripe){.devid = bw_get64(chunk->stripes[i].devid),
                                             .offset = bw_get64(chunk->stripes[i].offset),
                                             .length = bw_chunk_stripe_length(&info),
                                             .logical = chunk->logical};
        memcpy(stripe->device_uuid, chunk->stripes[i].device_uuid, BW_UUID_SIZE);
    }
    return true;
}

struct bw_checked_device *bw_checked_device(const struct bw_stripe_list *list, uint64_t devid)
{
    struct bw_checked_device *devices = list->devices;
    size_t i = BW_FIRST_INDEX(k, list->device_count, devices[k].info.devid >= devid);
    return i < list->device_count && devices[i].info.devid == devid ? &devices[i] : NULL;
}

static int compare(const void *left, const void *right)
{
    const struct bw_checked_stripe *a = left, *b = right;
    if (a->devid != b->devid)
        return a->devid < b->devid ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->logical == b->logical ? 0 : a->logical < b->logical ? -1 : 1;
}

static struct bw_subject subject_of_stripe(const struct bw_checked_stripe *stripe)
{
    return (struct bw_subject){.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY |
                                                    BW_KNOWN_LOGICAL | BW_KNOWN_DEVICE |
                                                    BW_KNOWN_OFFSET,
                                           .tree = BW_CHUNK_TREE,
                                           .key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, stripe->logical},
                                           .logical = stripe->logical,
                                           .devid = stripe->devid,
                                           .offset = stripe->offset}};
}

/* A stripe with its device, and with the stripe before it. */
static void check_stripe(const struct bw_stripe_list *list, const struct bw_checked_stripe *stripe,
                         const struct bw_checked_stripe *before)
{
    const struct bw_checked_device *device = bw_checked_device(list, stripe->devid);
    const struct bw_subject subject = subject_of_stripe(stripe);
    const uint64_t end = stripe->offset + stripe->length;
    if (before && before->devid == stripe->devid &&
        before->offset + before->length > stripe->offset)
        bw_check_find(list->check, BW_CODE_stripe_overlap, &subject,
                      "the stripe of chunk %" PRIu64 " ends at %" PRIu64, before->logical,
                      before->offset + before->length);
    if (!device && !list->incomplete)
        bw_check_find(list->check, BW_CODE_stripe_device, &subject,
                      "the file system has no such device");
    if (!device)
        return;
    if (memcmp(device->info.uuid, stripe->device_uuid, BW_UUID_SIZE) != 0)
        bw_check_find(list->check, BW_CODE_stripe_device, &subject,
                      "the device has another uuid than the stripe says");
    if (end > device->info.total_bytes || end < stripe->offset)
        bw_check_find(list->check, BW_CODE_stripe_outside, &subject,
                      "the stripe ends at %" PRIu64 ", the device at %" PRIu64, end,
                      device->info.total_bytes);
}

/* On a zoned file system, every stripe is one zone, and all zones have one size. A device without
 * zones has those of the first device extent. Source: the kernel's fs/btrfs/zoned.c. */
static void check_zones(const struct bw_stripe_list *list)
{
    const uint64_t zone = list->count ? list->stripes[0].length : 0;
    if (!(list->check->fs->superblock.incompat_flags & BW_INCOMPAT_ZONED) || !zone)
        return;
    for (size_t i = 0; i < list->count; i++) {
        const struct bw_checked_stripe *stripe = &list->stripes[i];
        const struct bw_subject subject = subject_of_stripe(stripe);
        if (stripe->length != zone || stripe->offset % zone)
            bw_check_find(list->check, BW_CODE_stripe_zone, &subject,
                          "%" PRIu64 " bytes are not one zone of %" PRIu64 " bytes", stripe->length,
                          zone);
    }
}

static void report_missing(const struct bw_stripe_list *list,
                           const struct bw_checked_stripe *stripe, bool known)
{
    const struct bw_subject subject = subject_of_stripe(stripe);
    if (known)
        bw_check_find(list->check, BW_CODE_device_extent_missing, &subject,
                      "the stripe has no device extent");
}

/* A device extent with the stripe at its place; NULL: there is none. */
static void check_extent(struct bw_stripe_list *list, const struct bw_item *item,
                         const struct bw_checked_stripe *stripe)
{
    const struct bw_disk_device_extent *disk = (const void *)item->data;
    const uint64_t chunk = bw_get64(disk->chunk_offset), length = bw_get64(disk->length);
    struct bw_checked_device *device = bw_checked_device(list, item->key.objectid);
    const struct bw_subject subject = {.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY |
                                                            BW_KNOWN_LOGICAL | BW_KNOWN_DEVICE |
                                                            BW_KNOWN_OFFSET,
                                                   .tree = BW_DEVICE_TREE,
                                                   .key = item->key,
                                                   .logical = chunk,
                                                   .devid = item->key.objectid,
                                                   .offset = item->key.offset}};
    if (device)
        device->allocated += length;
    if (!stripe && !list->incomplete)
        bw_check_find(list->check, BW_CODE_device_extent_extra, &subject,
                      "no stripe of a chunk lies there");
    else if (stripe && (stripe->logical != chunk || stripe->length != length))
        bw_check_find(list->check, BW_CODE_device_extent_differs, &subject,
                      "%" PRIu64 " bytes of chunk %" PRIu64 ", the chunk tree has %" PRIu64
                      " bytes of chunk %" PRIu64,
                      length, chunk, stripe->length, stripe->logical);
}

/* The order of a stripe and the key of a device extent. */
static int compare_key(const struct bw_checked_stripe *stripe, const struct bw_key *key)
{
    const struct bw_checked_stripe place = {
        .devid = key->objectid, .offset = key->offset, .logical = stripe->logical};
    return compare(stripe, &place);
}

/* Goes through both lists at once. `*lost` is set if a part of the device tree is. */
static void match(struct bw_stripe_list *list, struct bw_item_stream *extents)
{
    size_t i = 0;
    for (; !extents->ended; bw_item_stream_next(extents)) {
        const struct bw_item *item = &extents->item;
        if (item->key.type != BW_DEVICE_EXTENT || item->size < sizeof(struct bw_disk_device_extent))
            continue;
        for (; i < list->count && compare_key(&list->stripes[i], &item->key) < 0; i++)
            report_missing(list, &list->stripes[i], !extents->after_loss);
        const bool matches = i < list->count && compare_key(&list->stripes[i], &item->key) == 0;
        check_extent(list, item, matches ? &list->stripes[i] : NULL);
        i += matches;
    }
    for (; i < list->count; i++)
        report_missing(list, &list->stripes[i], !extents->after_loss);
}

static void check_used(const struct bw_stripe_list *list)
{
    for (size_t i = 0; i < list->device_count; i++) {
        const struct bw_checked_device *device = &list->devices[i];
        const struct bw_subject subject = {
            .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_DEVICE,
                        .tree = BW_CHUNK_TREE,
                        .key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->info.devid},
                        .devid = device->info.devid}};
        if (device->info.bytes_used != device->allocated)
            bw_check_find(list->check, BW_CODE_device_used, &subject,
                          "%" PRIu64 " bytes used, its device extents have %" PRIu64,
                          device->info.bytes_used, device->allocated);
    }
}

struct bw_error *bw_stripes_check(struct bw_stripe_list *list)
{
    struct bw_item_stream extents;
    if (list->count)
        qsort(list->stripes, list->count, sizeof *list->stripes, compare);
    for (size_t i = 0; i < list->count; i++)
        check_stripe(list, &list->stripes[i], i ? &list->stripes[i - 1] : NULL);
    check_zones(list);
    struct bw_error *error =
        bw_item_stream_begin(&extents, list->check->fs, &list->check->trees, BW_DEVICE_TREE);
    if (!error && extents.count) {
        match(list, &extents);
        if (!extents.lost)
            check_used(list);
    }
    return bw_item_stream_end(&extents, error);
}

/* Devices. */

static void check_device(struct bw_check *check, const struct bw_device_info *device)
{
    const struct bw_image *image = bw_image_of_device(check->fs, device->devid, device->uuid);
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_DEVICE,
                    .tree = BW_CHUNK_TREE,
                    .key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->devid},
                    .devid = device->devid}};
    if (!image || image->is_dump || device->seed || device->state != BW_DEVICE_PRESENT)
        return;
    const struct bw_device_identity *own = &image->superblock.device;
    if (!check->fs->is_past &&
        (own->total_bytes != device->total_bytes || own->bytes_used != device->bytes_used))
        bw_check_find(check, BW_CODE_device_differs, &subject,
                      "%" PRIu64 " bytes, %" PRIu64 " used; its superblock has %" PRIu64
                      " bytes, %" PRIu64 " used",
                      device->total_bytes, device->bytes_used, own->total_bytes, own->bytes_used);
    if (device->image_bytes < device->total_bytes)
        bw_check_find(check, BW_CODE_device_truncated, &subject,
                      "the image has %" PRIu64 " bytes, the device %" PRIu64, device->image_bytes,
                      device->total_bytes);
}

/* What a mount accepts. Kernels before 4.13 rounded the sum, and not the sizes of devices. Of a
 * file system with seeds, the superblock may count their size or not; btrfs-image sets the size of
 * what it restores. */
static void check_exact_size(const struct bw_stripe_list *list, uint64_t sum)
{
    const struct bw_superblock *superblock = &list->check->fs->superblock;
    const uint64_t size = superblock->total_bytes;
    if (superblock->flags & (BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2))
        return;
    if (size != sum)
        bw_check_find(list->check, BW_CODE_super_size, &(struct bw_subject){0},
                      "%" PRIu64 " bytes, the devices have %" PRIu64, size, sum);
    else if (size % superblock->sectorsize)
        bw_check_find(list->check, BW_CODE_super_size, &(struct bw_subject){0},
                      "%" PRIu64 " bytes, no multiple of the sector size, %" PRIu32, size,
                      superblock->sectorsize);
}

void bw_devices_check(const struct bw_stripe_list *list)
{
    const struct bw_superblock *superblock = &list->check->fs->superblock;
    const struct bw_subject nothing = {0};
    uint64_t writable = 0, all = 0;
    const uint64_t size = superblock->total_bytes, rounding = superblock->sectorsize;
    for (size_t i = 0; i < list->device_count; i++) {
        const struct bw_device_info *device = &list->devices[i].info;
        check_device(list->check, device);
        writable += device->seed ? 0 : device->total_bytes;
        all += device->total_bytes;
    }
    if (list->incomplete || list->check->fs->is_past)
        return;
    if (superblock->device_count != list->device_count)
        bw_check_find(list->check, BW_CODE_super_devices, &nothing,
                      "%" PRIu64 " device%s, the chunk tree has %zu", superblock->device_count,
                      bw_plural(superblock->device_count), list->device_count);
    if (size < writable || size > all + list->device_count * rounding)
        bw_check_find(list->check, BW_CODE_super_devices, &nothing,
                      "%" PRIu64 " bytes, the devices have %" PRIu64, size,
                      size < writable ? writable : all);
    else if (writable == all)
        check_exact_size(list, all);
}
