/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshots of a subvolume, and the files in them. Snapshots are related by their UUIDs: a
 * snapshot contains the UUID of its source, a received subvolume also the UUID of the sent one.
 * Several snapshots of a deleted subvolume still have the UUID of their source in common.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/history.h"
#include "fs/fs.h"

BW_VECTOR(bw_snapshot_list, struct bw_snapshot);

struct bw_snapshots {
    struct bw_fs *fs;
    struct bw_snapshot_list list; /* with owned paths */
};

/* A subvolume, while its relatives are searched. */
struct relative {
    uint64_t uuids[3]; /* the first bytes of its UUID, parent UUID and received UUID; 0: none */
    bool is_related;
};

BW_VECTOR(relatives, struct relative);

/* A UUID that a subvolume has. */
struct uuid_user {
    uint64_t uuid;
    uint32_t item;
};

BW_VECTOR(uuid_users, struct uuid_user);

/* UUIDs are random, so their beginnings differ, too. */
static uint64_t beginning_of_uuid(const uint8_t uuid[BW_UUID_SIZE])
{
    uint64_t value;
    memcpy(&value, uuid, sizeof value);
    return value;
}

static int newest_first(const void *a, const void *b)
{
    const struct bw_snapshot *left = a, *right = b;
    const int64_t first = bw_time_nanoseconds(&left->time),
                  second = bw_time_nanoseconds(&right->time);
    return first != second ? (first < second) - (first > second)
                           : (left->id < right->id) - (left->id > right->id);
}

static void snapshots_free(struct bw_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->list.count; i++)
        free((char *)(uintptr_t)snapshots->list.items[i].path);
    bw_snapshot_list_free(&snapshots->list);
}

struct bw_error *bw_snapshots_open(struct bw_fs *fs, uint64_t subvolume,
                                   struct bw_snapshots **result)
{
    BW_SCOPED(snapshots) struct bw_snapshots found = {.fs = fs};
    struct bw_snapshot_list *list = &found.list;

    /* All subvolumes. */
    BW_SCOPED(relatives) struct relatives relatives = {0}; /* for each of the list */
    struct bw_subvolume_infos *infos;
    struct bw_error *error = bw_subvolume_infos_open(fs, true, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        const struct relative relative = {.uuids = {beginning_of_uuid(info->uuid),
                                                    beginning_of_uuid(info->parent_uuid),
                                                    beginning_of_uuid(info->received_uuid)}};
        if (info->is_deleted)
            continue;
        error =
            bw_error_first(relatives_push(&relatives, relative), bw_snapshot_list_reserve(list, 1));
        if (error)
            break;
        char *path = info->path ? strndup(info->path, info->path_length) : strdup("");
        list->items[list->count++] =
            (struct bw_snapshot){.subvolume = bw_subvolume_by_id(fs, info->id),
                                 .id = info->id,
                                 .generation = info->otransid,
                                 .time = info->otime,
                                 .read_only = info->read_only,
                                 .path = path};
        error = path ? NULL : bw_error_no_memory();
    }
    BW_TRY(bw_error_first(error, bw_subvolume_infos_close(infos)));

    /* Follows UUIDs from the subvolume, until no other one shares a UUID with a related one. Each
     * UUID is followed once, because crafted images may repeat one in all subvolumes. */
    const uint32_t done = UINT32_MAX;
    BW_SCOPED(uuid_users) struct uuid_users users = {0};
    BW_SCOPED(bw_sizes) struct bw_sizes queue = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        relatives.items[i].is_related = list->items[i].id == subvolume;
        if (relatives.items[i].is_related)
            BW_TRY(bw_sizes_push(&queue, i));
        for (size_t k = 0; k < 3; k++)
            if (relatives.items[i].uuids[k])
                BW_TRY(uuid_users_push(&users, (struct uuid_user){relatives.items[i].uuids[k], i}));
    }
    uuid_users_sort(&users, bw_compare_first);
    while (queue.count) {
        const struct relative *item = &relatives.items[bw_sizes_pop(&queue)];
        for (size_t k = 0; k < 3; k++) {
            const uint64_t uuid = item->uuids[k];
            const size_t first = BW_FIRST_INDEX(n, users.count, users.items[n].uuid >= uuid);
            if (!uuid || first == users.count || users.items[first].item == done)
                continue;
            for (size_t i = first; i < users.count && users.items[i].uuid == uuid; i++) {
                struct relative *other = &relatives.items[users.items[i].item];
                if (!other->is_related)
                    BW_TRY(bw_sizes_push(&queue, users.items[i].item));
                other->is_related = true;
            }
            users.items[first].item = done;
        }
    }

    /* Keeps the related ones, the newest first. */
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (relatives.items[i].is_related && list->items[i].id != subvolume)
            list->items[kept++] = list->items[i];
        else
            free((char *)(uintptr_t)list->items[i].path);
    }
    list->count = kept;
    bw_snapshot_list_sort(list, newest_first);
    *result = malloc(sizeof **result);
    if (!*result)
        return bw_error_no_memory();
    **result = found;
    *list = (struct bw_snapshot_list){0};
    return NULL;
}

void bw_snapshots_close(struct bw_snapshots *snapshots)
{
    if (!snapshots)
        return;
    snapshots_free(snapshots);
    free(snapshots);
}

size_t bw_snapshots_count(const struct bw_snapshots *snapshots)
{
    return snapshots->list.count;
}

const struct bw_snapshot *bw_snapshots_entry(const struct bw_snapshots *snapshots, size_t number)
{
    return &snapshots->list.items[number];
}

bool bw_snapshots_find(const struct bw_snapshots *snapshots, size_t number,
                       const struct bw_snapshot_file *file, struct bw_place *place,
                       struct bw_inode *inode)
{
    struct bw_fs *fs = snapshots->fs;
    const struct bw_subvolume *subvolume = snapshots->list.items[number].subvolume;
    /* A snapshot keeps the numbers and the generations of inodes, even of files that are renamed.
     */
    if (file->inode) {
        BW_AUTO_ERROR struct bw_error *error = bw_lookup_number(fs, subvolume, file->inode, place);
        if (!error)
            error = bw_inode_get(fs, place, inode);
        if (!error && inode->generation == file->generation && inode->link_count)
            return true;
    }
    if (!file->path)
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_lookup(fs, subvolume, file->path, false, place);
    if (!error)
        error = bw_inode_get(fs, place, inode);
    return !error;
}
