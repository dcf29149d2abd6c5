/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks without contents behind the end of an image that is smaller than its device. A mount needs
 * no such chunk, so it is taken out: its item, its device extents on all devices, its block group,
 * and its free space; and the devices have that many bytes less in use. Items are deleted where
 * they are. The first key of a leaf stays, since its parent repeats it: if an item to be deleted
 * is the first one, nothing is planned.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

/* An item to be deleted. */
struct removal {
    struct bw_tree tree;
    struct bw_key key;
};

BW_VECTOR(removals, struct removal);

struct cutting {
    struct bw_repair *repair;
    struct bw_repair_finding *finding;
    struct bw_tree device_tree, space_tree, groups; /* id 0: no such tree */
    struct bw_number_set chunks;                    /* their logical addresses */
    struct removals removals;
    bool is_possible;
};

static struct bw_tree find_tree(const struct bw_tree_list *trees, uint64_t id)
{
    const struct bw_listed_tree *found = bw_tree_list_find(trees, id);
    return found ? found->tree : (struct bw_tree){.id = 0};
}

static struct bw_error *find_trees(struct cutting *cutting)
{
    struct bw_fs *fs = cutting->repair->fs;
    struct bw_tree_list trees = {0};
    struct bw_error *error = bw_tree_list_load(fs, &trees);
    cutting->device_tree = find_tree(&trees, BW_DEVICE_TREE);
    cutting->space_tree = find_tree(&trees, BW_FREE_SPACE_TREE);
    cutting->groups = fs->block_group_tree.id ? fs->block_group_tree : fs->extent_tree;
    bw_listed_trees_free(&trees.entries);
    return error;
}

/* Lists the items in a range of keys. */
static struct bw_error *remove_range(struct cutting *cutting, const struct bw_tree *tree,
                                     struct bw_key first, struct bw_key last)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    if (!tree->id)
        return NULL;
    bw_fs_items_begin(&items, cutting->repair->fs, tree, first, last);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        BW_TRY(removals_push(&cutting->removals, (struct removal){*tree, item->key}));
    return bw_fs_items_error(&items);
}

/* Whether the range of a chunk contains no extent, and its block group nothing in use. */
static struct bw_error *is_empty(struct cutting *cutting, const struct bw_chunk_info *chunk,
                                 bool *result)
{
    struct bw_fs *fs = cutting->repair->fs;
    const struct bw_key key = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
    uint64_t used, extents;
    BW_TRY(bw_repair_read_group_used(fs, &cutting->groups, &key, &used));
    BW_TRY(bw_repair_add_extents(fs, &key, &extents));
    *result = !used && !extents && !(chunk->type & BW_GROUP_SYSTEM);
    return NULL;
}

/* Lists the items of a chunk. */
static struct bw_error *remove_chunk(struct cutting *cutting, const struct bw_chunk_info *chunk)
{
    const struct bw_key item = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical},
                        group = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
    bool empty;
    BW_TRY(is_empty(cutting, chunk, &empty));
    cutting->is_possible &= empty;
    BW_TRY(remove_range(cutting, &cutting->repair->fs->chunk_tree, item, item));
    BW_TRY(remove_range(cutting, &cutting->groups, group, group));
    return remove_range(cutting, &cutting->space_tree, (struct bw_key){chunk->logical, 0, 0},
                        (struct bw_key){chunk->logical + chunk->length - 1, UINT8_MAX, UINT64_MAX});
}

/* Notes the chunks that end behind `size` on a device. */
static struct bw_error *find_chunks(struct cutting *cutting, uint64_t devid, uint64_t size)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bool is_new;
    bw_fs_items_begin(&items, cutting->repair->fs, &cutting->device_tree,
                      (struct bw_key){devid, BW_DEVICE_EXTENT, 0},
                      (struct bw_key){devid, BW_DEVICE_EXTENT, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->size >= sizeof *extent && item->key.offset + bw_get64(extent->length) > size)
            BW_TRY(bw_number_set_insert(&cutting->chunks, bw_get64(extent->chunk_offset), &is_new));
    }
    return bw_fs_items_error(&items);
}

