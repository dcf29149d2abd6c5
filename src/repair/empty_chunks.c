/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks without contents behind the end of an image that is smaller than its device. A mount needs
 * no such chunk, so it is taken out: its item, its device extents on all devices, its block group,
 * and its free space; and the devices have that many bytes less in use. Items are deleted where
 * they are. If the first item of a leaf is deleted, the nodes above it get the new first key, in
 * the same group of changes. A leaf must keep an item: otherwise nothing is planned.
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

/* Lists the items of a chunk, if its range contains no extent, and its block group nothing in use.
 */
static struct bw_error *remove_chunk(struct cutting *cutting, const struct bw_chunk_info *chunk)
{
    struct bw_fs *fs = cutting->repair->fs;
    const struct bw_key item = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical},
                        group = {chunk->logical, BW_BLOCK_GROUP_ITEM, chunk->length};
    uint64_t used, extents;
    BW_TRY(bw_repair_read_group_used(fs, &cutting->groups, &group, &used));
    BW_TRY(bw_repair_add_extents(fs, &group, &extents));
    cutting->is_possible &= !used && !extents && !(chunk->type & BW_GROUP_SYSTEM);
    BW_TRY(remove_range(cutting, &fs->chunk_tree, item, item));
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

/* Lists the device extents of the chunks. */
static struct bw_error *remove_extents(struct cutting *cutting)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, cutting->repair->fs, &cutting->device_tree, (struct bw_key){0, 0, 0},
                      (struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = next_extent(cutting, &items));) {
        cutting->is_possible &= bw_repair_device_item(cutting->repair, item->key.objectid) != NULL;
        BW_TRY(
            removals_push(&cutting->removals, (struct removal){cutting->device_tree, item->key}));
    }
    return bw_fs_items_error(&items);
}

static bool is_removed(const struct cutting *cutting, uint64_t tree, const struct bw_key *key)
{
    for (size_t i = 0; i < cutting->removals.count; i++)
        if (cutting->removals.items[i].tree.id == tree &&
            bw_key_compare(&cutting->removals.items[i].key, key) == 0)
            return true;
    return false;
}

/* Finds the first item that stays in the leaf of a removal. `*moves`: the removal is its first
 * item. Without such an item, or without the leaf, the removal is not possible. */
static struct bw_error *find_new_first(struct cutting *cutting, const struct removal *removal,
                                       struct bw_key *first, bool *moves)
{
    struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot = 0;
    bool found = false;
    bw_leaf_finder_init(&finder, &cutting->repair->fs->reader, &removal->tree);
    struct bw_error *error = bw_find_leaf(&finder, &removal->key);
    if (!error && !finder.lost) {
        *moves =
            bw_leaf_item(&finder.leaf, 0, &item) && bw_key_compare(&item.key, &removal->key) == 0;
        while (!found && bw_leaf_next(&finder.leaf, &slot, &item))
            found = !is_removed(cutting, removal->tree.id, &item.key);
        *first = item.key;
    }
    cutting->is_possible &= found;
    bw_leaf_finder_free(&finder);
    return error;
}

static struct bw_repair_edit removal_edit(const struct cutting *cutting, const char *what)
{
    return (struct bw_repair_edit){.group = cutting->repair->groups + 1,
                                   .what = what,
                                   .why = strdup("the chunk lies behind the end of the image"),
                                   .proof =
                                       strdup("nothing in it is in use, and no extent lies in it")};
}

static struct bw_error *plan_removals(struct cutting *cutting)
{
    struct bw_repair *repair = cutting->repair;
    struct bw_key first;
    bool moves;
    for (size_t i = 0; cutting->is_possible && i < cutting->removals.count; i++)
        BW_TRY(find_new_first(cutting, &cutting->removals.items[i], &first, &moves));
    for (size_t i = 0; cutting->is_possible && i < cutting->removals.count; i++) {
        const struct removal *removal = &cutting->removals.items[i];
        BW_TRY(find_new_first(cutting, removal, &first, &moves));
        BW_TRY(bw_repair_delete_item(repair, cutting->finding, &removal->tree, &removal->key,
                                     removal_edit(cutting, "item of a chunk without contents")));
        if (moves)
            BW_TRY(bw_repair_move_first_key(
                repair, cutting->finding, &removal->tree, &removal->key, &first,
                removal_edit(cutting, "key of a leaf with items of a chunk without contents")));
    }
    return NULL;
}

/* The devices of these chunks have fewer bytes in use. */
static struct bw_error *plan_devices(struct cutting *cutting)
{
    struct bw_repair *repair = cutting->repair;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, &cutting->device_tree, (struct bw_key){0, 0, 0},
                      (struct bw_key){UINT64_MAX, UINT8_MAX, UINT64_MAX});
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
                                    .why = strdup("chunks without contents are taken out"),
                                    .proof = strdup("the device extents of the others")}));
    }
    return NULL;
}

/* Lists all items, then plans, if that is possible. */
static struct bw_error *cut(struct cutting *cutting, uint64_t devid, uint64_t size)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(find_trees(cutting));
    cutting->is_possible =
        cutting->device_tree.id && cutting->groups.id && !bw_repair_doubts_extents(cutting->repair);
    if (!cutting->is_possible)
        return NULL;
    BW_TRY(bw_fs_chunks(cutting->repair->fs, &chunks));
    BW_TRY(find_chunks(cutting, devid, size));
    for (size_t i = 0; i < chunks.count; i++)
        if (bw_number_set_has(&cutting->chunks, chunks.items[i].logical))
            BW_TRY(remove_chunk(cutting, &chunks.items[i]));
    BW_TRY(remove_extents(cutting));
    if (cutting->is_possible)
        BW_TRY(plan_removals(cutting));
    return cutting->is_possible ? plan_devices(cutting) : NULL;
}

struct bw_error *bw_repair_cut_chunks(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      uint64_t devid, uint64_t size, bool *is_possible)
{
    struct cutting cutting = {.repair = repair, .finding = finding};
    struct bw_error *error = cut(&cutting, devid, size);
    *is_possible = !error && cutting.is_possible;
    bw_number_set_free(&cutting.chunks);
    removals_free(&cutting.removals);
    return error;
}
