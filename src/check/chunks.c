/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `chunks`: chunks with each other, with the block groups, and with the list of system
 * chunks in the superblock; and where they lie on the devices.
 *
 * One scan of the chunk tree compares each chunk with the chunk before it, with its block group and
 * with its copy in the superblock, and lists its stripes. Sorted by device and offset, the stripes
 * are compared with each other and, in one walk over both, with the device extents. The sums of the
 * device extents are compared with the devices, and the devices with their superblocks and images.
 * Where a part of a tree is lost, missing items are no findings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "check/check.h"
#include "check/flipped.h"
#include "check/groups.h"
#include "fs/image.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"

/* A stripe of a chunk. */
struct bw_checked_stripe {
    uint64_t devid, offset, length;
    uint64_t logical; /**< of the chunk */
    unsigned number;  /**< in the chunk */
    uint8_t device_uuid[BW_UUID_SIZE];
};

BW_VECTOR(bw_checked_stripes, struct bw_checked_stripe);

/* The stripes and devices of the chunk tree, and the chunks compared so far. */
struct chunks {
    struct bw_check *check;
    struct bw_checked_stripes stripes;
    struct bw_device_list devices; /* ascending */
    bool incomplete;               /* some of them may be lost */
    bool *has_chunk;               /* for each block group */
    bool group_missing;            /* of any chunk */
    uint32_t system_chunks;        /* of the chunk tree that the superblock has */
};

/* The device with an id; NULL if it does not exist. */
static const struct bw_device_info *find_device(const struct chunks *chunks, uint64_t devid)
{
    const struct bw_device_info *devices = chunks->devices.items;
    const size_t i = BW_FIRST_INDEX(k, chunks->devices.count, devices[k].devid >= devid);
    return i < chunks->devices.count && devices[i].devid == devid ? &devices[i] : NULL;
}

static int by_place(const void *first, const void *second)
{
    const struct bw_checked_stripe *a = first, *b = second;
    const uint64_t left[] = {a->devid, a->offset, a->logical};
    const uint64_t right[] = {b->devid, b->offset, b->logical};
    return BW_COMPARE_ALL(left, right);
}

static struct bw_finding location_of_stripe(const struct bw_checked_stripe *stripe)
{
    return BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_CHUNK_TREE,
                      .key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, stripe->logical},
                      .logical = stripe->logical, .devid = stripe->devid, .offset = stripe->offset);
}

/* The bits of an item of the device or the chunk tree, and of a block group. */

/* Whether a block group confirms what the chunk tree has of a chunk. */
static bool is_confirmed(const struct bw_check *check, uint64_t logical)
{
    const struct bw_checked_chunk *chunk = bw_check_chunk(check, logical);
    const struct bw_checked_group *group = bw_check_group(check, logical);
    return chunk && group && chunk->length == group->length && chunk->type == group->flags;
}

static void find_flip_in_device_extent(struct bw_check *check, const struct bw_key *key,
                                       const struct bw_disk_device_extent *disk,
                                       const struct bw_checked_stripe *stripe, struct bw_flip *flip)
{
    const uint64_t chunk = bw_get64(disk->chunk_offset), length = bw_get64(disk->length);
    if (!is_confirmed(check, stripe->logical))
        return;
    if (length == stripe->length)
        bw_flip_in_item(check, BW_DEVICE_TREE, key,
                        offsetof(struct bw_disk_device_extent, chunk_offset), 8, chunk,
                        stripe->logical, flip);
    else if (chunk == stripe->logical)
        bw_flip_in_item(check, BW_DEVICE_TREE, key, offsetof(struct bw_disk_device_extent, length),
                        8, length, stripe->length, flip);
}

/* Whether a stripe may lie at a place: inside of its device, and not in another stripe. */
static bool is_possible(const struct chunks *chunks, const struct bw_checked_stripe *place,
                        const struct bw_checked_stripe *itself)
{
    const struct bw_checked_stripe *stripes = chunks->stripes.items;
    const struct bw_device_info *device = find_device(chunks, place->devid);
    const uint64_t end = place->offset + place->length;
    size_t i = BW_FIRST_INDEX(k, chunks->stripes.count, by_place(&stripes[k], place) > 0);
    bool is_free = device && place->offset <= end && end <= device->total_bytes;
    for (i = i < 2 ? 0 : i - 2; is_free && i < chunks->stripes.count; i++) {
        const struct bw_checked_stripe *other = &stripes[i];
        if (other->devid > place->devid || (other->devid == place->devid && other->offset >= end))
            break;
        is_free = other == itself || other->devid != place->devid ||
                  other->offset + other->length <= place->offset;
    }
    return is_free;
}

