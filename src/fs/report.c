/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages about an open file system. All of them pass through here, which makes it possible to
 * report each loss once: blocks are remembered by address, other messages by the hash of their
 * text. The functions that read the items of a tree, either in a range or all of them leaf by leaf,
 * report what is lost in this way.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "btree/scan.h"
#include "fs/fs.h"

struct bw_error *bw_fs_set_origin(struct bw_error *error)
{
    if (!error->way)
        bw_error_add_hop(error, "fs", "fs", NULL);
    return error;
}

void bw_fs_report_stream_error(struct bw_fs *fs, struct bw_error *error)
{
    if (!fs->stream_errors)
        fs->stream_errors = bw_error_create(BW_ERROR_CORRUPT, "errors in send streams");
    bw_error_add_cause(fs->stream_errors, bw_error_copy(error));
    bw_fs_report(fs, BW_DAMAGE, error);
}

void bw_fs_report(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error)
{
    bw_graph_report(fs->graph, severity, bw_fs_set_origin(error));
}

void bw_fs_report_text(struct bw_fs *fs, enum bw_severity severity, enum bw_error_code code,
                       const char *format, ...)
{
    va_list arguments;
    BW_AUTO_FREE char *message = NULL;
    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    bw_fs_report(fs, severity,
                 message ? bw_error_create(code, "%s", message) : bw_error_no_memory());
}

static bool add_once(struct bw_fs *fs, struct bw_key_map *map, uint64_t key)
{
    pthread_mutex_lock(&fs->lost_lock);
    const bool first = !bw_key_map_has(map, key);
    struct bw_error *error = first ? bw_key_map_put(map, key, 1) : NULL;
    pthread_mutex_unlock(&fs->lost_lock);
    if (error) /* it may be reported twice */
        bw_fs_report(fs, BW_WARNING, error);
    return first;
}

bool bw_fs_is_first_warning(struct bw_fs *fs, uint64_t tree, uint64_t inode)
{
    /* numbers beyond those of real file systems may collide, which costs only a warning */
    return add_once(fs, &fs->reported, inode ^ tree << 40);
}

void bw_fs_report_once(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error)
{
    const uint64_t hash = XXH3_64bits_withSeed(error->message, strlen(error->message), fs->seed);
    if (add_once(fs, &fs->reported, hash))
        bw_fs_report(fs, severity, error);
    else
        bw_error_free(error);
}

static void report_lost_as(struct bw_fs *fs, enum bw_severity severity, uint64_t bytenr,
                           struct bw_error *error)
{
    if (add_once(fs, &fs->lost, bytenr))
        bw_fs_report(fs, severity, error);
    else
        bw_error_free(error);
}

void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error)
{
    report_lost_as(fs, BW_DAMAGE, bytenr, error);
}

struct bw_error *bw_fs_report_damage(struct bw_fs *fs, struct bw_error *error)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_fs_report(fs, BW_DAMAGE, error);
    return NULL;
}

void bw_fs_report_range(struct bw_fs *fs, struct bw_item_range *range)
{
    if (range->lost == BW_LOST_ITEM)
        bw_fs_report_once(fs, BW_DAMAGE, BW_TAKE(range->error));
    else
        bw_fs_report_lost(fs, range->lost, BW_TAKE(range->error));
}

struct bw_error *bw_fs_find_leaf(struct bw_fs *fs, struct bw_leaf_finder *finder,
                                 const struct bw_key *key)
{
    BW_TRY(bw_find_leaf(finder, key));
    if (!finder->error)
        return NULL;
    /* The user does without the checksums, and nothing else is in their tree. */
    const bool is_ignored =
        finder->tree.id == BW_CSUM_TREE && fs->ignored_checksums & BW_CHECKSUMS_DATA;
    report_lost_as(fs, is_ignored ? BW_WARNING : BW_DAMAGE, finder->bytenr, BW_TAKE(finder->error));
    return NULL;
}

void bw_fs_items_begin(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree,
                       struct bw_key first, struct bw_key last)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    items->fs = fs;
    items->scanned = NULL;
    bw_item_range_begin(&items->range, &reader, tree, first, last);
}

void bw_fs_items_scan(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree,
                      const char *name)
{
    items->fs = fs;
    items->scanned = name;
    items->slot = 0;
    items->scan = (struct bw_block_scan){BW_SCAN_ALL};
    bw_block_scan_begin(&items->scan, &fs->reader, tree);
}

static const struct bw_item *scan_next(struct bw_fs_items *items)
{
    struct bw_block_scan *scan = &items->scan;
    do {
        if (scan->error)
            bw_fs_report_lost(items->fs, scan->pointer.bytenr, BW_TAKE(scan->error));
        while (items->slot < scan->node.item_count) {
            if (bw_leaf_item(&scan->node, items->slot++, &items->range.item))
                return &items->range.item;
            bw_fs_report_text(items->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "%s tree: item %" PRIu32 " lies outside its leaf", items->scanned,
                              items->slot - 1);
        }
        items->slot = 0;
    } while (bw_block_scan_next(scan));
    return NULL;
}

const struct bw_item *bw_fs_items_next(struct bw_fs_items *items)
{
    if (items->scanned)
        return scan_next(items);
    while (bw_item_range_next(&items->range)) {
        if (!items->range.error)
            return &items->range.item;
        bw_fs_report_range(items->fs, &items->range);
    }
    return NULL;
}

struct bw_error *bw_fs_items_error(struct bw_fs_items *items)
{
    return items->scanned ? bw_block_scan_end(&items->scan) : BW_TAKE(items->range.failure);
}

void bw_fs_items_free(struct bw_fs_items *items)
{
    if (items->scanned)
        bw_block_scan_free(&items->scan);
    else
        bw_error_free(bw_item_range_end(&items->range, NULL));
}
