/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing the trees: the roots in the superblock, and the items of the root tree. */
#include "check/tree_list.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "format/items.h"

static struct bw_error *add(struct bw_check *check, const struct bw_checked_tree *tree)
{
    if (!BW_ARRAY_RESERVE(check->trees, check->tree_count, check->tree_capacity))
        return bw_error_no_memory();
    check->trees[check->tree_count++] = *tree;
    return NULL;
}

static bool is_subvolume_id(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

bool bw_tree_list_decode(const struct bw_item *item, struct bw_checked_tree *tree)
{
    struct bw_root_item root;
    BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(item, &root);
    if (bad)
        return false;
    const struct bw_disk_root_item *disk = (const void *)item->data;
    *tree = (struct bw_checked_tree){
        .tree = {item->key.objectid, root.root, root.last_snapshot},
        .root_key = item->key,
        .references = root.references,
        .drop_progress = bw_key_decode(&disk->drop_progress),
        .drop_level = disk->drop_level,
        .is_subvolume = is_subvolume_id(item->key.objectid),
    };
    return true;
}

static struct bw_error *take_item(void *context, const struct bw_item *item)
{
    struct bw_checked_tree tree;
    if (item->key.type != BW_ROOT_ITEM || !bw_tree_list_decode(item, &tree))
        return NULL; /* what is wrong with it is found when the root tree is checked */
    return add(context, &tree);
}

struct bw_error *bw_tree_list_load(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    if (check->tree_count)
        return NULL;
    BW_TRY(add(check, &(struct bw_checked_tree){.tree = fs->root_tree, .references = 1}));
    BW_TRY(add(check, &(struct bw_checked_tree){.tree = fs->chunk_tree, .references = 1}));
    if (fs->superblock.remap_root.bytenr)
        BW_TRY(add(check,
                   &(struct bw_checked_tree){.tree = {BW_TREE_REMAP, fs->superblock.remap_root, 0},
                                             .references = 1}));
    return bw_fs_scan(fs, &fs->root_tree, "root tree", take_item, check);
}