/* The key of a device extent where no stripe is: the stripe is at a place that differs in one bit,
 * and cannot be where the device extent is. */
static void find_flip_in_place(const struct chunks *chunks, const struct bw_key *key,
                               const struct bw_disk_device_extent *disk, struct bw_flip *flip)
{
    struct bw_check *check = chunks->check;
    const struct bw_checked_stripe *stripes = chunks->stripes.items;
    struct bw_checked_stripe stripe = {.logical = bw_get64(disk->chunk_offset),
                                       .length = bw_get64(disk->length)};
    const struct bw_checked_stripe have = {.devid = key->objectid,
                                           .offset = key->offset,
                                           .length = stripe.length,
                                           .logical = stripe.logical};
    const struct bw_checked_stripe *right = NULL;
    const bool may_search = bw_flip_may_search(check);
    unsigned found = 0;
    for (unsigned bit = 0; may_search && bit < 128; bit++) {
        stripe.devid = key->objectid ^ (bit < 64 ? UINT64_C(1) << bit : 0);
        stripe.offset = key->offset ^ (bit < 64 ? 0 : UINT64_C(1) << (bit - 64));
        const size_t i =
            BW_FIRST_INDEX(k, chunks->stripes.count, by_place(&stripes[k], &stripe) >= 0);
        if (i == chunks->stripes.count || by_place(&stripes[i], &stripe) != 0 ||
            stripes[i].length != stripe.length)
            continue;
        right = &stripes[i];
        found++;
    }
    if (found != 1 || !is_confirmed(check, stripe.logical) || is_possible(chunks, &have, right) ||
        !is_possible(chunks, right, right))
        return;
    const struct bw_key want = {right->devid, key->type, right->offset};
    bw_flip_in_key(check, BW_DEVICE_TREE, key, &want, flip);
}

/* Whether this is exactly the uuid of a device that was given. */
static bool is_of_image(const struct bw_fs *fs, uint64_t devid, const uint8_t uuid[BW_UUID_SIZE])
{
    const struct bw_image *image = bw_image_of_device(fs, devid, uuid);
    return image && (image->is_dump || bw_image_has_uuid(image, uuid));
}

/* The devid or the uuid in a stripe or in the item of its device, of which the superblock of the
 * device has one. `device`: the one with the devid of the stripe; NULL: none. A wrong stripe of the
 * chunk tree itself hides one of its mirrors, so that a repair would not write it. */
static void find_flip_in_identity(const struct chunks *chunks,
                                  const struct bw_checked_stripe *stripe,
                                  const struct bw_device_info *device, struct bw_flip *flip)
{
    struct bw_check *check = chunks->check;
    const struct bw_key item = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, stripe->devid},
                        chunk = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, stripe->logical};
    const struct bw_checked_chunk *own = bw_check_chunk(check, stripe->logical);
    const bool is_right = is_of_image(check->fs, stripe->devid, stripe->device_uuid);
    if (is_right && device)
        bw_flip_in_bytes(check, BW_CHUNK_TREE, &item, offsetof(struct bw_disk_device_item, uuid),
                         device->uuid, stripe->device_uuid, BW_UUID_SIZE, flip);
    else if (device && own && !(own->type & BW_GROUP_SYSTEM) &&
             is_of_image(check->fs, device->devid, device->uuid))
        bw_flip_in_bytes(check, BW_CHUNK_TREE, &chunk,
                         (uint32_t)(sizeof(struct bw_disk_chunk) +
                                    stripe->number * sizeof(struct bw_disk_stripe) +
                                    offsetof(struct bw_disk_stripe, device_uuid)),
                         stripe->device_uuid, device->uuid, BW_UUID_SIZE, flip);
    if (!is_right || device || !bw_flip_may_search(check))
        return;
    for (size_t i = 0; i < chunks->devices.count; i++)
        if (memcmp(chunks->devices.items[i].uuid, stripe->device_uuid, BW_UUID_SIZE) == 0)
            bw_flip_in_item(check, BW_CHUNK_TREE, &item,
                            offsetof(struct bw_disk_device_item, devid), 8,
                            chunks->devices.items[i].devid, stripe->devid, flip);
}

