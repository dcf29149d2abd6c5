/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The inodes that differ. The items in which the trees differ come in key order, so that all of an
 * inode follow one another; what they say is kept in some bytes an inode, and looked at again when
 * all are known.
 */

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "diff/diff.h"

/* Numbers of inodes end here; above are those of orphans and the like. */
#define LAST_INODE ((uint64_t)-257)

/* The last inode of the list, which has this number from now on. */
static struct bw_error *touch_inode(struct bw_touched_list *list, uint64_t number, unsigned flags)
{
    struct bw_touched_inodes *inodes = &list->inodes;
    if (!inodes->count || inodes->items[inodes->count - 1].number != number)
        BW_TRY(bw_touched_inodes_push(inodes, (struct bw_touched){number, list->ranges.count, 0}));
    inodes->items[inodes->count - 1].flags |= flags;
    return NULL;
}

/* Joins a range to the last one of the same inode if they touch. */
static struct bw_error *touch_range(struct bw_touched_list *list, uint64_t number, uint64_t start,
                                    uint64_t end)
{
    BW_TRY(touch_inode(list, number, BW_TOUCHED_CONTENT));
    struct bw_diff_ranges *ranges = &list->ranges;
    const bool is_first = list->inodes.items[list->inodes.count - 1].range == ranges->count;
    struct bw_diff_range *last = is_first ? NULL : &ranges->items[ranges->count - 1];
    if (last && start <= last->end) {
        last->end = end > last->end ? end : last->end;
        return NULL;
    }
    return bw_diff_ranges_push(ranges, (struct bw_diff_range){start, end});
}

/* The end of a file's range in an item, and the transaction that wrote it. An invalid item may be
 * of any transaction, and its range has no end. */
static uint64_t end_of_extent(const struct bw_diff_tree *tree, const struct bw_item *item,
                              uint64_t *generation)
{
    struct bw_file_extent extent;
    uint64_t end = 0;
    *generation = UINT64_MAX;
    if (!item)
        return 0;
    BW_AUTO_ERROR struct bw_error *error =
        bw_file_extent_decode(item, bw_fs_alignment(tree->fs), &extent);
    if (error)
        return UINT64_MAX;
    *generation = extent.generation;
    return __builtin_add_overflow(item->key.offset, extent.num_bytes, &end) ? UINT64_MAX : end;
}

/* Entries of files are known from the files; those of nested subvolumes only from here. */
static struct bw_error *add_nested_entries(struct bw_diff *diff, const struct bw_item_pair *pair)
{
    struct bw_touched_list *list = &diff->touched;
    for (uint8_t side = 0; side < 2; side++) {
        struct bw_dir_entry entry;
        if (!pair->items[side])
            continue;
        struct bw_cursor cursor = bw_cursor_of(pair->items[side]);
        if (!bw_dir_entry_next(&cursor, &entry) || entry.location.type != BW_ROOT_ITEM ||
            !bw_name_is_valid(entry.name, entry.name_length))
            continue;
        const struct bw_nested_entry nested = {
            .id = entry.location.objectid,
            .directory = pair->key.objectid,
            .name = list->names.length,
            .name_length = entry.name_length,
            .side = side,
            .unknown = pair->unknown,
        };
        BW_TRY(bw_nested_entries_push(&list->nested, nested));
        bw_buffer_append(&list->names, entry.name, entry.name_length);
    }
    return bw_buffer_error(&list->names);
}

