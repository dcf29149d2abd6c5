/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the log tree without the superblock that names it.
 *
 * An fsync writes the log and then only superblock copy 0, of every device. The other copies name
 * no log. If no copy 0 of the present generation can be read, the log's blocks still exist, in the
 * free space of the metadata chunks: their owner is the log tree, and their generation is the next
 * one, which was never committed.
 *
 * Each fsync of a transaction writes a new root of the log, and the earlier ones remain until the
 * commit. The newest one contains the latest change of an inode, and with the same change, more
 * items. A search of all chunks also proves that there is no log.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/image.h"
#include "history/history.h"
#include "history/scan.h"
#include "ondisk/disk_items.h"

/* The limit for a search that the user has not requested. */
enum { QUICK_BYTES = 256 << 20 };

/* A root of the log, and what its trees contain. */
struct log_root {
    struct bw_root_pointer root;
    int64_t changed; /* the latest ctime of an inode, in nanoseconds */
    uint64_t items;
    uint64_t lost; /* number of tree blocks */
};

/* Adds up a log tree or, if it is the root of all, the trees that it names. */
static struct bw_error *add_log(const struct bw_fs *fs, const struct bw_root_pointer *root,
                                bool is_root_of_all, struct log_root *found)
{
    const struct bw_tree tree = {.id = BW_TREE_LOG, .root = *root};
    struct bw_tree_reader reader = fs->reader;
    struct bw_item_range items;
    struct bw_error *error = NULL;
    reader.adopter = NULL; /* lost leaves are not replaced */
    bw_item_range_begin(&items, &reader, &tree, (struct bw_key){0}, BW_KEY_MAX);
    while (!error && bw_item_range_next(&items)) {
        const struct bw_disk_inode_item *inode = (const void *)items.item.data;
        if (items.error) {
            found->lost += items.lost != BW_LOST_ITEM;
        } else if (!is_root_of_all) {
            found->items++;
            if (items.item.key.type != BW_INODE_ITEM || items.item.size < sizeof *inode)
                continue;
            const struct timespec time = {(time_t)bw_get64(inode->ctime.seconds),
                                          (long)bw_get32(inode->ctime.nanoseconds)};
            const int64_t changed = bw_time_nanoseconds(&time);
            found->changed = changed > found->changed ? changed : found->changed;
        } else if (items.item.key.type == BW_ROOT_ITEM) {
            struct bw_root_item named;
            BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(&items.item, &named);
            found->lost += bad != NULL;
            if (!bad)
                error = add_log(fs, &named.root, false, found);
        }
    }
    return bw_item_range_end(&items, error);
}

static bool is_newer(const struct log_root *one, const struct log_root *other)
{
    if (one->lost != other->lost)
        return one->lost < other->lost;
    if (one->changed != other->changed)
        return one->changed > other->changed;
    if (one->items != other->items)
        return one->items > other->items;
    return one->root.bytenr > other->root.bytenr;
}

/* Reports that a log may be missing. */
static void report_unknown(struct bw_fs *fs, const char *reason, const char *advice)
{
    if (fs->ignores_log)
        return;
    fs->status.log_is_unknown = true;
    struct bw_error *error =
        bw_error_create(BW_ERROR_CORRUPT,
                        "superblock copy 0 was not read, and only it names a log tree: changes "
                        "since generation %" PRIu64 " may be missing%s",
                        fs->superblock.generation, reason);
    bw_fs_report(fs, BW_DAMAGE, advice ? bw_error_advise(error, "%s", advice) : error);
}

struct bw_error *bw_history_find_log(struct bw_fs *fs)
{
    BW_SCOPED(bw_scan_ranges) struct bw_scan_ranges ranges = {0};
    if (fs->is_past || fs->superblock.log_root)
        return NULL;

    /* A superblock of the present generation that was read would name a log. */
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        if (!image->bad && image->role == BW_IMAGE_DEVICE && image->copy == 0 &&
            !image->is_rebuilt && image->superblock.generation == fs->superblock.generation)
            return NULL;
    }
    BW_TRY(bw_scan_add_chunks(fs, &ranges));
    if (!fs->scan && ranges.bytes > QUICK_BYTES) {
        report_unknown(fs, "", "`scan` searches for them");
        return NULL;
    }

    /* The newest root of the log among the blocks that a scan finds. */
    BW_SCOPED(bw_found) struct bw_found_index index;
    bw_found_init(&index);
    struct bw_history_scan scan = {.fs = fs, .ranges = &ranges, .index = &index};
    struct log_root newest = {.items = 0};
    size_t count = 0;
    BW_TRY(bw_history_scan(&scan));
    for (size_t i = 0; i < index.blocks.count; i++) {
        const struct bw_found_block *block = &index.blocks.items[i];
        const struct bw_key first = bw_found_first_key(block);
        struct log_root found = {.root = {block->bytenr, block->generation, block->level},
                                 .changed = INT64_MIN};
        if (block->generation != fs->superblock.generation + 1 ||
            bw_found_owner(&index, block) != BW_TREE_LOG || first.objectid != BW_TREE_LOG ||
            first.type != BW_ROOT_ITEM)
            continue;
        BW_TRY(add_log(fs, &found.root, true, &found));
        if (!count++ || is_newer(&found, &newest))
            newest = found;
    }
    if (count) {
        fs->superblock.log_root = newest.root.bytenr;
        fs->superblock.log_root_level = newest.root.level;
        char others[64] = "";
        if (count > 1)
            snprintf(others, sizeof others, ", by its contents the newest of %zu", count);
        bw_fs_report_text(fs, fs->ignores_log ? BW_NOTE : BW_DAMAGE, BW_ERROR_CORRUPT,
                          "superblock copy 0, which names the log tree, was not read: a search "
                          "found a log tree at %" PRIu64 "%s",
                          newest.root.bytenr, others);
    } else if (scan.unread || ranges.left_out) {
        report_unknown(fs, "; parts of the metadata cannot be read", NULL);
    }
    return NULL;
}
