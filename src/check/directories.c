/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way from directories up to the top. Subvolumes in which the same directories lie in each
 * other, as they do in most snapshots, are looked at once. */
#include "check/directories.h"
#include "base/compare.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "check/inode_sums.h"

/* Directories that have a lower number than their parent, in any subvolume. */
struct moved {
    uint64_t *directories;
    size_t count;
};

/* The way up in a subvolume. */
struct parents {
    struct bw_check *check;
    const struct moved *moved;
    const struct bw_listed_tree *tree;
    struct bw_leaf_finder finder;
    struct bw_key_map seen; /* directory to the number of the search that came by first */
    uint32_t searches;
    uint64_t more_subvolumes; /* with the same directories */
};

static bool collect_entries(struct bw_check *check, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        if (bw_is_moved_directory(&item->key, &entry) &&
            bw_key_map_put(&check->moved_directories, entry.location.objectid, 1))
            return false;
    return true;
}

bool bw_moved_directories_collect(struct bw_check *check, const struct bw_node *leaf)
{
    struct bw_item item;
    bool stored = true;
    pthread_mutex_lock(&check->bad_lock);
    for (uint32_t slot = 0; stored && bw_leaf_next(leaf, &slot, &item);)
        if (item.key.type == BW_DIR_INDEX)
            stored = collect_entries(check, &item);
    pthread_mutex_unlock(&check->bad_lock);
    return stored;
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
static struct bw_error *find_parent(struct parents *parents, uint64_t inode, uint64_t *parent)
{
    struct bw_leaf_finder *finder = &parents->finder;
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

/* A directory is its own ancestor: reports the circle once, by its lowest number. */
static struct bw_error *report_cycle(struct parents *parents, uint64_t directory)
{
    uint64_t count = 0, lowest = directory, next = directory;
    do {
        lowest = next < lowest ? next : lowest;
        BW_TRY(find_parent(parents, next, &next));
        count++;
    } while (next && next != directory);
    const struct bw_finding location = BW_FINDING(
        BW_TOUCHES_INODE, .tree = parents->tree->tree.id, .key = {lowest, BW_INODE_ITEM, 0},
        .inode = lowest, .more_subvolumes = parents->more_subvolumes);
    if (count == 1)
        bw_check_find(parents->check, BW_CODE_directory_cycle, &location,
                      "the directory contains itself: no path leads to it");
    else
        bw_check_find(parents->check, BW_CODE_directory_cycle, &location,
                      "%" PRIu64 " directories contain each other: no path leads to them", count);
    return NULL;
}

/* Follows the parents up to the top, or to where an earlier search came by. */
static struct bw_error *find_parents(struct parents *parents, uint64_t directory)
{
    const uint32_t number = ++parents->searches;
    while (directory && directory != BW_SUBVOLUME_ROOT_INODE) {
        const uint32_t seen = bw_key_map_get(&parents->seen, directory, UINT32_MAX);
        if (seen != UINT32_MAX)
            return seen == number ? report_cycle(parents, directory) : NULL;
        BW_TRY(bw_key_map_put(&parents->seen, directory, number));
        BW_TRY(find_parent(parents, directory, &directory));
    }
    return NULL;
}

/* The number may belong to another inode in this subvolume, or to none. */
static struct bw_error *search_from(struct parents *parents, uint64_t directory)
{
    uint64_t parent;
    BW_TRY(find_parent(parents, directory, &parent));
    return parent >= directory ? find_parents(parents, directory) : NULL;
}

static struct bw_error *check_tree(struct parents *parents, const struct bw_listed_tree *tree,
                                   uint64_t more_subvolumes)
{
    const struct moved *moved = parents->moved;
    parents->tree = tree;
    parents->more_subvolumes = more_subvolumes;
    parents->searches = 0;
    bw_key_map_clear(&parents->seen);
    bw_leaf_finder_set_tree(&parents->finder, &tree->tree);
    for (size_t i = 0; i < moved->count && bw_check_should_continue(parents->check, 0); i++)
        BW_TRY(search_from(parents, moved->directories[i]));
    return NULL;
}

static bool has_moved(const struct bw_listed_tree *tree)
{
    return tree->is_subvolume && tree->references && tree->has_moved_directories;
}

/* Counts for each subvolume those with the same directories that come after it; the later ones get
 * UINT64_MAX. */
static struct bw_error *count_alike(const struct bw_check *check, uint64_t *alike)
{
    struct bw_key_map first = {0};
    bool stored = true;
    for (size_t i = 0; stored && i < check->trees.entries.count; i++) {
        const struct bw_listed_tree *tree = &check->trees.entries.items[i];
        if (!has_moved(tree))
            continue;
        const uint64_t directories = tree->parents ^ bw_fact_mix(tree->total) ^ tree->incomplete;
        const uint32_t known = bw_key_map_get(&first, directories, UINT32_MAX);
        if (known != UINT32_MAX) {
            alike[known]++;
            alike[i] = UINT64_MAX;
        } else {
            stored = !bw_key_map_put(&first, directories, (uint32_t)i);
        }
    }
    bw_key_map_free(&first);
    return stored ? NULL : bw_error_no_memory();
}

/* The moved directories, ascending: neighbours lie in the same leaves. */
static struct bw_error *sort_moved(const struct bw_check *check, struct moved *moved)
{
    size_t position = 0;
    uint32_t unused;
    moved->directories = calloc(check->moved_directories.count, sizeof *moved->directories);
    if (!moved->directories)
        return bw_error_no_memory();
    while (bw_key_map_next(&check->moved_directories, &position, &moved->directories[moved->count],
                           &unused))
        if (++moved->count == check->moved_directories.count)
            break;
    qsort(moved->directories, moved->count, sizeof *moved->directories, bw_compare_first);
    return NULL;
}

static struct bw_error *check_trees(struct bw_check *check, struct parents *parents,
                                    uint64_t *alike)
{
    BW_TRY(count_alike(check, alike));
    for (size_t i = 0; i < check->trees.entries.count && bw_check_should_continue(check, 0); i++)
        if (has_moved(&check->trees.entries.items[i]) && alike[i] != UINT64_MAX)
            BW_TRY(check_tree(parents, &check->trees.entries.items[i], alike[i]));
    return NULL;
}

struct bw_error *bw_check_directories(struct bw_check *check)
{
    struct moved moved = {0};
    struct parents parents = {.check = check, .moved = &moved};
    if (!check->moved_directories.count)
        return NULL;
    BW_AUTO_FREE uint64_t *alike = calloc(check->trees.entries.count + 1, sizeof *alike);
    struct bw_error *error = alike ? sort_moved(check, &moved) : bw_error_no_memory();
    bw_leaf_finder_init(&parents.finder, &check->fs->reader, &check->trees.entries.items[0].tree);
    if (!error)
        error = check_trees(check, &parents, alike);
    bw_leaf_finder_free(&parents.finder);
    bw_key_map_free(&parents.seen);
    free(moved.directories);
    return error;
}