/* The key of the block group of a chunk, if the device extent of its first stripe confirms the
 * address and the length of the chunk. */
static void find_flip_in_group(struct bw_check *check, const struct bw_chunk *chunk,
                               const struct bw_checked_group *group, struct bw_flip *flip)
{
    const struct bw_listed_tree *devices = bw_tree_list_find(&check->trees, BW_DEVICE_TREE);
    const uint64_t id = check->fs->block_group_tree.id ? BW_BLOCK_GROUP_TREE : BW_EXTENT_TREE;
    if (!devices || !chunk->stripe_count || !bw_flip_may_search(check))
        return;
    const struct bw_key place = {bw_get64(chunk->stripes->devid), BW_DEVICE_EXTENT,
                                 bw_get64(chunk->stripes->offset)};
    const struct bw_chunk_info info = {
        .length = chunk->length, .type = chunk->type, .stripe_count = chunk->stripe_count};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &devices->tree, place, place);
    const struct bw_item *item = bw_fs_items_next(&items);
    const struct bw_disk_device_extent *disk = item ? (const void *)item->data : NULL;
    const struct bw_key want = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
    BW_AUTO_ERROR struct bw_error *error = bw_fs_items_error(&items);
    if (bw_check_lacks_memory(check, error) || error || !item || item->size < sizeof *disk ||
        bw_get64(disk->chunk_offset) != chunk->logical ||
        bw_get64(disk->length) != bw_chunk_stripe_length(&info))
        return;
    if (group)
        bw_flip_in_key(check, id, &(struct bw_key){want.objectid, want.type, group->length}, &want,
                       flip);
    for (unsigned bit = 0; !group && bit < 64 && !flip->found; bit++) {
        const uint64_t start = want.objectid ^ UINT64_C(1) << bit;
        const struct bw_checked_chunk *other = bw_check_chunk(check, start);
        if (!other || other->logical != start)
            bw_flip_in_key(check, id, &(struct bw_key){start, want.type, want.offset}, &want, flip);
    }
}

static void report_missing(const struct chunks *chunks, const struct bw_checked_stripe *stripe,
                           bool known)
{
    const struct bw_finding location = location_of_stripe(stripe);
    if (known)
        bw_check_find(chunks->check, BW_CODE_device_extent_missing, &location,
                      "the stripe has no device extent");
}

/* The order of a stripe and the key of a device extent. */
static int compare_key(const struct bw_checked_stripe *stripe, const struct bw_key *key)
{
    const struct bw_checked_stripe place = {
        .devid = key->objectid, .offset = key->offset, .logical = stripe->logical};
    return by_place(stripe, &place);
}

/* Compares the stripes with each other and with the devices, both with the device extents, in one
 * walk over stripes and device extents, and the sums of device extents with the devices. */
static struct bw_error *stripes_check(struct chunks *chunks)
{
    struct bw_check *check = chunks->check;
    const struct bw_checked_stripe *stripes = chunks->stripes.items;
    const size_t count = chunks->stripes.count;
    size_t next = 0;
    bw_checked_stripes_sort(&chunks->stripes, by_place);