/* Lists the device extents of the chunks, on all devices, whose items get less bytes in use. */
static struct bw_error *remove_extents(struct cutting *cutting, bool is_final)
{
    struct bw_repair *repair = cutting->repair;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, &cutting->device_tree, (struct bw_key){0, 0, 0},
                      (struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_extent *extent = (const void *)item->data;
        if (item->key.type != BW_DEVICE_EXTENT || item->size < sizeof *extent ||
            !bw_number_set_has(&cutting->chunks, bw_get64(extent->chunk_offset)))
            continue;
        struct bw_disk_device_item *device = bw_repair_device_item(repair, item->key.objectid);
        if (!is_final)
            BW_TRY(removals_push(&cutting->removals,
                                 (struct removal){cutting->device_tree, item->key}));
        else if (device)
            device->bytes_used = bw_put64(bw_get64(device->bytes_used) - bw_get64(extent->length));
        cutting->is_possible &= device != NULL;
    }
    return bw_fs_items_error(&items);
}

/* How many items of a tree are deleted. */
static size_t count_removals(const struct cutting *cutting, uint64_t tree)
{
    size_t count = 0;
    for (size_t i = 0; i < cutting->removals.count; i++)
        count += cutting->removals.items[i].tree.id == tree;
    return count;
}

static struct bw_error *plan_removals(struct cutting *cutting)
{
    struct bw_repair *repair = cutting->repair;
    for (size_t i = 0; cutting->is_possible && i < cutting->removals.count; i++) {
        const struct removal *removal = &cutting->removals.items[i];
        BW_TRY(bw_repair_can_delete(repair, &removal->tree, &removal->key,
                                    count_removals(cutting, removal->tree.id),
                                    &cutting->is_possible));
    }
    for (size_t i = 0; cutting->is_possible && i < cutting->removals.count; i++) {
        const struct removal *removal = &cutting->removals.items[i];
        BW_TRY(bw_repair_delete_item(
            repair, cutting->finding, &removal->tree, &removal->key,
            (struct bw_repair_edit){
                .group = repair->groups + 1,
                .what = "item of a chunk without contents",
                .why = strdup("the chunk lies behind the end of the image"),
                .proof = strdup("nothing in it is in use, and no extent lies in it")}));
    }
    return NULL;
}

/* The devices of these chunks have fewer bytes in use. */
static struct bw_error *plan_devices(struct cutting *cutting)
{
    struct bw_repair *repair = cutting->repair;
    for (size_t i = 0; i < repair->current.devices.count; i++) {
        const struct bw_disk_device_item *item = &repair->current.devices.items[i];
        const struct bw_key key = {BW_DEVICE_ITEMS, BW_DEVICE_ITEM, bw_get64(item->devid)};
        BW_TRY(bw_repair_edit_item(
            repair, cutting->finding, &repair->fs->chunk_tree, &key,
            offsetof(struct bw_disk_device_item, bytes_used), sizeof item->bytes_used,
            bw_get64(item->bytes_used),
            (struct bw_repair_edit){.group = repair->groups + 1,
                                    .what = "bytes_used of the device in the chunk tree",
                                    .why = strdup("chunks without contents are taken out"),
                                    .proof = strdup("the device extents of the others")}));
    }
    return NULL;
}

struct bw_error *bw_repair_cut_chunks(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      uint64_t devid, uint64_t size, bool *is_possible)
{
    struct cutting cutting = {.repair = repair, .finding = finding, .is_possible = true};
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    struct bw_error *error = find_trees(&cutting);
    cutting.is_possible =
        cutting.device_tree.id && cutting.groups.id && !bw_repair_doubts_extents(repair);
    if (!error)
        error = bw_fs_chunks(repair->fs, &chunks);
    if (!error)
        error = find_chunks(&cutting, devid, size);
    for (size_t i = 0; !error && cutting.is_possible && i < chunks.count; i++)
        if (bw_number_set_has(&cutting.chunks, chunks.items[i].logical))
            error = remove_chunk(&cutting, &chunks.items[i]);
    if (!error && cutting.is_possible)
        error = remove_extents(&cutting, false);
    if (!error && cutting.is_possible)
        error = plan_removals(&cutting);
    if (!error && cutting.is_possible)
        error = remove_extents(&cutting, true);
    if (!error && cutting.is_possible)
        error = plan_devices(&cutting);
    *is_possible = cutting.is_possible;
    bw_number_set_free(&cutting.chunks);
    removals_free(&cutting.removals);
    return error;
}
