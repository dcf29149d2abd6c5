/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The public functions about subvolumes: facts from the subvolume table, which is in memory, and
 * from the root items, which are read again.
 */
#include "btrfs-walk/subvolume.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btree/find_leaf.h"
#include "btree/memory.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "fs/subvolume_paths.h"
#include "ondisk/items.h"

const struct bw_subvolume *bw_subvolume_next(const struct bw_fs *fs,
                                             const struct bw_subvolume *previous)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    const struct bw_subvolume *next = previous ? previous + 1 : table->items;
    return table->count && next < table->items + table->count ? next : NULL;
}

struct bw_error *bw_subvolume_by_uuid(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **subvolume)
{
    struct bw_item_range range;
    struct bw_error *error = NULL;
    *subvolume = NULL;
    bw_item_range_begin(&range, &fs->reader, &fs->root_tree, (struct bw_key){0}, BW_KEY_MAX);
    while (!error && !*subvolume && bw_item_range_next(&range)) {
        const struct bw_disk_root_item *disk = (const void *)range.item.data;
        if (range.error)
            error = BW_TAKE(range.error);
        else if (range.item.key.type == BW_ROOT_ITEM && range.item.size >= sizeof *disk &&
                 memcmp(disk->uuid, uuid, BW_UUID_SIZE) == 0)
            *subvolume = bw_subvolume_by_id(fs, range.item.key.objectid);
    }
    BW_TRY(bw_item_range_end(&range, error));
    if (*subvolume)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume with that UUID");
}

static struct timespec time_of(const struct bw_disk_timespec *disk)
{
    return (struct timespec){(time_t)bw_get64(disk->seconds), (long)bw_get32(disk->nanoseconds)};
}

static struct bw_error *decode_root_item(const struct bw_item *item, struct bw_subvolume_info *info)
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    struct bw_root_item root;
    BW_TRY(bw_root_item_decode(item, &root));
    info->generation = root.root.generation;
    info->flags = root.flags;
    info->read_only = root.flags & 1;
    info->last_snapshot = root.last_snapshot;
    info->bytes_used = bw_get64(disk->bytes_used);
    /* Root items of old kernels end before the UUIDs. If such a kernel has changed a newer item,
     * the end of the item is stale. */
    if (item->size < sizeof *disk || bw_get64(disk->generation_v2) != bw_get64(disk->generation))
        return NULL;
    memcpy(info->uuid, disk->uuid, BW_UUID_SIZE);
    memcpy(info->parent_uuid, disk->parent_uuid, BW_UUID_SIZE);
    memcpy(info->received_uuid, disk->received_uuid, BW_UUID_SIZE);
    info->ctransid = bw_get64(disk->change_transid);
    info->otransid = bw_get64(disk->origin_transid);
    info->stransid = bw_get64(disk->send_transid);
    info->rtransid = bw_get64(disk->receive_transid);
    info->ctime = time_of(&disk->ctime);
    info->otime = time_of(&disk->otime);
    info->stime = time_of(&disk->stime);
    info->rtime = time_of(&disk->rtime);
    return NULL;
}

static struct bw_subvolume_info info_from_table(const struct bw_fs *fs,
                                                const struct bw_subvolume *subvolume)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    const uint64_t root = subvolume->tree.root.bytenr;
    return (struct bw_subvolume_info){
        .id = subvolume->tree.id,
        .parent = subvolume->parent,
        .directory = subvolume->directory,
        .name = bw_subvolume_name(table, subvolume),
        .name_length = subvolume->name_length,
        .generation = subvolume->tree.root.generation,
        /* blocks made by replaying the log have no address on the devices */
        .root = root < BW_MEMORY_START ? root : 0,
        .level = subvolume->tree.root.level,
        .is_snapshot = subvolume->is_snapshot,
        .is_deleted = subvolume->deleted,
        .is_default = subvolume->tree.id == table->default_id,
    };
}