    /* Each stripe with its device, and with the stripe before it. */
    for (size_t i = 0; i < count; i++) {
        const struct bw_checked_stripe *stripe = &stripes[i], *before = i ? stripe - 1 : NULL;
        const struct bw_device_info *device = find_device(chunks, stripe->devid);
        const struct bw_finding location = location_of_stripe(stripe);
        struct bw_finding of_device = location;
        const uint64_t end = stripe->offset + stripe->length;
        const bool is_other =
            !device || memcmp(device->uuid, stripe->device_uuid, BW_UUID_SIZE) != 0;
        if (before && before->devid == stripe->devid &&
            before->offset + before->length > stripe->offset)
            bw_check_find(check, BW_CODE_stripe_overlap, &location,
                          "the stripe of chunk %" PRIu64 " ends at %" PRIu64, before->logical,
                          before->offset + before->length);
        if (is_other)
            find_flip_in_identity(chunks, stripe, device, &of_device.flip);
        if (!device && !chunks->incomplete)
            bw_check_find(check, BW_CODE_stripe_device, &of_device,
                          "the file system has no such device");
        if (!device)
            continue;
        if (is_other)
            bw_check_find(check, BW_CODE_stripe_device, &of_device,
                          "the uuid of the device differs from the uuid in the stripe");
        if (end > device->total_bytes || end < stripe->offset)
            bw_check_find(check, BW_CODE_stripe_outside, &location,
                          "the stripe ends at %" PRIu64 ", the device at %" PRIu64, end,
                          device->total_bytes);
    }

    /* On a zoned file system, every stripe is one zone, and all zones have one size. A device
     * without zones gets the zone size of the first device extent. Source: the kernel's
     * fs/btrfs/zoned.c. */
    const bool is_zoned = check->fs->superblock.incompat_flags & BW_INCOMPAT_ZONED;
    const uint64_t zone = is_zoned && count ? stripes[0].length : 0;
    for (size_t i = 0; zone && i < count; i++) {
        const struct bw_finding location = location_of_stripe(&stripes[i]);
        if (stripes[i].length != zone || stripes[i].offset % zone)
            bw_check_find(check, BW_CODE_stripe_zone, &location,
                          "%" PRIu64 " bytes, not one zone of %" PRIu64 " bytes", stripes[i].length,
                          zone);
    }

    struct bw_item_stream extents;
    BW_AUTO_FREE uint64_t *allocated = calloc(chunks->devices.count + 1, sizeof *allocated);
    if (!allocated)
        return bw_error_no_memory();
    struct bw_error *error =
        bw_item_stream_begin(&extents, check->fs, &check->trees, BW_DEVICE_TREE);
    if (error || !extents.count)
        return bw_item_stream_end(&extents, error);
    for (; !extents.ended; bw_item_stream_next(&extents)) {
        const struct bw_item *item = &extents.item;
        if (item->key.type != BW_DEVICE_EXTENT || item->size < sizeof(struct bw_disk_device_extent))
            continue;
        for (; next < count && compare_key(&stripes[next], &item->key) < 0; next++)
            report_missing(chunks, &stripes[next], !extents.after_loss);
        const bool matches = next < count && compare_key(&stripes[next], &item->key) == 0;
        const struct bw_disk_device_extent *disk = (const void *)item->data;
        const uint64_t chunk = bw_get64(disk->chunk_offset), length = bw_get64(disk->length);
        const struct bw_device_info *device = find_device(chunks, item->key.objectid);
        struct bw_finding location =
            BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_DEVICE_TREE, .key = item->key,
                       .logical = chunk, .devid = item->key.objectid, .offset = item->key.offset);
        if (device)
            allocated[device - chunks->devices.items] += length;
        if (!matches && !chunks->incomplete) {
            find_flip_in_place(chunks, &item->key, disk, &location.flip);
            bw_check_find(check, BW_CODE_device_extent_extra, &location,
                          "no stripe of a chunk is at this position");
        }
        if (matches && (stripes[next].logical != chunk || stripes[next].length != length)) {
            find_flip_in_device_extent(check, &item->key, disk, &stripes[next], &location.flip);
            bw_check_find(check, BW_CODE_device_extent_differs, &location,
                          "%" PRIu64 " bytes of chunk %" PRIu64 ", the chunk tree has %" PRIu64
                          " bytes of chunk %" PRIu64,
                          length, chunk, stripes[next].length, stripes[next].logical);
        }
        next += matches;
    }
    for (; next < count; next++)
        report_missing(chunks, &stripes[next], !extents.after_loss);

    for (size_t i = 0; i < chunks->devices.count && !extents.lost; i++) {
        const struct bw_device_info *device = &chunks->devices.items[i];
        const struct bw_image *image = bw_image_of_device(check->fs, device->devid, device->uuid);
        struct bw_finding location = BW_FINDING(
            BW_TOUCHES_NOTHING, .tree = BW_CHUNK_TREE,
            .key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->devid}, .devid = device->devid);
        if (image && image->superblock.device.bytes_used == allocated[i])
            bw_flip_in_item(check, BW_CHUNK_TREE, &location.row.key,
                            offsetof(struct bw_disk_device_item, bytes_used), 8, device->bytes_used,
                            allocated[i], &location.flip);
        if (device->bytes_used != allocated[i])
            bw_check_find(check, BW_CODE_device_used, &location,
                          "%" PRIu64 " bytes used, its device extents have %" PRIu64,
                          device->bytes_used, allocated[i]);
    }
    return bw_item_stream_end(&extents, NULL);
}

