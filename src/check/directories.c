/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Circles of directories: from each directory that has a lower number than its parent, the search
 * follows the parents up to the top, or to a directory that an earlier search has passed. If
 * it comes to the same directory twice, that is a circle. Subvolumes in which the same directories
 * lie in each other, as they do in most snapshots, are searched once.
 */
#include "check/directories.h"
#include "base/compare.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/generated.h"
#include "btree/find_leaf.h"
#include "check/inode_sums.h"

void bw_moved_directories_collect(struct bw_check *check, const struct bw_node *leaf)
{
    struct bw_item item;
    pthread_mutex_lock(&check->lock);
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_dir_entry entry;
        while (item.key.type == BW_DIR_INDEX && bw_dir_entry_next(&cursor, &entry))
            if (bw_is_moved_directory(&item.key, &entry) &&
                bw_key_map_put(&check->moved_directories, entry.location.objectid, 1))
                check->no_memory = true;
    }
    pthread_mutex_unlock(&check->lock);
}

/* Finds the first name of an inode in the leaf of the finder. */
static bool name_in_leaf(const struct bw_leaf_finder *finder, uint64_t inode,
                         struct bw_inode_ref *ref)
{
    const struct bw_key before = {inode, BW_INODE_REF - 1, UINT64_MAX};
    const int64_t slot = finder->lost ? -1 : bw_leaf_first_behind(finder, &before);
    struct bw_item item;
    if (slot < 0 || !bw_leaf_item(&finder->leaf, (uint32_t)slot, &item) ||
        item.key.objectid != inode || item.key.type > BW_INODE_EXTREF)
        return false;
    struct bw_cursor cursor = bw_cursor_of(&item);
    return bw_inode_ref_next(&cursor, &item.key, ref);
}

/* The directory that an inode lies in, by its first name; 0: that is not known. The way up often
 * stays in one leaf, which the finder keeps. */
static struct bw_error *find_parent(struct bw_leaf_finder *finder, uint64_t inode, uint64_t *parent)
{
    const struct bw_key first = {inode, BW_INODE_REF, 0};
    struct bw_inode_ref ref;
    BW_TRY(bw_find_leaf(finder, &first));
    bool found = name_in_leaf(finder, inode, &ref);
    if (!found && finder->end.objectid == inode) {
        const struct bw_key next = finder->end;
        BW_TRY(bw_find_leaf(finder, &next));
        found = name_in_leaf(finder, inode, &ref);
    }
    *parent = found ? ref.parent : 0;
    return NULL;
}

/* Searches a subvolume from each of the moved directories of all subvolumes that has a lower number
 * than its parent here, too: its number may belong to another inode here, or to none. A circle is
 * reported once, by its lowest number. */
static struct bw_error *search_tree(struct bw_check *check, const struct bw_listed_tree *tree,
                                    const uint64_t *moved, size_t count, uint64_t more_subvolumes)
{
    BW_SCOPED(bw_key_map) struct bw_key_map passed = {0}; /* directory to the first search there */
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &check->fs->reader, &tree->tree);
    for (size_t i = 0; i < count && bw_check_should_continue(check, 0); i++) {
        const uint32_t search = (uint32_t)i;
        uint64_t directory = moved[i], parent;
        uint32_t met = UINT32_MAX;
        BW_TRY(find_parent(&finder, directory, &parent));
        if (parent < directory)
            continue;
        while (directory && directory != BW_SUBVOLUME_ROOT_INODE) {
            met = bw_key_map_get(&passed, directory, UINT32_MAX);
            if (met != UINT32_MAX)
                break;
            BW_TRY(bw_key_map_put(&passed, directory, search));
            BW_TRY(find_parent(&finder, directory, &directory));
        }
        if (met != search)
            continue;

        /* The directory is its own ancestor. */
        uint64_t size = 0, lowest = directory, next = directory;
        do {
            lowest = bw_min(lowest, next);
            BW_TRY(find_parent(&finder, next, &next));
            size++;
        } while (next && next != directory);
        const struct bw_finding location =
            BW_FINDING(BW_TOUCHES_INODE, .tree = tree->tree.id, .key = {lowest, BW_INODE_ITEM, 0},
                       .inode = lowest, .more_subvolumes = more_subvolumes);
        if (size == 1)
            bw_check_find(check, BW_CODE_directory_cycle, &location,
                          "the directory contains itself: no path leads to it");
        else
            bw_check_find(check, BW_CODE_directory_cycle, &location,
                          "%" PRIu64 " directories contain each other: no path leads to them",
                          size);
    }
    return NULL;
}

struct bw_error *bw_check_directories(struct bw_check *check)
{
    const struct bw_listed_trees *trees = &check->trees.entries;
    if (!check->moved_directories.count)
        return NULL;

    /* The moved directories, ascending: neighbours lie in the same leaves. */
    size_t position = 0, count = 0;
    uint32_t unused;
    BW_AUTO_FREE uint64_t *moved = calloc(check->moved_directories.count, sizeof *moved);
    BW_AUTO_FREE uint64_t *alike = calloc(trees->count + 1, sizeof *alike);
    if (!moved || !alike)
        return bw_error_no_memory();
    while (count < check->moved_directories.count &&
           bw_key_map_next(&check->moved_directories, &position, &moved[count], &unused))
        count++;
    qsort(moved, count, sizeof *moved, bw_compare_first);

    /* The first of the subvolumes that have the same directories. */
    for (size_t i = 0; i < trees->count; i++) {
        const struct bw_listed_tree *tree = &trees->items[i];
        alike[i] = BW_ABSENT;
        if (tree->is_subvolume && tree->references && tree->has_moved_directories)
            alike[i] = tree->parents ^ bw_fact_mix(tree->total) ^ tree->incomplete;
    }
    BW_TRY(bw_count_alike(alike, trees->count));

    for (size_t i = 0; i < trees->count && bw_check_should_continue(check, 0); i++)
        if (alike[i] != BW_ABSENT)
            BW_TRY(search_tree(check, &trees->items[i], moved, count, alike[i]));
    return NULL;
}
