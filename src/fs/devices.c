/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The public functions about superblocks, devices and chunks, and about mapping logical addresses.
 * The devices and chunks are items of the chunk tree, which is read again for each list. Each
 * device is looked up among the images by its id and uuid. The layers map an address, as for a
 * read.
 */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "graph/wind.h"
#include "ondisk/chunk.h"

static void describe_superblock(const struct bw_superblock *superblock, uint64_t offset,
                                struct bw_superblock_info *info)
{
    *info = (struct bw_superblock_info){
        .offset = offset,
        .generation = superblock->generation,
        .flags = superblock->flags,
        .root = superblock->root.bytenr,
        .chunk_root = superblock->chunk_root.bytenr,
        .log_root = superblock->log_root,
        .root_level = superblock->root.level,
        .chunk_root_level = superblock->chunk_root.level,
        .chunk_root_generation = superblock->chunk_root.generation,
        .total_bytes = superblock->total_bytes,
        .bytes_used = superblock->bytes_used,
        .device_count = superblock->device_count,
        .sectorsize = superblock->sectorsize,
        .nodesize = superblock->nodesize,
        .compat_ro_flags = superblock->compat_ro_flags,
        .incompat_flags = superblock->incompat_flags,
        .checksum_type = superblock->checksum_type,
        .devid = superblock->device.devid,
        .device_bytes = superblock->device.total_bytes,
    };
    memcpy(info->fsid, superblock->fsid, BW_UUID_SIZE);
    memcpy(info->metadata_uuid, superblock->metadata_uuid, BW_UUID_SIZE);
    memcpy(info->device_uuid, superblock->device.uuid, BW_UUID_SIZE);
    memcpy(info->label, superblock->label, sizeof info->label);
}

static_assert(sizeof((struct bw_superblock_info *)0)->label ==
                  sizeof((struct bw_superblock *)0)->label,
              "labels have one size");

void bw_fs_superblock(const struct bw_fs *fs, struct bw_superblock_info *superblock)
{
    describe_superblock(&fs->superblock, bw_superblock_offset(0), superblock);
}

size_t bw_fs_image_count(const struct bw_fs *fs)
{
    return fs->image_count;
}

const char *bw_fs_image_path(const struct bw_fs *fs, size_t image)
{
    return fs->images[image].name;
}

/* Whether several images contribute to a layer. */
static bool is_joined(const struct bw_xlator *layer)
{
    while (bw_xlator_child_count(layer) == 1)
        layer = bw_xlator_child(layer, 0);
    return bw_xlator_child_count(layer) > 0;
}

bool bw_fs_image_info(const struct bw_fs *fs, size_t index, struct bw_image_info *info)
{
    if (index >= fs->image_count)
        return false;
    const struct bw_image *image = &fs->images[index];
    *info = (struct bw_image_info){
        .name = image->name,
        .path = image->path,
        .container = image->container,
        .content = image->content,
        .is_empty = image->is_empty,
        .has_superblock = !image->bad,
        .copy = image->copy,
        .error = image->bad,
        .has_failed = image->has_failed,
        .is_stream = image->is_stream,
    };
    if (image->storage) {
        info->size = bw_xlator_size(image->storage);
        info->is_joined = is_joined(image->storage);
    }
    if (info->has_superblock)
        describe_superblock(&image->superblock, bw_superblock_offset(image->copy),
                            &info->superblock);
    return true;
}

static struct bw_error *check_number(const struct bw_fs *fs, size_t image, unsigned copy)
{
    if (image < fs->image_count && copy < BW_SUPERBLOCK_COPIES)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no superblock copy %u of image %zu", copy,
                           image);
}

struct bw_error *bw_fs_read_superblock(struct bw_fs *fs, size_t image, unsigned copy,
                                       struct bw_superblock_info *info)
{
    struct bw_superblock superblock;
    uint64_t offset;
    BW_TRY(check_number(fs, image, copy));
    BW_TRY(bw_image_read_copy(fs, &fs->images[image], copy, &superblock, &offset));
    describe_superblock(&superblock, offset, info);
    return NULL;
}

