/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks without contents behind the end of an image that is smaller than its device. A mount needs
 * no such chunk, so it is taken out: its item, its device extents on all devices, its block group,
 * and its free space (removals.c); and the devices have that many bytes less in use. A chunk may
 * lie behind the ends of several images, so those of all images are taken out together.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "ondisk/disk_items.h"
#include "repair/repair.h"

struct cutting {
    struct bw_repair *repair;
    struct bw_repair_finding *finding;
    struct bw_tree device_tree;
    struct bw_number_set chunks; /* their logical addresses */
    struct bw_repair_removals removals;
    const char *obstacle; /* why that is not possible; NULL: it is */
};

/* Lists the items in a range of keys. */
static struct bw_error *remove_range(struct cutting *cutting, const struct bw_tree *tree,
                                     struct bw_key first, struct bw_key last)
{
    if (!tree->id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, cutting->repair->fs, tree, first, last);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        BW_TRY(bw_repair_removals_push(&cutting->removals,
                                       (struct bw_repair_removal){*tree, item->key}));
    return bw_fs_items_error(&items);
}

/* The next device extent of the chunks, on any device; NULL: that was the last one. */
static const struct bw_item *next_extent(const struct cutting *cutting, struct bw_fs_items *items)
{
    const struct bw_item *item;
    while ((item = bw_fs_items_next(items))) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->key.type == BW_DEVICE_EXTENT && item->size >= sizeof *extent &&
            bw_number_set_has(&cutting->chunks, bw_get64(extent->chunk_offset)))
            break;
    }
    return item;
}

/* Plans the deletion of all items that are listed; and the devices have fewer bytes in use. */
static struct bw_error *plan_removals(struct cutting *cutting)
{
    static const struct bw_repair_removal_texts texts = {
        .item = "item of a chunk without contents",
        .key = "key of a leaf with items of a chunk without contents",
        .why = "the chunk lies behind the end of the image",
        .proof = "nothing in it is in use, and no extent lies in it"};
    struct bw_repair *repair = cutting->repair;
    bool is_possible;
    BW_TRY(bw_repair_remove(repair, cutting->finding, &cutting->removals, &texts, &is_possible));
    if (!is_possible) {
        cutting->obstacle = "a leaf would have no item left without them";
        return NULL;
    }

    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, &cutting->device_tree);
    for (const struct bw_item *item; (item = next_extent(cutting, &items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        struct bw_disk_device_item *device = bw_repair_device_item(repair, item->key.objectid);
        device->bytes_used = bw_put64(bw_get64(device->bytes_used) - bw_get64(extent->length));
    }
    BW_TRY(bw_fs_items_error(&items));
    for (size_t i = 0; i < repair->current.devices.count; i++) {
        const struct bw_disk_device_item *item = &repair->current.devices.items[i];
        const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, bw_get64(item->devid)};
        BW_TRY(bw_repair_edit_item(
            repair, cutting->finding, &repair->fs->chunk_tree, &key,
            offsetof(struct bw_disk_device_item, bytes_used), sizeof item->bytes_used,
            bw_get64(item->bytes_used),
            (struct bw_repair_edit){.group = repair->groups + 1,
                                    .what = "bytes_used of the device in the chunk tree",
                                    .why = "chunks without contents are taken out",
                                    .proof = "the device extents of the others"}));
    }
    return NULL;
}

/* Lists the items of the chunks behind the ends of images: in the chunk tree, with the block
 * groups, in the free space tree, and the device extents on all devices. */
static struct bw_error *list_items(struct cutting *cutting)
{
    struct bw_repair *repair = cutting->repair;
    struct bw_fs *fs = repair->fs;
    const struct bw_tree *groups = bw_repair_group_tree(fs);
    bool is_new;

    /* The trees. */
    struct bw_tree space_tree;
    BW_TRY(bw_repair_find_tree(fs, BW_FREE_SPACE_TREE, &space_tree));
    BW_TRY(bw_repair_find_tree(fs, BW_DEVICE_TREE, &cutting->device_tree));
    if (!cutting->device_tree.id || !groups->id || bw_repair_doubts_extents(repair)) {
        cutting->obstacle = "the trees that would show whether they are in use have errors";
        return NULL;
    }

    /* The chunks with a device extent that ends behind the last whole sector of its image. */
    BW_SCOPED(bw_fs_items) struct bw_fs_items behind;
    bw_repair_all_items(&behind, fs, &cutting->device_tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&behind));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        const struct bw_repair_device *device = bw_repair_device_of(repair, item->key.objectid);
        if (item->key.type != BW_DEVICE_EXTENT || item->size < sizeof *extent || !device)
            continue;
        const uint64_t size = bw_xlator_size(device->image->storage);
        if (item->key.offset + bw_get64(extent->length) > size - size % fs->superblock.sectorsize)
            BW_TRY(bw_number_set_insert(&cutting->chunks, bw_get64(extent->chunk_offset), &is_new));
    }
    BW_TRY(bw_fs_items_error(&behind));

    /* Their items, if the ranges of the chunks contain no extents, and the block groups nothing in
     * use. */
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        const struct bw_key item = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical},
                            group = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
        uint64_t used, extents;
        if (!bw_number_set_has(&cutting->chunks, chunk->logical))
            continue;
        BW_TRY(bw_repair_read_group_used(fs, groups, &group, &used));
        BW_TRY(bw_repair_add_extents(fs, &group, &extents));
        if (used || extents || chunk->type & BW_GROUP_SYSTEM)
            cutting->obstacle = "a chunk there has contents";
        BW_TRY(remove_range(cutting, &fs->chunk_tree, item, item));
        BW_TRY(remove_range(cutting, groups, group, group));
        BW_TRY(remove_range(
            cutting, &space_tree, (struct bw_key){chunk->logical, 0, 0},
            (struct bw_key){chunk->logical + chunk->length - 1, UINT8_MAX, UINT64_MAX}));
    }

    /* Their device extents. */
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, &cutting->device_tree);
    for (const struct bw_item *item; (item = next_extent(cutting, &items));) {
        if (!bw_repair_device_item(repair, item->key.objectid))
            cutting->obstacle = "a device has no item";
        BW_TRY(bw_repair_removals_push(
            &cutting->removals, (struct bw_repair_removal){cutting->device_tree, item->key}));
    }
    return bw_fs_items_error(&items);
}

struct bw_error *bw_repair_cut_chunks(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      uint64_t devid, bool *is_possible)
{
    struct cutting cutting = {.repair = repair, .finding = finding};

    /* They may have been planned for another device. */
    *is_possible = false;
    for (size_t i = repair->first; i < repair->changes.count; i++)
        *is_possible |= repair->changes.items[i].is_deletion;
    if (*is_possible)
        return NULL;
    struct bw_error *error = list_items(&cutting);
    if (!error && !cutting.obstacle)
        error = plan_removals(&cutting);
    *is_possible = !error && !cutting.obstacle;
    if (!error && cutting.obstacle)
        bw_fs_report_once(
            repair->given, BW_WARNING,
            bw_error_create(BW_ERROR_UNSUPPORTED,
                            "chunks lie behind the end of the image of device %" PRIu64
                            ", and are not taken out: %s",
                            devid, cutting.obstacle));
    bw_number_set_free(&cutting.chunks);
    bw_repair_removals_free(&cutting.removals);
    return error;
}
