/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of inodes whose own items are lost, from the entries of directories. All blocks of the
 * subvolumes are read, once for the first path that leads to them; blocks that lead to such an
 * entry are followed from the other paths as well.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btree/scan.h"
#include "ondisk/disk.h"
#include "ondisk/items.h"
#include "owners/owner_search.h"

static struct bw_error *list_inodes(const struct bw_lost_inodes *lost, size_t count,
                                    struct bw_query_ranges *list)
{
    list->ranges.count = 0;
    list->longest = 0;
    for (size_t i = 0; i < count; i++)
        if (!bw_query_ranges_add(list, lost[i].first, lost[i].last - lost[i].first + 1, i))
            return bw_error_no_memory();
    bw_query_ranges_sort(list);
    return NULL;
}

static int by_subvolume(const void *first, const void *second)
{
    const struct bw_lost_inodes *a = first, *b = second;
    if (a->subvolume != b->subvolume)
        return a->subvolume < b->subvolume ? -1 : 1;
    return bw_compare(a->number, b->number);
}

/* The first and the last inode of a range may have more names outside of it. `named`, two a range,
 * says which of them have names in directories. */
static struct bw_error *name_ends(struct bw_inode_paths *paths, const struct bw_lost_inodes *lost,
                                  size_t count, bool *named, bw_lost_name_visitor *visit,
                                  void *context)
{
    for (size_t i = 0; i < 2 * count; i++) {
        const struct bw_lost_inodes *range = &lost[i / 2];
        const bool is_single = range->first == range->last;
        const uint64_t inode = i % 2 ? range->last : range->first;
        struct bw_bytes path;
        if (named[i] || (i % 2 && is_single))
            continue;
        bw_inode_paths_begin(paths, range->subvolume, inode);
        for (; bw_inode_paths_next(paths, &path); named[i] = true)
            BW_TRY(visit(context, range, inode, &path));
        BW_TRY(bw_inode_paths_error(paths));
        if (!named[i] && is_single)
            BW_TRY(visit(context, range, inode, &path));
    }
    return NULL;
}

struct bw_error *bw_lost_inodes_name(struct bw_fs *fs, struct bw_inode_paths *paths,
                                     struct bw_lost_inodes *lost, size_t count,
                                     bw_lost_name_visitor *visit, void *context)
{
    BW_SCOPED(bw_query_ranges) struct bw_query_ranges all = {0}; /* inodes of all subvolumes */
    /* The inodes of the current subvolume; the numbers are indexes into `own`. */
    BW_SCOPED(bw_query_ranges) struct bw_query_ranges inodes = {0};
    BW_SCOPED(bw_block_set) struct bw_block_set seen = {0};
    BW_SCOPED(bw_block_set) struct bw_block_set marks = {0};
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .pointers = true};
    uint64_t way[BW_MAX_LEVEL]; /* the blocks from the root to the present one, by level */
    if (count)
        qsort(lost, count, sizeof *lost, by_subvolume);
    BW_TRY(list_inodes(lost, count, &all));
    for (size_t number = 0, end; number < count; number = end) {
        const struct bw_lost_inodes *own = &lost[number];
        const struct bw_subvolume *subvolume = own->subvolume;
        for (end = number; end < count && lost[end].subvolume == subvolume;)
            end++;
        if (subvolume->deleted)
            continue;
        BW_AUTO_FREE bool *named = calloc(end - number, 2 * sizeof *named); /* two a range */
        if (!named)
            return bw_error_no_memory();
        BW_TRY(list_inodes(own, end - number, &inodes));
        bw_block_scan_begin(&scan, &fs->reader, &subvolume->tree);
        while (bw_block_scan_next(&scan)) {
            bool is_hit = false;
            struct bw_item item;
            struct bw_bytes path;
            way[scan.pointer.expectation.level] = scan.pointer.bytenr;
            if (scan.step == BW_SCAN_POINTER) {
                BW_TRY(bw_block_set_insert(&seen, scan.pointer.bytenr, &scan.selected));
                scan.selected |= bw_block_set_has(&marks, scan.pointer.bytenr);
                continue;
            }
            for (uint32_t slot = 0; bw_leaf_next(&scan.node, &slot, &item);) {
                struct bw_cursor cursor = bw_cursor_of(&item);
                struct bw_dir_entry entry;
                while (item.key.type == BW_DIR_INDEX && bw_dir_entry_next(&cursor, &entry)) {
                    const struct bw_query_range *query;
                    size_t any = 0, next = 0;
                    if (entry.location.type != BW_INODE_ITEM)
                        continue;
                    const uint64_t inode = entry.location.objectid;
                    is_hit |= bw_query_ranges_next(&all, &any, inode, 1) != NULL;
                    while ((query = bw_query_ranges_next(&inodes, &next, inode, 1))) {
                        const struct bw_lost_inodes *range = &own[query->number];
                        named[query->number * 2] |= inode == range->first;
                        named[query->number * 2 + 1] |= inode == range->last;
                        BW_TRY(bw_inode_paths_join(paths, subvolume, item.key.objectid, entry.name,
                                                   entry.name_length, &path));
                        if (path.data)
                            BW_TRY(visit(context, range, inode, &path));
                    }
                }
            }
            /* The blocks that lead here are followed from other paths, too. */
            for (unsigned level = 0; is_hit && level <= subvolume->tree.root.level; level++) {
                bool new;
                BW_TRY(bw_block_set_insert(&marks, way[level], &new));
            }
        }
        BW_TRY(bw_block_scan_end(&scan));
        BW_TRY(name_ends(paths, own, end - number, named, visit, context));
    }
    return NULL;
}
