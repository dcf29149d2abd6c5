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

struct naming {
    struct bw_fs *fs;
    struct bw_inode_paths *paths;
    bw_lost_name_visitor *visit;
    void *context;
    struct bw_query_ranges all;    /* inodes of all subvolumes */
    struct bw_query_ranges inodes; /* inodes of the current subvolume; the numbers are indexes into
                                      `lost` */
    const struct bw_lost_inodes *lost;
    struct bw_block_set seen, marks;
    uint64_t path[BW_MAX_LEVEL];
    /* Which of the first and last inodes have names in directories, two a range. */
    bool *named;
};

static struct bw_error *on_leaf(void *context, const struct bw_node *leaf)
{
    struct naming *naming = context;
    const struct bw_subvolume *subvolume = naming->lost->subvolume;
    struct bw_item item;
    bool hit = false;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_dir_entry entry;
        while (item.key.type == BW_DIR_INDEX && bw_dir_entry_next(&cursor, &entry)) {
            const struct bw_query_range *query;
            size_t any = 0, next = 0;
            if (entry.location.type != BW_INODE_ITEM)
                continue;
            const uint64_t inode = entry.location.objectid;
            hit |= bw_query_ranges_next(&naming->all, &any, inode, 1) != NULL;
            while ((query = bw_query_ranges_next(&naming->inodes, &next, inode, 1))) {
                const struct bw_lost_inodes *range = &naming->lost[query->number];
                struct bw_bytes path;
                naming->named[query->number * 2] |= inode == range->first;
                naming->named[query->number * 2 + 1] |= inode == range->last;
                BW_TRY(bw_inode_paths_join(naming->paths, subvolume, item.key.objectid, entry.name,
                                           entry.name_length, &path));
                if (path.data)
                    BW_TRY(naming->visit(naming->context, range, inode, &path));
            }
        }
    }
    if (!hit)
        return NULL;

    /* The blocks that lead here are followed from other paths, too. */
    const struct bw_disk_header *header = (const void *)leaf->block;
    naming->path[0] = bw_get64(header->bytenr);
    for (unsigned level = 0; level <= subvolume->tree.root.level; level++) {
        bool new;
        BW_TRY(bw_block_set_insert(&naming->marks, naming->path[level], &new));
    }
    return NULL;
}

static struct bw_error *select_block(void *context, const struct bw_block_pointer *pointer,
                                     bool *selected)
{
    struct naming *naming = context;
    naming->path[pointer->expectation.level] = pointer->bytenr;
    BW_TRY(bw_block_set_insert(&naming->seen, pointer->bytenr, selected));
    *selected |= bw_block_set_has(&naming->marks, pointer->bytenr);
    return NULL;
}

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

/* Finds the names in one subvolume: the subvolume of the first `count` ranges. */
static struct bw_error *name_in_subvolume(struct naming *naming, size_t count)
{
    const struct bw_scan scan = {BW_SCAN_ALL,     .select = select_block,
                                 .leaf = on_leaf, .lost = bw_scan_ignore_lost,
                                 .adopt = true,   .context = naming};
    BW_AUTO_FREE bool *named = naming->named = calloc(count, 2 * sizeof *named);
    if (!named)
        return bw_error_no_memory();
    BW_TRY(list_inodes(naming->lost, count, &naming->inodes));
    BW_TRY(bw_tree_scan(&naming->fs->reader, &naming->lost->subvolume->tree, &scan));

    /* The first and the last inode of a range may have more names outside of it. */
    for (size_t i = 0; i < count; i++) {
        const struct bw_lost_inodes *range = &naming->lost[i];
        const uint64_t ends[] = {range->first, range->last};
        for (unsigned k = 0; k < 1 + (ends[0] != ends[1]); k++) {
            struct bw_bytes path;
            if (named[i * 2 + k])
                continue;
            bw_inode_paths_begin(naming->paths, range->subvolume, ends[k]);
            for (; bw_inode_paths_next(naming->paths, &path); named[i * 2 + k] = true)
                BW_TRY(naming->visit(naming->context, range, ends[k], &path));
            BW_TRY(bw_inode_paths_error(naming->paths));
            if (!named[i * 2 + k] && ends[0] == ends[1])
                BW_TRY(naming->visit(naming->context, range, ends[k], &path));
        }
    }
    return NULL;
}

static int by_subvolume(const void *first, const void *second)
{
    const struct bw_lost_inodes *a = first, *b = second;
    if (a->subvolume != b->subvolume)
        return a->subvolume < b->subvolume ? -1 : 1;
    return bw_compare(a->number, b->number);
}

struct bw_error *bw_lost_inodes_name(struct bw_fs *fs, struct bw_inode_paths *paths,
                                     struct bw_lost_inodes *lost, size_t count,
                                     bw_lost_name_visitor *visit, void *context)
{
    struct naming naming = {.fs = fs, .paths = paths, .visit = visit, .context = context};
    if (count)
        qsort(lost, count, sizeof *lost, by_subvolume);
    struct bw_error *error = list_inodes(lost, count, &naming.all);
    for (size_t first = 0, end; first < count && !error; first = end) {
        for (end = first; end < count && lost[end].subvolume == lost[first].subvolume;)
            end++;
        naming.lost = &lost[first];
        if (!lost[first].subvolume->deleted)
            error = name_in_subvolume(&naming, end - first);
    }
    bw_query_range_list_free(&naming.inodes.ranges);
    bw_query_range_list_free(&naming.all.ranges);
    bw_key_map_free(&naming.seen.words);
    bw_key_map_free(&naming.marks.words);
    return error;
}
