/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshots of a subvolume, and the files in them. Snapshots are related by their UUIDs: a
 * snapshot contains the UUID of its source, a received subvolume also the UUID of the sent one.
 * Several snapshots of a deleted subvolume still have the UUID of their source in common.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
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
    struct bw_snapshot snapshot;
    uint64_t uuids[3]; /* the first bytes of its UUID, parent UUID and received UUID; 0: none */
    bool is_related;
};

/* A UUID that a subvolume has. */
struct uuid_user {
    uint64_t uuid;
    uint32_t item;
};

BW_VECTOR(relative_list, struct relative);

struct relatives {
    struct relative_list list;
    struct uuid_user *users; /* sorted by UUID */
    uint32_t *queue;         /* related subvolumes whose UUIDs have not been followed yet */
    size_t queued;
};

/* UUIDs are random, so their beginnings differ, too. */
static uint64_t beginning_of_uuid(const uint8_t uuid[BW_UUID_SIZE])
{
    uint64_t value;
    memcpy(&value, uuid, sizeof value);
    return value;
}

static int by_uuid(const void *a, const void *b)
{
    const struct uuid_user *left = a, *right = b;
    return (left->uuid > right->uuid) - (left->uuid < right->uuid);
}

static void mark_related(struct relatives *relatives, size_t item)
{
    if (relatives->list.items[item].is_related)
        return;
    relatives->list.items[item].is_related = true;
    relatives->queue[relatives->queued++] = (uint32_t)item;
}

static int newest_first(const void *a, const void *b)
{
    const struct bw_snapshot *left = a, *right = b;
    const int64_t first = bw_time_nanoseconds(&left->time),
                  second = bw_time_nanoseconds(&right->time);
    return first != second ? (first < second) - (first > second)
                           : (left->id < right->id) - (left->id > right->id);
}

/* Follows UUIDs from a subvolume, until no other subvolume shares one with a related subvolume; and
 * keeps the related ones, the newest first. */
static struct bw_error *keep_related(struct bw_snapshots *snapshots, struct relatives *relatives,
                                     uint64_t id)
{
    const size_t count = relatives->list.count;
    struct uuid_user *users = relatives->users = calloc(3 * count + 1, sizeof *users);
    relatives->queue = calloc(count + 1, sizeof *relatives->queue);
    if (!users || !relatives->queue)
        return bw_error_no_memory();
    size_t user_count = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < 3; k++)
            if (relatives->list.items[i].uuids[k])
                users[user_count++] =
                    (struct uuid_user){relatives->list.items[i].uuids[k], (uint32_t)i};
    qsort(users, user_count, sizeof *users, by_uuid);

    /* Marks the subvolumes that have a UUID of a related one; only once for each UUID, because
     * crafted images may repeat one in all subvolumes. */
    const uint32_t done = UINT32_MAX;
    for (size_t i = 0; i < count; i++)
        if (relatives->list.items[i].snapshot.id == id)
            mark_related(relatives, i);
    while (relatives->queued) {
        const struct relative *item = &relatives->list.items[relatives->queue[--relatives->queued]];
        for (size_t k = 0; k < 3; k++) {
            const uint64_t uuid = item->uuids[k];
            const size_t first = BW_FIRST_INDEX(n, user_count, users[n].uuid >= uuid);
            if (!uuid || first == user_count || users[first].item == done)
                continue;
            for (size_t i = first; i < user_count && users[i].uuid == uuid; i++)
                mark_related(relatives, users[i].item);
            users[first].item = done;
        }
    }
    for (size_t i = 0; i < relatives->list.count; i++) {
        struct relative *item = &relatives->list.items[i];
        if (!item->is_related || item->snapshot.id == id)
            continue;
        BW_TRY(bw_snapshot_list_push(&snapshots->list, item->snapshot));
        item->snapshot.path = NULL;
    }
    bw_snapshot_list_sort(&snapshots->list, newest_first);
    return NULL;
}

struct bw_error *bw_snapshots_open(struct bw_fs *fs, uint64_t subvolume,
                                   struct bw_snapshots **result)
{
    struct relatives relatives = {0};
    struct bw_snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (!snapshots)
        return bw_error_no_memory();
    snapshots->fs = fs;
    struct bw_subvolume_infos *infos;
    struct bw_error *error = bw_subvolume_infos_open(fs, true, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        if (info->is_deleted)
            continue;
        char *path = info->path ? strndup(info->path, info->path_length) : strdup("");
        const struct relative relative = {
            .snapshot = {.subvolume = bw_subvolume_by_id(fs, info->id),
                         .id = info->id,
                         .generation = info->otransid,
                         .time = info->otime,
                         .read_only = info->read_only,
                         .path = path},
            .uuids = {beginning_of_uuid(info->uuid), beginning_of_uuid(info->parent_uuid),
                      beginning_of_uuid(info->received_uuid)},
        };
        error = path ? relative_list_push(&relatives.list, relative) : bw_error_no_memory();
        if (error)
            free(path);
    }
    error = bw_error_first(error, bw_subvolume_infos_close(infos));
    if (!error)
        error = keep_related(snapshots, &relatives, subvolume);
    for (size_t i = 0; i < relatives.list.count; i++)
        free((char *)(uintptr_t)relatives.list.items[i].snapshot.path);
    relative_list_free(&relatives.list);
    free(relatives.users);
    free(relatives.queue);
    if (error) {
        bw_snapshots_close(snapshots);
        return error;
    }
    *result = snapshots;
    return NULL;
}

void bw_snapshots_close(struct bw_snapshots *snapshots)
{
    if (!snapshots)
        return;
    for (size_t i = 0; i < snapshots->list.count; i++)
        free((char *)(uintptr_t)snapshots->list.items[i].path);
    bw_snapshot_list_free(&snapshots->list);
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
