/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public side of subvolumes: what the table of the open file system and the root tree hold. */
#include "btrfs-walk/subvolume.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "format/items.h"
#include "fs/fs.h"

const struct bw_subvolume *bw_subvolume_next(const struct bw_fs *fs,
                                             const struct bw_subvolume *previous)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    const struct bw_subvolume *next = previous ? previous + 1 : table->items;
    return table->count && next < table->items + table->count ? next : NULL;
}

static bool has_uuid(const struct bw_item *item, const uint8_t uuid[BW_UUID_SIZE])
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    return item->key.type == BW_ROOT_ITEM && item->size >= sizeof *disk &&
           memcmp(disk->uuid, uuid, BW_UUID_SIZE) == 0;
}

struct bw_error *bw_subvolume_by_uuid(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **subvolume)
{
    struct bw_item_range range;
    struct bw_error *error = NULL;
    *subvolume = NULL;
    bw_item_range_begin(&range, &fs->reader, &fs->root_tree, (struct bw_key){0}, BW_KEY_MAX);
    while (!error && !*subvolume && bw_item_range_next(&range)) {
        if (range.error)
            error = BW_TAKE(range.error);
        else if (has_uuid(&range.item, uuid))
            *subvolume = bw_subvolume_by_id(fs, range.item.key.objectid);
    }
    BW_TRY(bw_item_range_end(&range, error));
    return *subvolume ? NULL
                      : bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume with that UUID");
}

static struct timespec time_of(const struct bw_disk_timespec *disk)
{
    return (struct timespec){(time_t)bw_get64(disk->seconds), bw_get32(disk->nanoseconds)};
}

/* Root items of old kernels end before the UUIDs. */
static void take_new_members(const struct bw_disk_root_item *disk, struct bw_subvolume_info *info)
{
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
}

static struct bw_error *take_root_item(const struct bw_item *item, struct bw_subvolume_info *info)
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    struct bw_root_item root;
    BW_TRY(bw_root_item_decode(item, &root));
    info->generation = root.root.generation;
    info->flags = root.flags;
    info->read_only = root.flags & 1;
    info->last_snapshot = root.last_snapshot;
    info->bytes_used = bw_get64(disk->bytes_used);
    if (item->size >= sizeof *disk)
        take_new_members(disk, info);
    return NULL;
}

struct bw_error *bw_subvolume_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_subvolume_info *info)
{
    *info = (struct bw_subvolume_info){
        .id = subvolume->tree.id,
        .parent = subvolume->parent,
        .directory = subvolume->directory,
        .name = bw_subvolume_name(&fs->subvolumes, subvolume),
        .name_length = subvolume->name_length,
        .generation = subvolume->tree.root.generation,
        .root = subvolume->tree.root.bytenr,
        .level = subvolume->tree.root.level,
        .is_snapshot = subvolume->is_snapshot,
        .is_deleted = subvolume->deleted,
    };
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, &fs->root_tree,
                        (struct bw_key){info->id, BW_ROOT_ITEM, 0},
                        (struct bw_key){info->id, BW_ROOT_ITEM, UINT64_MAX});
    while (!error && bw_item_range_next(&range))
        error = range.error ? BW_TAKE(range.error) : take_root_item(&range.item, info);
    return bw_item_range_end(&range, error);
}