/* Holds the devices against superblocks and images. */
static void devices_check(const struct chunks *chunks)
{
    const struct bw_fs *fs = chunks->check->fs;
    const struct bw_superblock *superblock = &fs->superblock;
    uint64_t writable = 0, all = 0;
    const uint64_t size = superblock->total_bytes, rounding = superblock->sectorsize;
    uint64_t sum = 0;
    for (size_t i = 0; i < chunks->devices.count; i++)
        sum += chunks->devices.items[i].total_bytes;
    for (size_t i = 0; i < chunks->devices.count; i++) {
        const struct bw_device_info *device = &chunks->devices.items[i];
        const struct bw_image *image = bw_image_of_device(fs, device->devid, device->uuid);
        struct bw_finding location = BW_FINDING(
            BW_TOUCHES_NOTHING, .tree = BW_CHUNK_TREE,
            .key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, device->devid}, .devid = device->devid);
        writable += device->seed ? 0 : device->total_bytes;
        all += device->total_bytes;
        if (!image || image->is_dump || device->seed || device->state != BW_DEVICE_PRESENT)
            continue;
        const struct bw_device_identity *own = &image->superblock.device;
        if (!fs->is_past && size == sum - device->total_bytes + own->total_bytes)
            bw_flip_in_item(chunks->check, BW_CHUNK_TREE, &location.row.key,
                            offsetof(struct bw_disk_device_item, total_bytes), 8,
                            device->total_bytes, own->total_bytes, &location.flip);
        if (!fs->is_past &&
            (own->total_bytes != device->total_bytes || own->bytes_used != device->bytes_used))
            bw_check_find(chunks->check, BW_CODE_device_differs, &location,
                          "%" PRIu64 " bytes, %" PRIu64 " used; its superblock has %" PRIu64
                          " bytes, %" PRIu64 " used",
                          device->total_bytes, device->bytes_used, own->total_bytes,
                          own->bytes_used);
        if (!bw_image_has_uuid(image, device->uuid))
            bw_check_find(chunks->check, BW_CODE_device_differs, &location,
                          "one bit of the uuid differs from that in the superblock of the device");
        if (device->image_bytes < device->total_bytes)
            bw_check_find(chunks->check, BW_CODE_device_truncated, &location,
                          "the image has %" PRIu64 " bytes, the device %" PRIu64,
                          device->image_bytes, device->total_bytes);
    }
    if (chunks->incomplete || fs->is_past)
        return;
    if (superblock->device_count != chunks->devices.count)
        bw_check_find(chunks->check, BW_CODE_super_devices, NULL,
                      "%" PRIu64 " device%s, the chunk tree has %zu", superblock->device_count,
                      bw_plural(superblock->device_count), chunks->devices.count);
    if (size < writable || size > all + chunks->devices.count * rounding)
        bw_check_find(chunks->check, BW_CODE_super_devices, NULL,
                      "%" PRIu64 " bytes, the devices have %" PRIu64, size,
                      size < writable ? writable : all);

    /* The sizes that a mount accepts. Kernels before 4.13 rounded the sum, but not the sizes of
     * devices. The superblock of a file system with seeds may include their size or not;
     * btrfs-image sets the size of its output. */
    else if (writable != all ||
             superblock->flags & (BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2))
        return;
    else if (size != all)
        bw_check_find(chunks->check, BW_CODE_super_size, NULL,
                      "%" PRIu64 " bytes, the devices have %" PRIu64, size, all);
    else if (size % rounding)
        bw_check_find(chunks->check, BW_CODE_super_size, NULL,
                      "%" PRIu64 " bytes, no multiple of the sector size, %" PRIu32, size,
                      superblock->sectorsize);
}

