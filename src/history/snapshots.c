/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshots of a subvolume, and the files in them. Snapshots are related by their UUIDs: a
 * snapshot contains the UUID of its source, a received subvolume also the UUID of the sent one.
 * Several snapshots of a deleted subvolume still have the UUID of their source in common.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "btrfs-walk/history.h"
#include "fs/fs.h"

struct bw_snapshots {
    struct bw_fs *fs;
    struct bw_snapshot *items; /* with owned paths */
    size_t count, capacity;
};

/* A subvolume, while its relatives are searched. */
struct relative {
    struct bw_snapshot snapshot;
    uint64_t uuids[3]; /* the beginnings of its own UUID, its source's, the sent one's; 0: none */
    bool is_related;
};

struct relatives {
    struct bw_fs *fs;
    struct relative *items;
    size_t count, capacity;
    struct bw_map known; /* beginnings of the UUIDs of related subvolumes */
};

/* UUIDs are random, so their beginnings differ, too. */
static uint64_t beginning(const uint8_t uuid[BW_UUID_SIZE])
{
    uint64_t value;
    memcpy(&value, uuid, sizeof value);
    return value;
}

static struct bw_error *add_relative(void *context, const struct bw_subvolume_info *info)
{
    struct relatives *relatives = context;
    if (info->is_deleted)
        return NULL;
    if (!BW_ARRAY_RESERVE(relatives->items, relatives->count, relatives->capacity))
        return bw_error_no_memory();
    char *path = strndup(info->path ? info->path : "", info->path ? info->path_length : 0);
    relatives->items[relatives->count++] = (struct relative){
        .snapshot = {.subvolume = bw_subvolume_by_id(relatives->fs, info->id),
                     .id = info->id,
                     .generation = info->otransid,
                     .time = info->otime,
                     .read_only = info->read_only,
                     .path = path},
        .uuids = {beginning(info->uuid), beginning(info->parent_uuid),
                  beginning(info->received_uuid)},
    };
    return path ? NULL : bw_error_no_memory();
}

static bool shares_uuid(const struct relatives *relatives, const struct relative *item)
{
    for (size_t i = 0; i < 3; i++)
        if (item->uuids[i] && bw_map_get(&relatives->known, item->uuids[i]) != UINT32_MAX)
            return true;
    return false;
}

/* Marks a subvolume as related, and remembers its UUIDs. */
static struct bw_error *mark(struct relatives *relatives, struct relative *item)
{
    item->is_related = true;
    for (size_t i = 0; i < 3; i++)
        if (item->uuids[i] && !bw_map_put(&relatives->known, item->uuids[i], 1))
            return bw_error_no_memory();
    return NULL;
}

/* Repeats until no other subvolume shares a UUID with a related one. */
static struct bw_error *find_related(struct relatives *relatives, uint64_t id)
{
    for (size_t i = 0; i < relatives->count; i++)
        if (relatives->items[i].snapshot.id == id)
            BW_TRY(mark(relatives, &relatives->items[i]));
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < relatives->count; i++) {
            struct relative *item = &relatives->items[i];
            if (item->is_related || !shares_uuid(relatives, item))
                continue;
            BW_TRY(mark(relatives, item));
            found = true;
        }
    }
    return NULL;
}

static int newest_first(const void *a, const void *b)
{
    const struct bw_snapshot *left = a, *right = b;
    const int64_t first = bw_time_nanoseconds(&left->time),
                  second = bw_time_nanoseconds(&right->time);
    return first != second ? (first < second) - (first > second)
                           : (left->id < right->id) - (left->id > right->id);
}

static struct bw_error *keep_related(struct bw_snapshots *snapshots, struct relatives *relatives,
                                     uint64_t id)
{
    BW_TRY(find_related(relatives, id));
    for (size_t i = 0; i < relatives->count; i++) {
        struct relative *item = &relatives->items[i];
        if (!item->is_related || item->snapshot.id == id)
            continue;
        if (!BW_ARRAY_RESERVE(snapshots->items, snapshots->count, snapshots->capacity))
            return bw_error_no_memory();
        snapshots->items[snapshots->count++] = item->snapshot;
        item->snapshot.path = NULL;
    }
    if (snapshots->count)
        qsort(snapshots->items, snapshots->count, sizeof *snapshots->items, newest_first);
    return NULL;
}

struct bw_error *bw_snapshots_open(struct bw_fs *fs, uint64_t subvolume,
                                   struct bw_snapshots **result)
{
    struct relatives relatives = {.fs = fs};
    struct bw_snapshots *snapshots = calloc(1, sizeof *snapshots);
    if (!snapshots)
        return bw_error_no_memory();
    snapshots->fs = fs;
    struct bw_error *error = bw_fs_subvolumes(fs, true, add_relative, &relatives);
    if (!error)
        error = keep_related(snapshots, &relatives, subvolume);
    for (size_t i = 0; i < relatives.count; i++)
        free((char *)(uintptr_t)relatives.items[i].snapshot.path);
    free(relatives.items);
    bw_map_free(&relatives.known);
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
    for (size_t i = 0; i < snapshots->count; i++)
        free((char *)(uintptr_t)snapshots->items[i].path);
    free(snapshots->items);
    free(snapshots);
}

size_t bw_snapshots_count(const struct bw_snapshots *snapshots)
{
    return snapshots->count;
}

const struct bw_snapshot *bw_snapshots_entry(const struct bw_snapshots *snapshots, size_t number)
{
    return &snapshots->items[number];
}

/* A snapshot keeps the numbers and the generations of inodes, even of files that are renamed. */
static bool find_by_number(const struct bw_snapshots *snapshots, size_t number, uint64_t inode,
                           uint64_t generation, struct bw_place *place, struct bw_inode *found)
{
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup_number(snapshots->fs, snapshots->items[number].subvolume, inode, place);
    if (!error)
        error = bw_inode_get(snapshots->fs, place, found);
    return !error && found->generation == generation && found->link_count;
}

static bool find_by_path(const struct bw_snapshots *snapshots, size_t number, const char *path,
                         struct bw_place *place, struct bw_inode *found)
{
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup(snapshots->fs, snapshots->items[number].subvolume, path, false, place);
    if (!error)
        error = bw_inode_get(snapshots->fs, place, found);
    return !error;
}

bool bw_snapshots_find(const struct bw_snapshots *snapshots, size_t number,
                       const struct bw_snapshot_file *file, struct bw_place *place,
                       struct bw_inode *inode)
{
    return (file->inode &&
            find_by_number(snapshots, number, file->inode, file->generation, place, inode)) ||
           (file->path && find_by_path(snapshots, number, file->path, place, inode));
}