static struct bw_error *on_pair(struct bw_diff *diff, const struct bw_item_pair *pair)
{
    struct bw_touched_list *list = &diff->touched;
    const struct bw_item *const *items = pair->items;
    const uint64_t number = pair->key.objectid;
    struct bw_inode inodes[2];
    uint64_t ends[2], generation;
    if (number > LAST_INODE)
        return NULL;
    switch (pair->key.type) {
    case BW_INODE_ITEM: /* the number may have gone to another file */
        if (number != BW_SUBVOLUME_ROOT_INODE && items[0] && items[1] &&
            bw_inode_decode(items[0], &inodes[0]) && bw_inode_decode(items[1], &inodes[1]) &&
            inodes[0].generation != inodes[1].generation)
            return touch_inode(list, number, BW_TOUCHED_REPLACED);
        return touch_inode(list, number, 0);
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        return touch_inode(list, number, BW_TOUCHED_NAMES);
    case BW_XATTR_ITEM:
        return touch_inode(list, number, BW_TOUCHED_XATTRS);
    case BW_EXTENT_DATA:
        for (unsigned side = 0; side < 2; side++)
            ends[side] = end_of_extent(&diff->trees[side], items[side], &generation);
        /* Transactions set their generation in the extents that they write, clone or split. */
        if (diff->trees[0].unavailable && generation <= diff->options.since)
            return NULL;
        if (pair->unknown && !diff->trees[0].unavailable)
            ends[1] = UINT64_MAX;
        return touch_range(list, number, pair->key.offset, bw_max(ends[0], ends[1]));
    case BW_DIR_INDEX:
        return add_nested_entries(diff, pair);
    default:
        return NULL;
    }
}

/* A loss may begin in the midst of an inode. */
static struct bw_error *on_lost_block(struct bw_diff *diff, unsigned side,
                                      const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    const struct bw_key *first = &pointer->expectation.first_key;
    bw_fs_report_lost(diff->trees[side].fs, pointer->bytenr, error);
    diff->trees[side].lost = true;
    if (first->objectid > LAST_INODE)
        return NULL;
    BW_TRY(touch_inode(&diff->touched, first->objectid, BW_TOUCHED_NAMES | BW_TOUCHED_XATTRS));
    return touch_range(&diff->touched, first->objectid,
                       first->type == BW_EXTENT_DATA ? first->offset : 0, UINT64_MAX);
}

struct bw_error *bw_touched_find(struct bw_diff *diff)
{
    if (diff->trees[0].unavailable) {
        BW_SCOPED(bw_block_scan)
        struct bw_block_scan scan = {BW_SCAN_ALL, .announce = true,
                                     .newer_than = diff->options.since};
        bw_block_scan_begin(&scan, &diff->trees[1].fs->reader, &diff->trees[1].subvolume->tree);
        while (bw_block_scan_next(&scan)) {
            struct bw_item item;
            if (scan.error)
                BW_TRY(on_lost_block(diff, 1, &scan.pointer, BW_TAKE(scan.error)));
            for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);) {
                const struct bw_item_pair pair = {
                    .key = item.key, .items = {NULL, &item}, .unknown = true};
                BW_TRY(on_pair(diff, &pair));
            }
        }
        return bw_block_scan_end(&scan);
    }
    struct bw_pairs pairs = {.shared = diff->shared, .since = diff->options.since};
    struct bw_error *error = NULL;
    for (unsigned side = 0; side < 2; side++) {
        pairs.readers[side] = diff->trees[side].fs->reader;
        pairs.trees[side] = diff->trees[side].subvolume->tree;
    }
    while (!error && bw_pairs_next(&pairs)) {
        if (pairs.error)
            error = on_lost_block(diff, pairs.side, &pairs.lost, BW_TAKE(pairs.error));
        else
            error = on_pair(diff, &pairs.pair);
    }
    diff->summary.blocks = pairs.blocks;
    return bw_pairs_end(&pairs, error);
}

const struct bw_touched *bw_touched_get(const struct bw_touched_list *list, uint64_t number)
{
    const struct bw_touched_inodes *inodes = &list->inodes;
    const size_t at = BW_FIRST_INDEX(i, inodes->count, inodes->items[i].number >= number);
    return at < inodes->count && inodes->items[at].number == number ? &inodes->items[at] : NULL;
}

void bw_touched_free(struct bw_touched_list *list)
{
    bw_touched_inodes_free(&list->inodes);
    bw_diff_ranges_free(&list->ranges);
    bw_nested_entries_free(&list->nested);
    bw_buffer_free(&list->names);
}