/* The next chunk in the superblock's list, where `*at` is 0 before the first; false at the end. */
static bool next_system_chunk(const struct bw_check *check, size_t *at, struct bw_item *item)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    return bw_system_chunk_item(superblock->system_chunk_array, superblock->system_chunk_array_size,
                                at, item);
}

/* The superblock has a copy of each system chunk: everything else is found from these. */
static void check_system_chunk(struct chunks *chunks, const struct bw_item *item, uint64_t type)
{
    struct bw_item copy;
    const struct bw_finding location =
        bw_item_location(BW_CHUNK_TREE, item->key, item->key.offset, 0);
    for (size_t at = 0; next_system_chunk(chunks->check, &at, &copy);) {
        if (bw_key_compare(&copy.key, &item->key) != 0)
            continue;
        chunks->system_chunks++;
        if (copy.size != item->size || memcmp(copy.data, item->data, copy.size) != 0)
            bw_check_find(chunks->check, BW_CODE_system_chunk, &location,
                          "the chunk in the superblock differs");
        return;
    }
    if (type & BW_GROUP_SYSTEM)
        bw_check_find(chunks->check, BW_CODE_system_chunk, &location,
                      "the superblock lacks the chunk");
}

/* Compares each chunk with the previous one, with its block group and with its copy in the
 * superblock, and lists its stripes. The item of a device has the id of the file system that the
 * device was made for: this one or, of a seed, another one. */
static struct bw_error *read_chunks(struct chunks *chunks)
{
    struct bw_check *check = chunks->check;
    struct bw_item_stream stream;
    uint64_t last_start = 0, last_end = 0; /* of the chunk before */
    struct bw_error *error = bw_item_stream_begin(&stream, check->fs, &check->trees, BW_CHUNK_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        const struct bw_item *item = &stream.item;
        const struct bw_disk_device_item *device = (const void *)item->data;
        if (item->key.type == BW_DEVICE_ITEM && item->size >= sizeof *device) {
            const uint64_t devid = bw_get64(device->devid);
            const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, devid};
            const struct bw_image *image = bw_image_of_device(check->fs, devid, device->uuid);
            struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_CHUNK_TREE,
                                                    .key = item->key, .devid = item->key.offset);
            struct bw_finding in_key = location;
            const bool differs = image && !image->is_dump &&
                                 !bw_superblock_has_block_id(&image->superblock, device->fsid);
            if (differs)
                bw_flip_in_bytes(check, BW_CHUNK_TREE, &item->key,
                                 offsetof(struct bw_disk_device_item, fsid), device->fsid,
                                 image->superblock.device.fsid, BW_UUID_SIZE, &location.flip);
            if (differs)
                bw_check_find(check, BW_CODE_device_differs, &location,
                              "the fsid differs from the fsid in the superblock of the device");
            if (!image || image->is_dump || item->key.offset == devid)
                continue;
            bw_flip_in_key(check, BW_CHUNK_TREE, &item->key, &key, &in_key.flip);
            bw_check_find(check, BW_CODE_device_differs, &in_key,
                          "the key is of device %" PRIu64 ", its superblock of device %" PRIu64,
                          item->key.offset, devid);
        }
        if (item->key.type != BW_CHUNK_ITEM)
            continue;
        const struct bw_disk_chunk *disk = (const void *)item->data;
        const bool is_remapped = bw_chunk_is_remapped_away(item->data, item->size);
        const uint64_t logical = item->key.offset;
        struct bw_chunk chunk = {.stripe_count = 0};
        BW_AUTO_ERROR struct bw_error *bad =
            is_remapped ? NULL : bw_chunk_decode(logical, item->data, item->size, &chunk);
        if (bad) { /* tree_items.c reports the fault */
            chunks->incomplete = true;
            continue;
        }
        const uint64_t length = bw_get64(disk->length), type = bw_get64(disk->type);

        /* The chunk before it. */
        const struct bw_finding location =
            bw_item_location(BW_CHUNK_TREE, item->key, logical, length);
        if (logical < last_end)
            bw_check_find(check, BW_CODE_chunk_overlap, &location,
                          "chunk %" PRIu64 " ends at %" PRIu64, last_start, last_end);
        last_start = logical;
        last_end = logical + length;

        /* Its block group. */
        const struct bw_checked_group *group = bw_check_group(check, logical);
        if (group)
            chunks->has_chunk[group - check->groups.groups.items] = true;
        chunks->group_missing |= !group;
        struct bw_finding in_group = location;
        const bool is_wrong = group ? group->length != length : !check->groups.incomplete;
        if (!is_remapped && is_wrong)
            find_flip_in_group(check, &chunk, group, &in_group.flip);
        if (!group && !check->groups.incomplete)
            bw_check_find(check, BW_CODE_group_missing, &in_group, "the chunk has no block group");
        else if (group && group->length != length)
            bw_check_find(check, BW_CODE_group_differs, &in_group,
                          "%" PRIu64 " bytes, its block group has %" PRIu64, length, group->length);
        else if (group && group->flags != type)
            bw_check_find(check, BW_CODE_group_differs, &location,
                          "type 0x%" PRIx64 ", its block group has 0x%" PRIx64, type, group->flags);
        if (!is_remapped && !check->fs->is_past)
            check_system_chunk(chunks, item, type);

        const struct bw_chunk_info info = {
            .length = chunk.length, .type = chunk.type, .stripe_count = chunk.stripe_count};
        for (unsigned i = 0; i < chunk.stripe_count && !error; i++) {
            struct bw_checked_stripe stripe = {.devid = bw_get64(chunk.stripes[i].devid),
                                               .offset = bw_get64(chunk.stripes[i].offset),
                                               .length = bw_chunk_stripe_length(&info),
                                               .logical = chunk.logical,
                                               .number = i};
            memcpy(stripe.device_uuid, chunk.stripes[i].device_uuid, BW_UUID_SIZE);
            error = bw_checked_stripes_push(&chunks->stripes, stripe);
        }
    }
    chunks->incomplete |= stream.lost;
    return bw_item_stream_end(&stream, error);
}

