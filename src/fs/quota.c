/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The quota tree. It contains the numbers of all groups, then the limits of all groups, then all
 * relations. Each such item is a piece of what is known about a group, so all pieces are collected,
 * sorted by group, and passed on group by group.
 */
#include "btrfs-walk/subvolume.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
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

struct collection {
    struct bw_fs *fs;
    struct pieces *pieces;
};

/* Passes the items from `first` to `last` to `visit`; `*exists` is false if there is no quota
 * tree. */
static struct bw_error *read_items(struct bw_fs *fs, struct bw_key first, struct bw_key last,
                                   bw_item_visitor *visit, void *context, bool *exists)
{
    struct bw_tree tree;
    struct bw_error *error = bw_tree_find(fs, BW_QUOTA_TREE, &tree);
    *exists = !error;
    if (!error)
        return bw_fs_items(fs, &tree, first, last, visit, context);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error->code == BW_ERROR_NOT_FOUND)
        bw_error_free(error);
    else
        bw_fs_report(fs, BW_DAMAGE, error);
    return NULL;
}

static struct bw_error *decode_status(void *context, const struct bw_item *item)
{
    struct bw_quota_status *status = context;
    const struct bw_disk_qgroup_status *disk = (const void *)item->data;
    if (item->size < offsetof(struct bw_disk_qgroup_status, enable_generation))
        return NULL;
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
    return NULL;
}

struct bw_error *bw_fs_quota_status(struct bw_fs *fs, struct bw_quota_status *status)
{
    const struct bw_key key = {0, BW_QGROUP_STATUS, 0};
    *status = (struct bw_quota_status){0};
    BW_TRY(read_items(fs, key, key, decode_status, status, &status->exists));
    if (status->exists && !status->is_known)
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "quota tree: there is no good status item"));
    return NULL;
}

static struct bw_error *collect_piece(void *context, const struct bw_item *item)
{
    struct collection *collection = context;
    const struct bw_key *key = &item->key;
    bool relation = key->type == BW_QGROUP_RELATION;
    bool numbers = key->type == BW_QGROUP_INFO || key->type == BW_QGROUP_LIMIT;
    struct piece piece = {.group = relation ? key->objectid : key->offset,
                          .type = key->type,
                          .other = relation ? key->offset : 0};
    if (!relation && !numbers)
        return NULL;
    if (numbers && item->size < sizeof(bw_le64) * VALUES) {
        bw_fs_report(collection->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "quota tree: the item of group %" PRIu64 "/%" PRIu64
                                     " is cut off",
                                     BW_QGROUP_LEVEL(piece.group), BW_QGROUP_NUMBER(piece.group)));
        return NULL;
    }
    for (unsigned i = 0; numbers && i < VALUES; i++)
        piece.values[i] = bw_get64(((const bw_le64 *)item->data)[i]);
    return pieces_push(collection->pieces, piece);
}

static int by_group(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return (a->other > b->other) - (a->other < b->other);
}

static void copy_values(const struct piece *piece, struct bw_qgroup_info *info)
{
    const uint64_t *values = piece->values;
    if (piece->type == BW_QGROUP_INFO) {
        info->is_counted = true;
        info->generation = values[0];
        info->referenced = values[1];
        info->referenced_compressed = values[2];
        info->exclusive = values[3];
        info->exclusive_compressed = values[4];
    } else {
        info->limits = values[0];
        info->max_referenced = values[1];
        info->max_exclusive = values[2];
        info->reserved_referenced = values[3];
        info->reserved_exclusive = values[4];
    }
}

/* Adds the pieces of one group. Each relation is stored twice, once for each group; the parent has
 * the greater id. */
static void add_pieces(const struct piece *pieces, size_t count, uint64_t *others,
                       struct bw_qgroup_info *info)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].type != BW_QGROUP_RELATION) {
            copy_values(&pieces[i], info);
            continue;
        }
        others[info->member_count + info->parent_count] = pieces[i].other;
        if (pieces[i].other < info->id)
            info->member_count++;
        else
            info->parent_count++;
    }
    info->members = others;
    info->parents = others + info->member_count;
}

struct bw_error *bw_fs_qgroups(struct bw_fs *fs, bool wanted, bw_qgroup_visitor *visit,
                               void *context)
{
    BW_SCOPED(pieces) struct pieces pieces = {0};
    struct collection collection = {fs, &pieces};
    BW_SCOPED(bw_subvolume_paths) struct bw_subvolume_paths paths = {0};
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bool exists;
    BW_TRY(read_items(fs, (struct bw_key){0, BW_QGROUP_INFO, 0}, BW_KEY_MAX, collect_piece,
                      &collection, &exists));
    if (!exists)
        return NULL;
    if (pieces.count)
        qsort(pieces.items, pieces.count, sizeof *pieces.items, by_group);
    const struct piece *all = pieces.items;
    if (wanted)
        BW_TRY(bw_subvolume_paths_load(&paths, fs));
    /* the other groups of one group's relations */
    BW_AUTO_FREE uint64_t *others = calloc(pieces.count + 1, sizeof *others);
    if (!others)
        return bw_error_no_memory();
    for (size_t i = 0, end; i < pieces.count; i = end) {
        for (end = i + 1; end < pieces.count && all[end].group == all[i].group;)
            end++;
        const uint64_t id = all[i].group;
        struct bw_qgroup_info info = {
            .id = id, .level = (unsigned)BW_QGROUP_LEVEL(id), .number = BW_QGROUP_NUMBER(id)};
        add_pieces(all + i, end - i, others, &info);
        if (!info.level)
            info.subvolume = bw_subvolume_by_id(fs, info.number);
        if (wanted && info.subvolume) {
            BW_TRY(bw_subvolume_paths_get(&paths, fs, info.subvolume, &path));
            info.path = path.length ? path.data : NULL;
            info.path_length = path.length;
        }
        BW_TRY(visit(context, &info));
    }
    return NULL;
}
