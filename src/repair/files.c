/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files before and after the changes. The check of a trial compares structures with each other; a
 * wrong number may pass it, for example the kind of a compression. Therefore a trial reads the
 * files with items in a changed leaf, or, with bw_repair_options.verify, all files of all
 * subvolumes, once from the damaged and once from the repaired file system. None may have more
 * unreadable bytes than before.
 *
 * Without `verify`, no more than the first part of each file is read, and of all files together.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/inode.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "repair/repair.h"

enum { MOST_OF_FILE = 16 << 20, MOST_OF_ALL = 1 << 30 };

/* The two file systems, and how many bytes may still be read. */
struct comparison {
    struct bw_repair *repair;
    struct bw_fs *before, *after;
    uint64_t allowance;
};

struct reading {
    uint64_t bytes, bad;
};

/* Reads a file; without an inode, it is bad. Fails only without memory. */
static struct bw_error *read_file(struct bw_fs *fs, uint64_t subvolume, uint64_t inode,
                                  uint64_t most, struct reading *reading)
{
    const struct bw_place place = {.subvolume = bw_subvolume_by_id(fs, subvolume), .inode = inode};
    struct bw_file *file = NULL;
    struct bw_error *error = NULL;
    *reading = (struct reading){.bad = 0};
    if (!place.subvolume)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no subvolume");
    if (!error)
        error = bw_file_open(fs, &place, NULL, &file);
    const struct bw_data_part *part = NULL;
    if (!error)
        error = bw_file_begin_parts(file, 0, most);
    while (!error && !(error = bw_file_next_part(file, &part)) && part) {
        if (part->kind == BW_DATA_BYTES)
            reading->bytes += part->length;
        else if (part->kind == BW_DATA_BAD)
            reading->bad += part->length;
    }
    bw_file_close(file);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error->code != BW_ERROR_USAGE) /* it is neither a file nor a link */
        reading->bad = UINT64_MAX;
    bw_error_free(error);
    return NULL;
}

static struct bw_error *compare_file(struct comparison *comparison, uint64_t subvolume,
                                     uint64_t inode)
{
    const bool verify = comparison->repair->options.verify;
    const uint64_t most =
        verify ? UINT64_MAX : bw_min((uint64_t)MOST_OF_FILE, comparison->allowance);
    struct reading before, after;
    if (!most)
        return NULL;
    BW_TRY(read_file(comparison->before, subvolume, inode, most, &before));
    BW_TRY(read_file(comparison->after, subvolume, inode, most, &after));
    if (after.bad > before.bad)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "inode %" PRIu64 " of subvolume %" PRIu64
                               " is less readable than before the repair",
                               inode, subvolume);
    if (!verify)
        comparison->allowance -= bw_min(comparison->allowance, after.bytes);
    return NULL;
}

struct bw_error *bw_repair_compare_files(struct bw_repair *repair, struct bw_fs *repaired)
{
    const bool verify = repair->options.verify;
    const struct bw_fs_options how = bw_repair_how(repair);
    struct comparison comparison = {.repair = repair, .after = repaired, .allowance = MOST_OF_ALL};
    BW_TRY(repair->given->reopen(&how, &comparison.before));
    struct bw_error *error = NULL;

    /* The files with items in the changed leaves, before the changes. */
    for (size_t i = 0; !error && !verify && i < repair->blocks.count; i++) {
        const struct bw_repair_block *block = &repair->blocks.items[i];
        const struct bw_node leaf = bw_node_view(block->bytes, repair->fs->superblock.nodesize);
        const uint64_t owner = bw_get64(((const struct bw_disk_header *)block->bytes)->owner);
        uint64_t last = 0;
        struct bw_item item;
        if (!block->is_changed || leaf.level || !bw_subvolume_by_id(comparison.before, owner))
            continue;
        for (uint32_t slot = 0; !error && bw_leaf_next(&leaf, &slot, &item);) {
            if ((item.key.type != BW_INODE_ITEM && item.key.type != BW_EXTENT_DATA) ||
                item.key.objectid == last)
                continue;
            last = item.key.objectid;
            error = compare_file(&comparison, owner, last);
        }
    }

    /* All files that the damaged file system shows. */
    const struct bw_subvolume *subvolume = NULL;
    while (!error && verify && (subvolume = bw_subvolume_next(comparison.before, subvolume))) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, comparison.before, &subvolume->tree,
                          (struct bw_key){BW_SUBVOLUME_ROOT_INODE, 0, 0}, BW_KEY_MAX);
        for (const struct bw_item *item; !error && (item = bw_fs_items_next(&items));) {
            struct bw_inode inode;
            if (item->key.type == BW_INODE_ITEM && bw_inode_decode(item, &inode) &&
                bw_file_type_of_mode(inode.mode) == BW_FILE_REGULAR)
                error = compare_file(&comparison, subvolume->tree.id, item->key.objectid);
        }
        error = bw_error_first(error, bw_fs_items_error(&items));
    }
    bw_fs_close(comparison.before);
    return error;
}