static void chunks_free(struct chunks *chunks)
{
    free(chunks->has_chunk);
    bw_checked_stripes_free(&chunks->stripes);
    bw_device_list_free(&chunks->devices);
}

struct bw_error *bw_pass_chunks(struct bw_check *check)
{
    BW_SCOPED(chunks) struct chunks chunks = {.check = check};
    BW_TRY(bw_check_load_groups(check));
    chunks.has_chunk = calloc(check->groups.groups.count + 1, sizeof *chunks.has_chunk);
    if (!chunks.has_chunk)
        return bw_error_no_memory();
    BW_TRY(bw_fs_devices(check->fs, &chunks.devices));
    BW_TRY(read_chunks(&chunks));

    /* Block groups and entries of the superblock that no chunk has met. */
    for (size_t i = 0; !chunks.incomplete && i < check->groups.groups.count; i++) {
        const struct bw_checked_group *group = &check->groups.groups.items[i];
        const struct bw_key key = {group->start, BW_BLOCK_GROUP_ITEM, group->length};
        const struct bw_finding location =
            bw_item_location(check->fs->block_group_tree.id ? BW_BLOCK_GROUP_TREE : BW_EXTENT_TREE,
                             key, group->start, group->length);
        if (!chunks.has_chunk[i])
            bw_check_find(check, BW_CODE_chunk_missing, &location, "the block group has no chunk");
    }
    struct bw_item copy;
    uint32_t count = 0;
    for (size_t at = 0; next_system_chunk(check, &at, &copy);)
        count++;
    if (!chunks.incomplete && !check->fs->is_past && count != chunks.system_chunks)
        bw_check_find(check, BW_CODE_system_chunk, NULL,
                      "the superblock has %" PRIu32 " system chunk%s, of which the chunk tree has "
                      "%" PRIu32,
                      count, bw_plural(count), chunks.system_chunks);
    check->groups.incomplete |= chunks.group_missing;
    BW_TRY(stripes_check(&chunks));
    devices_check(&chunks);
    return NULL;
}
