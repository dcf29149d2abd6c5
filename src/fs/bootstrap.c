/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Filling the address map of the graph. */
#include "fs/bootstrap.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/scan.h"
#include "format/chunk.h"
#include "fs/roots.h"

/* Tells the layers of a chunk. */
static struct bw_error *add_chunk(struct bw_fs *fs, const struct bw_chunk *chunk)
{
    BW_AUTO_FREE struct bw_stripe_info *stripes = calloc(chunk->stripe_count, sizeof *stripes);
    const struct bw_chunk_info info = {.logical = chunk->logical,
                                       .length = chunk->length,
                                       .type = chunk->type,
                                       .profile = chunk->profile->name,
                                       .stripe_count = chunk->stripe_count,
                                       .stripes = stripes};
    if (!stripes)
        return bw_error_no_memory();
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        stripes[i].devid = bw_get64(chunk->stripes[i].devid);
        stripes[i].offset = bw_get64(chunk->stripes[i].offset);
        memcpy(stripes[i].device_uuid, chunk->stripes[i].device_uuid, BW_UUID_SIZE);
    }
    struct bw_error *error =
        bw_graph_control(fs->graph, &(struct bw_control){BW_CONTROL_CHUNK, {.chunk = &info}});
    BW_PROBE(bw_graph_probes(fs->graph), chunk__add, chunk,
             &(struct bw_chunk_event){{.error = error}, chunk});
    return error;
}

/* The superblock's array: key, chunk item, key, chunk item, ... */
static struct bw_error *add_system_chunks(struct bw_fs *fs)
{
    const uint8_t *next = fs->superblock.system_chunk_array;
    size_t left = fs->superblock.system_chunk_array_size;
    while (left) {
        struct bw_chunk chunk;
        const struct bw_disk_key *disk = (const void *)next;
        size_t size =
            left < sizeof *disk ? 0 : bw_chunk_item_size(next + sizeof *disk, left - sizeof *disk);
        if (!size || disk->type != BW_CHUNK_ITEM)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "superblock: system chunk array is cut off, %zu bytes left",
                                   left);
        BW_TRY(bw_chunk_decode(bw_get64(disk->offset), next + sizeof *disk, size, &chunk));
        BW_TRY(add_chunk(fs, &chunk));
        next += sizeof *disk + size;
        left -= sizeof *disk + size;
    }
    return NULL;
}

struct chunk_walk {
    struct bw_fs *fs;
    struct bw_image_set set;
    bool *matched; /* per image: the chunk tree knows this device */
};

static void match_device(struct chunk_walk *walk, const struct bw_item *item)
{
    const struct bw_disk_device_item *disk = (const void *)item->data;
    char uuid[37];
    bool found = false;
    if (item->size < sizeof *disk)
        return;
    for (size_t i = 0; i < walk->set.count; i++) {
        const struct bw_device_identity *device = &walk->set.images[i].superblock.device;
        if (walk->set.images[i].role == BW_IMAGE_UNUSED || device->devid != bw_get64(disk->devid) ||
            memcmp(device->uuid, disk->uuid, BW_UUID_SIZE) != 0)
            continue;
        walk->matched[i] = found = true;
    }
    if (found)
        return;
    walk->fs->status.missing_devices++;
    bw_uuid_text(disk->uuid, uuid);
    bw_fs_report(walk->fs, BW_WARNING,
                 bw_error_create(BW_ERROR_MISSING_DEVICE,
                                 "device %" PRIu64
                                 " (uuid %s) is missing: the file system is degraded",
                                 bw_get64(disk->devid), uuid));
}

static struct bw_error *add_chunk_item(struct chunk_walk *walk, const struct bw_item *item)
{
    struct bw_chunk chunk;
    /* With the remap-tree feature a chunk whose last extent has been moved keeps its item, but no
     * stripes. */
    if (bw_chunk_is_remapped_away(item->data, item->size))
        return NULL;
    BW_TRY(bw_chunk_decode(item->key.offset, item->data, item->size, &chunk));
    return add_chunk(walk->fs, &chunk);
}