static_assert((int)BW_SUPERBLOCK_BYTES == (int)BW_SUPERBLOCK_SIZE, "superblocks have one size");

struct bw_error *bw_fs_copy_superblock(struct bw_fs *fs, size_t image, unsigned copy,
                                       uint8_t bytes[BW_SUPERBLOCK_BYTES], uint64_t *offset)
{
    BW_TRY(check_number(fs, image, copy));
    return bw_image_copy_bytes(&fs->images[image], copy, bytes, offset);
}

BW_VECTOR(bw_device_infos, struct bw_device_info);

struct bw_error *bw_fs_devices(struct bw_fs *fs, struct bw_device_list *devices)
{
    BW_SCOPED(bw_device_infos) struct bw_device_infos infos = {0};
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    *devices = (struct bw_device_list){0};
    bw_fs_items_begin(&items, fs, &fs->chunk_tree,
                      (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, 0},
                      (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_item *disk = (const void *)item->data;
        if (item->size < sizeof *disk) {
            bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "chunk tree: the item of device %" PRIu64 " is cut off",
                              item->key.offset);
            continue;
        }
        struct bw_device_info info = {.devid = bw_get64(disk->devid),
                                      .state = BW_DEVICE_MISSING,
                                      .total_bytes = bw_get64(disk->total_bytes),
                                      .bytes_used = bw_get64(disk->bytes_used),
                                      .seed =
                                          !bw_superblock_has_block_id(&fs->superblock, disk->fsid)};
        memcpy(info.uuid, disk->uuid, BW_UUID_SIZE);
        const struct bw_image *image = bw_image_of_device(fs, info.devid, disk->uuid);
        if (image) {
            info.state = bw_image_is_stale(fs, image) ? BW_DEVICE_STALE : BW_DEVICE_PRESENT;
            info.path = image->path;
            info.partition = image->partition;
            info.partition_offset = image->partition ? image->offset : 0;
            info.container = image->container;
            info.generation = image->superblock.generation;
            info.image_bytes = bw_xlator_size(image->storage);
        }
        BW_TRY(bw_device_infos_push(&infos, info));
    }
    BW_TRY(bw_fs_items_error(&items));
    devices->count = infos.count;
    devices->items = BW_TAKE(infos.items);
    return NULL;
}

void bw_device_list_free(struct bw_device_list *devices)
{
    free(devices->items);
    *devices = (struct bw_device_list){0};
}

const char *bw_device_state_name(enum bw_device_state state)
{
    if (state == BW_DEVICE_PRESENT)
        return "present";
    return state == BW_DEVICE_STALE ? "stale" : "missing";
}

/* The bytes of a device. */

struct bw_device_reader {
    struct bw_xlator *top;
};

struct bw_error *bw_device_reader_open(struct bw_fs *fs, uint64_t devid,
                                       struct bw_device_reader **result)
{
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    *result = NULL;
    BW_TRY(bw_fs_devices(fs, &devices));
    size_t i = 0;
    while (i < devices.count && devices.items[i].devid != devid)
        i++;
    if (i == devices.count)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no device %" PRIu64, devid);
    const struct bw_image *image = bw_image_of_device(fs, devid, devices.items[i].uuid);
    if (!image)
        return bw_error_create(BW_ERROR_MISSING_DEVICE, "device %" PRIu64 " is missing", devid);
    if (image->is_dump || image->is_stream)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "%s contains no devices", image->path);
    struct bw_device_reader *reader = *result = calloc(1, sizeof *reader);
    if (!reader)
        return bw_error_no_memory();
    reader->top = image->top ? image->top : image->storage;
    return NULL;
}

struct bw_error *bw_device_reader_read(const struct bw_device_reader *reader, uint64_t offset,
                                       void *buffer, uint32_t length)
{
    return bw_read_raw(NULL, reader->top, offset, buffer, length);
}

void bw_device_reader_advise(const struct bw_device_reader *reader, uint64_t offset,
                             uint64_t length)
{
    const struct bw_range range = {offset, length};
    bw_wind_advise(NULL, reader->top, &range, 1, 0);
}