struct bw_error *bw_subvolume_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_subvolume_info *info)
{
    *info = info_from_table(fs, subvolume);
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, &fs->root_tree,
                        (struct bw_key){info->id, BW_ROOT_ITEM, 0},
                        (struct bw_key){info->id, BW_ROOT_ITEM, UINT64_MAX});
    while (!error && bw_item_range_next(&range))
        error = range.error ? BW_TAKE(range.error) : decode_root_item(&range.item, info);
    return bw_item_range_end(&range, error);
}

/* An inode that was changed after its subvolume was received ends the search. */
struct bw_error *bw_subvolume_is_changed(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                         const struct bw_subvolume_info *info, bool *is_changed)
{
    static const uint8_t none[BW_UUID_SIZE];
    const struct timespec *received = &info->rtime;
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .newer_than = info->rtransid};
    struct bw_item item;
    struct bw_inode inode;
    *is_changed = false;
    if (memcmp(info->received_uuid, none, BW_UUID_SIZE) == 0 || !info->rtransid ||
        info->ctransid <= info->rtransid)
        return NULL;
    bw_block_scan_begin(&scan, &fs->reader, &subvolume->tree);
    while (!*is_changed && bw_block_scan_next_item(&scan, &item))
        *is_changed = item.key.type == BW_INODE_ITEM && bw_inode_decode(&item, &inode) &&
                      inode.transid > info->rtransid && bw_is_earlier(received, &inode.ctime);
    return bw_block_scan_end(&scan);
}

/* The facts about all subvolumes, from their root items. */
struct bw_subvolume_infos {
    struct bw_fs_items roots;
    bool has_paths;
    struct bw_subvolume_paths paths;
    struct bw_buffer path;
    struct bw_subvolume_info info; /* the current one */
    struct bw_error *error;
};

struct bw_error *bw_subvolume_infos_open(struct bw_fs *fs, bool paths,
                                         struct bw_subvolume_infos **result)
{
    struct bw_subvolume_infos *infos = *result = calloc(1, sizeof *infos);
    if (!infos)
        return bw_error_no_memory();
    infos->has_paths = paths;
    bw_fs_items_begin(&infos->roots, fs, &fs->root_tree,
                      (struct bw_key){BW_TOP_SUBVOLUME, BW_ROOT_ITEM, 0},
                      (struct bw_key){BW_LAST_SUBVOLUME, BW_ROOT_ITEM, UINT64_MAX});
    struct bw_error *error = paths ? bw_subvolume_paths_load(&infos->paths, fs) : NULL;
    if (error)
        bw_error_free(bw_subvolume_infos_close(BW_TAKE(*result)));
    return error;
}

/* Items that were rejected when the file system was opened have already been reported. */
const struct bw_subvolume_info *bw_subvolume_infos_next(struct bw_subvolume_infos *infos)
{
    struct bw_fs *fs = infos->roots.fs;
    const struct bw_item *item;
    while (!infos->error && (item = bw_fs_items_next(&infos->roots))) {
        const struct bw_subvolume *subvolume = NULL;
        if (item->key.type == BW_ROOT_ITEM)
            subvolume = bw_subvolume_by_id(fs, item->key.objectid);
        if (!subvolume)
            continue;
        infos->info = info_from_table(fs, subvolume);
        bw_error_free(decode_root_item(item, &infos->info));
        if (infos->has_paths)
            infos->error = bw_subvolume_paths_get(&infos->paths, fs, subvolume, &infos->path);
        infos->info.path = infos->path.length ? infos->path.data : NULL;
        infos->info.path_length = infos->path.length;
        if (!infos->error)
            return &infos->info;
    }
    return NULL;
}

struct bw_error *bw_subvolume_infos_close(struct bw_subvolume_infos *infos)
{
    if (!infos)
        return NULL;
    struct bw_error *error = bw_error_first(infos->error, bw_fs_items_error(&infos->roots));
    bw_fs_items_free(&infos->roots);
    bw_subvolume_paths_free(&infos->paths);
    bw_buffer_free(&infos->path);
    free(infos);
    return error;
}