static struct bw_error *chunk_leaf(void *context, const struct bw_node *leaf)
{
    struct chunk_walk *walk = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        struct bw_error *error = NULL;
        if (!bw_leaf_item(leaf, slot, &item))
            error = bw_error_create(BW_ERROR_CORRUPT,
                                    "chunk tree: item %" PRIu32 " lies outside its leaf", slot);
        else if (item.key.type == BW_CHUNK_ITEM)
            error = add_chunk_item(walk, &item);
        else if (item.key.type == BW_DEVICE_ITEM)
            match_device(walk, &item);
        if (error)
            bw_fs_report(walk->fs, BW_DAMAGE, error);
    }
    return NULL;
}

static struct bw_error *chunk_lost(void *context, const struct bw_block_pointer *pointer,
                                   struct bw_error *error)
{
    struct chunk_walk *walk = context;
    (void)pointer;
    bw_fs_report(walk->fs, BW_DAMAGE, error);
    return NULL;
}

static void report_unmatched(struct chunk_walk *walk)
{
    for (size_t i = 0; i < walk->set.count; i++) {
        const struct bw_image *image = &walk->set.images[i];
        if (image->role == BW_IMAGE_UNUSED || walk->matched[i])
            continue;
        /* Number 0 is the target of a replacement that is not finished; all is on the device it is
         * to replace. */
        bool replacing = image->superblock.device.devid == 0;
        walk->fs->status.unused_images += !replacing;
        bw_fs_report(walk->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_USAGE, "%s is not used: device %" PRIu64 " is %s",
                                     image->path, image->superblock.device.devid,
                                     replacing ? "the target of an unfinished replacement"
                                               : "no part of the file system"));
    }
}

struct bw_error *bw_bootstrap_chunks(struct bw_fs *fs, const struct bw_image_set *set)
{
    BW_AUTO_FREE bool *matched = calloc(set->count, sizeof *matched);
    if (!matched)
        return bw_error_no_memory();
    struct chunk_walk walk = {fs, *set, matched};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = chunk_leaf, .lost = chunk_lost,
                                 .context = &walk};
    BW_TRY(add_system_chunks(fs));
    BW_TRY(bw_find_super_root(fs, BW_SUPER_CHUNK_ROOT, &fs->chunk_tree));
    uint64_t damages = fs->damages;
    BW_TRY(bw_tree_scan(&fs->reader, &fs->chunk_tree, &scan));
    if (damages == fs->damages)
        report_unmatched(&walk);
    return NULL;
}

static struct bw_error *add_moved_range(const struct bw_fs *fs, const struct bw_item *item)
{
    bw_le64 address;
    if (item->size < sizeof address)
        return bw_error_create(BW_ERROR_CORRUPT, "remap tree: the item of %" PRIu64 " is cut off",
                               item->key.objectid);
    memcpy(&address, item->data, sizeof address);
    const struct bw_moved_range range = {item->key.objectid, item->key.offset, bw_get64(address)};
    return bw_graph_control(fs->graph,
                            &(struct bw_control){BW_CONTROL_MOVED_RANGE, {.moved = &range}});
}

static struct bw_error *remap_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_fs *fs = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        struct bw_error *error = NULL;
        if (!bw_leaf_item(leaf, slot, &item))
            error = bw_error_create(BW_ERROR_CORRUPT,
                                    "remap tree: item %" PRIu32 " lies outside its leaf", slot);
        else if (item.key.type == BW_REMAP)
            error = add_moved_range(fs, &item);
        if (error)
            bw_fs_report(fs, BW_DAMAGE, error);
    }
    return NULL;
}

static struct bw_error *remap_lost(void *context, const struct bw_block_pointer *pointer,
                                   struct bw_error *error)
{
    (void)pointer;
    bw_fs_report(context, BW_DAMAGE, error);
    return NULL;
}

struct bw_error *bw_bootstrap_remap(struct bw_fs *fs)
{
    const struct bw_tree tree = {BW_REMAP_TREE, fs->superblock.remap_root, 0};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = remap_leaf, .lost = remap_lost,
                                 .context = fs};
    return tree.root.bytenr ? bw_tree_scan(&fs->reader, &tree, &scan) : NULL;
}