void bw_device_reader_close(struct bw_device_reader *reader)
{
    free(reader);
}

BW_VECTOR(bw_chunk_infos, struct bw_chunk_info);

struct bw_error *bw_fs_chunks(struct bw_fs *fs, struct bw_chunk_list *chunks)
{
    struct bw_chunk_infos infos = {0};
    struct bw_error *error = NULL;
    struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->chunk_tree,
                      (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, 0},
                      (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, UINT64_MAX});
    for (const struct bw_item *item; !error && (item = bw_fs_items_next(&items));) {
        struct bw_chunk chunk;
        if (bw_chunk_is_remapped_away(item->data, item->size))
            continue;
        struct bw_error *bad = bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
        if (bad) {
            bw_fs_report(fs, BW_DAMAGE, bad);
            continue;
        }
        error = bw_chunk_infos_reserve(&infos, 1);
        if (!error)
            error = bw_chunk_describe(&chunk, &infos.items[infos.count]);
        if (!error)
            bw_chunk_correct_uuids(fs, &infos.items[infos.count++]);
    }
    if (!error)
        error = bw_fs_items_error(&items);
    bw_fs_items_free(&items);
    *chunks = (struct bw_chunk_list){infos.items, infos.count};
    if (error)
        bw_chunk_list_free(chunks);
    return error;
}

void bw_chunk_list_free(struct bw_chunk_list *chunks)
{
    for (size_t i = 0; i < chunks->count; i++)
        free((void *)(uintptr_t)chunks->items[i].stripes);
    free(chunks->items);
    *chunks = (struct bw_chunk_list){0};
}

const char *bw_fs_alternative(const struct bw_fs *fs, uint64_t devid, uint64_t number)
{
    for (size_t i = 0; i < fs->image_count && number; i++) {
        const struct bw_image *image = &fs->images[i];
        if (image->alternative == number && image->superblock.device.devid == devid)
            return image->path;
    }
    return NULL;
}

struct bw_error *bw_fs_map(struct bw_fs *fs, uint64_t logical, uint64_t length, unsigned mirror,
                           struct bw_mapping *mapping)
{
    struct bw_map_reply reply = {.copies = 0};
    struct bw_error *error =
        bw_wind_map(NULL, fs->reader.top, logical,
                    length < UINT32_MAX ? (uint32_t)length : UINT32_MAX, mirror, &reply);
    *mapping = (struct bw_mapping){.copies = reply.copies,
                                   .length = reply.length ? reply.length : length,
                                   .devid = reply.location.devid,
                                   .offset = reply.location.offset,
                                   .present = reply.location.present,
                                   .rebuilt = reply.location.rebuilt,
                                   .alternative = reply.location.alternative};
    if (error)
        mapping->copies = 0;
    /* an address outside of all chunks is damage when it is read, but a valid result of a query */
    if (error && error->code == BW_ERROR_CORRUPT)
        error->code = BW_ERROR_NOT_FOUND;
    if (!error && (!mirror || mirror > reply.copies))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "address %" PRIu64 " has no mirror %u", logical,
                                mirror);
    return error;
}

enum bw_chunk_condition bw_chunk_condition(const struct bw_fs *fs,
                                           const struct bw_chunk_info *chunk, unsigned *missing)
{
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    const unsigned copies = profile->copies ? profile->copies : chunk->stripe_count;
    unsigned count = 0, in_group = 0;
    bool has_lost_group = false; /* all mirrors of some data: stripes with the same are adjacent */
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        const struct bw_stripe_info *stripe = &chunk->stripes[i];
        const bool is_missing = !bw_image_of_device(fs, stripe->devid, stripe->device_uuid);
        if (i % copies == 0)
            in_group = 0;
        in_group += is_missing;
        count += is_missing;
        has_lost_group |= in_group == copies;
    }
    if (missing)
        *missing = count;
    if (!count)
        return BW_CHUNK_COMPLETE;
    bool incomplete = has_lost_group;
    if (profile->parity_stripes)
        incomplete = count > profile->parity_stripes;
    return incomplete ? BW_CHUNK_INCOMPLETE : BW_CHUNK_DEGRADED;
}
