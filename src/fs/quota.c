/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The quota tree. It contains the numbers of all groups, then the limits of all groups, then all
 * relations. Each such item is a piece of what is known about a group, so all pieces are collected,
 * sorted by group, and joined group by group.
 */
#include "btrfs-walk/subvolume.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/vector.h"
#include "fs/fs.h"
#include "fs/subvolume_paths.h"
#include "fs/tree_items.h"
#include "ondisk/disk_items.h"

/* Flags of the status item. */
enum { FLAG_ON = 1, FLAG_RESCAN = 2, FLAG_INCONSISTENT = 4, FLAG_SIMPLE = 8 };

/* Number of values in an item with numbers, or with limits. */
enum { VALUES = 5 };

/* The contents of one item about a group. */
struct piece {
    uint64_t group;
    uint8_t type;   /* item type */
    uint64_t other; /* the other group of a relation */
    uint64_t values[VALUES];
};

BW_VECTOR(pieces, struct piece);

/* Finds the quota tree. Its id is 0 if none exists, or if it is lost, which is reported. */
static struct bw_error *find_quota_tree(struct bw_fs *fs, struct bw_tree *tree)
{
    struct bw_error *error = bw_tree_find(fs, BW_QUOTA_TREE, tree);
    if (error)
        tree->id = 0;
    if (error && error->code == BW_ERROR_NOT_FOUND)
        bw_error_free(BW_TAKE(error));
    return bw_fs_report_damage(fs, error);
}

struct bw_error *bw_fs_quota_status(struct bw_fs *fs, struct bw_quota_status *status)
{
    const struct bw_key key = {0, BW_QGROUP_STATUS, 0};
    *status = (struct bw_quota_status){0};
    struct bw_tree tree;
    BW_TRY(find_quota_tree(fs, &tree));
    status->exists = tree.id != 0;
    if (!status->exists)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &tree, key, key);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_qgroup_status *disk = (const void *)item->data;
        if (item->size < offsetof(struct bw_disk_qgroup_status, enable_generation))
            continue;
        status->is_known = true;
        status->version = bw_get64(disk->version);
        status->generation = bw_get64(disk->generation);
        status->flags = bw_get64(disk->flags);
        status->rescan = bw_get64(disk->rescan);
        status->enabled = status->flags & FLAG_ON;
        status->simple = status->flags & FLAG_SIMPLE;
        status->rescanning = status->flags & FLAG_RESCAN;
        status->inconsistent = status->flags & FLAG_INCONSISTENT;
        if (status->simple && item->size >= sizeof *disk)
            status->enable_generation = bw_get64(disk->enable_generation);
    }
    BW_TRY(bw_fs_items_error(&items));
    if (!status->is_known)
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "quota tree: there is no good status item");
    return NULL;
}

static int by_group(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->group, a->type, a->other}),
                          ((uint64_t[]){b->group, b->type, b->other}));
}

struct bw_qgroups {
    struct bw_fs *fs;
    struct pieces pieces; /* sorted by group */
    size_t next;          /* index of the first piece of the next group */
    bool has_paths;
    struct bw_subvolume_paths paths;
    struct bw_buffer path;
    uint64_t *others;           /* the other groups of the relations of one group */
    struct bw_qgroup_info info; /* the current one */
    struct bw_error *error;
};

