/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of any tree, one after another, and the root blocks of trees by their id. */
#include <inttypes.h>
#include <stdlib.h>

#include "fs/tree_items.h"
#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/tree.h"
#include "ondisk/items.h"
#include "fs/fs.h"

struct bw_items {
    struct bw_item_range range;
};

static struct bw_error *find_root(struct bw_fs *fs, uint64_t id, struct bw_tree *tree)
{
    struct bw_item_range range;
    struct bw_root_item root;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, &fs->root_tree, (struct bw_key){id, BW_ROOT_ITEM, 0},
                        (struct bw_key){id, BW_ROOT_ITEM, UINT64_MAX});
    while (!error && bw_item_range_next(&range)) {
        error = range.error ? BW_TAKE(range.error) : bw_root_item_decode(&range.item, &root);
        if (!error)
            *tree = (struct bw_tree){id, root.root, root.last_snapshot};
    }
    return bw_item_range_end(&range, error);
}

struct bw_error *bw_tree_find(struct bw_fs *fs, uint64_t id, struct bw_tree *tree)
{
    *tree = (struct bw_tree){0};
    if (id == BW_TREE_ROOT)
        *tree = fs->root_tree;
    else if (id == BW_TREE_CHUNK)
        *tree = fs->chunk_tree;
    else if (id == BW_TREE_REMAP && fs->superblock.remap_root.bytenr)
        *tree = (struct bw_tree){id, fs->superblock.remap_root, 0};
    else
        BW_TRY(find_root(fs, id, tree));
    return tree->id ? NULL
                    : bw_error_create(BW_ERROR_NOT_FOUND, "there is no tree %" PRId64, (int64_t)id);
}

struct bw_error *bw_items_open(struct bw_fs *fs, uint64_t tree_id, const struct bw_key *first,
                               const struct bw_key *last, struct bw_items **items)
{
    struct bw_tree tree;
    BW_TRY(bw_tree_find(fs, tree_id, &tree));
    *items = malloc(sizeof **items);
    if (!*items)
        return bw_error_no_memory();
    bw_item_range_begin(&(*items)->range, &fs->reader, &tree, first ? *first : (struct bw_key){0},
                        last ? *last : BW_KEY_MAX);
    return NULL;
}

void bw_items_close(struct bw_items *items)
{
    if (items)
        bw_error_free(bw_item_range_end(&items->range, NULL));
    free(items);
}

struct bw_error *bw_items_next(struct bw_items *items, const struct bw_item **item,
                               struct bw_item_location *location)
{
    struct bw_item_range *range = &items->range;
    *item = NULL;
    if (!bw_item_range_next(range))
        return BW_TAKE(range->failure);
    if (range->error)
        return BW_TAKE(range->error);
    const struct bw_disk_header *header = (const void *)range->finder.leaf.block;
    if (location)
        *location = (struct bw_item_location){range->finder.bytenr, bw_get64(header->generation),
                                              bw_get64(header->owner), range->slot - 1};
    *item = &range->item;
    return NULL;
}