/* Collects the pieces, and sorts them. */
static struct bw_error *read_pieces(struct bw_qgroups *qgroups)
{
    struct bw_fs *fs = qgroups->fs;
    struct pieces *pieces = &qgroups->pieces;
    struct bw_tree tree;
    BW_TRY(find_quota_tree(fs, &tree));
    if (!tree.id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &tree, (struct bw_key){0, BW_QGROUP_INFO, 0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_key *key = &item->key;
        const bool has_numbers = key->type == BW_QGROUP_INFO || key->type == BW_QGROUP_LIMIT;
        struct piece piece = {.group = key->offset, .type = key->type};
        if (key->type == BW_QGROUP_RELATION) {
            piece.group = key->objectid;
            piece.other = key->offset;
        } else if (!has_numbers) {
            continue;
        }
        if (has_numbers && item->size < sizeof(bw_le64) * VALUES) {
            bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "quota tree: the item of group %" PRIu64 "/%" PRIu64 " is cut off",
                              BW_QGROUP_LEVEL(piece.group), BW_QGROUP_NUMBER(piece.group));
            continue;
        }
        for (unsigned i = 0; has_numbers && i < VALUES; i++)
            piece.values[i] = bw_get64(((const bw_le64 *)item->data)[i]);
        BW_TRY(pieces_push(pieces, piece));
    }
    BW_TRY(bw_fs_items_error(&items));
    pieces_sort(pieces, by_group);
    qgroups->others = calloc(pieces->count + 1, sizeof *qgroups->others);
    if (!qgroups->others)
        return bw_error_no_memory();
    return qgroups->has_paths ? bw_subvolume_paths_load(&qgroups->paths, fs) : NULL;
}

struct bw_error *bw_qgroups_open(struct bw_fs *fs, bool paths, struct bw_qgroups **result)
{
    struct bw_qgroups *qgroups = *result = calloc(1, sizeof *qgroups);
    if (!qgroups)
        return bw_error_no_memory();
    qgroups->fs = fs;
    qgroups->has_paths = paths;
    struct bw_error *error = read_pieces(qgroups);
    if (error)
        bw_error_free(bw_qgroups_close(BW_TAKE(*result)));
    return error;
}

const struct bw_qgroup_info *bw_qgroups_next(struct bw_qgroups *qgroups)
{
    const size_t left = qgroups->pieces.count - qgroups->next;
    if (!left || qgroups->error)
        return NULL;
    const struct piece *first = qgroups->pieces.items + qgroups->next;
    size_t count = 1;
    while (count < left && first[count].group == first->group)
        count++;
    qgroups->next += count;

    struct bw_qgroup_info *info = &qgroups->info;
    const uint64_t id = first->group;
    *info = (struct bw_qgroup_info){
        .id = id, .level = (unsigned)BW_QGROUP_LEVEL(id), .number = BW_QGROUP_NUMBER(id)};
    /* Each relation is stored twice, once for each group; the parent has the greater id. */
    uint64_t *others = qgroups->others;
    for (size_t i = 0; i < count; i++) {
        const uint64_t *values = first[i].values;
        if (first[i].type == BW_QGROUP_INFO) {
            info->is_counted = true;
            info->generation = values[0];
            info->referenced = values[1];
            info->referenced_compressed = values[2];
            info->exclusive = values[3];
            info->exclusive_compressed = values[4];
        } else if (first[i].type == BW_QGROUP_LIMIT) {
            info->limits = values[0];
            info->max_referenced = values[1];
            info->max_exclusive = values[2];
            info->reserved_referenced = values[3];
            info->reserved_exclusive = values[4];
        } else {
            others[info->member_count + info->parent_count] = first[i].other;
            if (first[i].other < id)
                info->member_count++;
            else
                info->parent_count++;
        }
    }
    info->members = others;
    info->parents = others + info->member_count;
    if (!info->level)
        info->subvolume = bw_subvolume_by_id(qgroups->fs, info->number);
    if (qgroups->has_paths && info->subvolume) {
        qgroups->error =
            bw_subvolume_paths_get(&qgroups->paths, qgroups->fs, info->subvolume, &qgroups->path);
        info->path = qgroups->path.length ? qgroups->path.data : NULL;
        info->path_length = qgroups->path.length;
    }
    return qgroups->error ? NULL : info;
}

struct bw_error *bw_qgroups_close(struct bw_qgroups *qgroups)
{
    if (!qgroups)
        return NULL;
    struct bw_error *error = qgroups->error;
    pieces_free(&qgroups->pieces);
    bw_subvolume_paths_free(&qgroups->paths);
    bw_buffer_free(&qgroups->path);
    free(qgroups->others);
    free(qgroups);
    return error;
}
