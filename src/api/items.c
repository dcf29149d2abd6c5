/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of any tree, one after another, and the root blocks of trees by their id. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "btree/item_range.h"
#include "btrfs-walk/tree.h"
#include "format/items.h"
#include "fs/fs.h"

struct bw_items {
    struct bw_leaf_finder finder;
    struct bw_key at, last; /* the least key that may come next, and the greatest wanted */
    struct bw_key entered;  /* what `at` was when the leaf was looked for */
    bool in_leaf;           /* the finder is in the leaf of `at`, and `slot` is valid */
    uint32_t slot;          /* the next one to look at */
    bool ended;
    struct bw_item item;
};

static struct bw_error *take_root(void *context, const struct bw_item *item)
{
    struct bw_tree *tree = context;
    struct bw_root_item root;
    if (item->key.type != BW_ROOT_ITEM)
        return NULL;
    BW_TRY(bw_root_item_decode(item, &root));
    *tree = (struct bw_tree){item->key.objectid, root.root, root.last_snapshot};
    return NULL;
}

static struct bw_error *find_tree(struct bw_fs *fs, uint64_t id, struct bw_tree *tree)
{
    const struct bw_item_range range = {.first = {id, BW_ROOT_ITEM, 0},
                                        .last = {id, BW_ROOT_ITEM, UINT64_MAX},
                                        .item = take_root,
                                        .context = tree};
    *tree = (struct bw_tree){0};
    if (id == BW_TREE_ROOT)
        *tree = fs->root_tree;
    else if (id == BW_TREE_CHUNK)
        *tree = fs->chunk_tree;
    else if (id == BW_TREE_REMAP && fs->superblock.remap_root.bytenr)
        *tree = (struct bw_tree){id, fs->superblock.remap_root, 0};
    else
        BW_TRY(bw_item_range_read(&fs->reader, &fs->root_tree, &range));
    return tree->id ? NULL : bw_error_create(BW_ERROR_NOT_FOUND, "there is no tree %" PRIu64, id);
}

struct bw_error *bw_items_open(struct bw_fs *fs, uint64_t tree_id, const struct bw_key *first,
                               const struct bw_key *last, struct bw_items **items)
{
    struct bw_tree tree;
    BW_TRY(find_tree(fs, tree_id, &tree));
    struct bw_items *result = calloc(1, sizeof *result);
    if (!result)
        return bw_error_no_memory();
    bw_leaf_finder_init(&result->finder, &fs->reader, &tree);
    result->at = first ? *first : (struct bw_key){0};
    result->last = last ? *last : BW_KEY_MAX;
    *items = result;
    return NULL;
}

void bw_items_close(struct bw_items *items)
{
    if (!items)
        return;
    bw_leaf_finder_free(&items->finder);
    free(items);
}

/* The key after one; false if there is none. */
static bool next_key(struct bw_key *key)
{
    if (++key->offset)
        return true;
    if (++key->type)
        return true;
    return ++key->objectid != 0;
}

/* The slot of the first item with a key of at least `key`. */
static uint32_t first_at(const struct bw_node *leaf, const struct bw_key *key)
{
    uint32_t slot = bw_node_count_until(leaf, key);
    if (!slot)
        return 0;
    const struct bw_key before = bw_leaf_key(leaf, slot - 1);
    return slot - (bw_key_compare(&before, key) == 0);
}

/* Goes to the leaf of `at`. What is lost is an error, after which the next call goes on behind it.
 */
static struct bw_error *enter_leaf(struct bw_items *items)
{
    struct bw_leaf_finder *finder = &items->finder;
    items->entered = items->at;
    BW_TRY(bw_find_leaf(finder, &items->at));
    if (finder->lost) {
        struct bw_error *error = BW_TAKE(finder->error);
        items->ended |= bw_key_compare(&finder->end, &items->entered) <= 0;
        items->at = finder->end;
        return error ? error
                     : bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 " is lost",
                                       finder->bytenr);
    }
    items->slot = first_at(&finder->leaf, &items->at);
    items->in_leaf = true;
    return NULL;
}

/* Leaves the leaf after its last item. Below a lost node it may be unknown where the leaf ends. */
static struct bw_error *leave_leaf(struct bw_items *items)
{
    struct bw_leaf_finder *finder = &items->finder;
    uint64_t lost = bw_leaf_lost_block(finder, &items->at);
    items->in_leaf = false;
    items->ended |= bw_key_compare(&finder->end, &items->entered) <= 0;
    items->at = finder->end;
    return lost ? bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 " is lost", lost) : NULL;
}

struct bw_error *bw_items_next(struct bw_items *items, const struct bw_item **item,
                               struct bw_item_location *location)
{
    const struct bw_node *leaf = &items->finder.leaf;
    *item = NULL;
    while (!items->in_leaf || items->slot >= leaf->item_count) {
        if (items->in_leaf)
            BW_TRY(leave_leaf(items));
        if (items->ended || bw_key_compare(&items->at, &items->last) > 0)
            return NULL;
        BW_TRY(enter_leaf(items));
    }
    const uint32_t slot = items->slot++;
    bool inside = bw_leaf_item(leaf, slot, &items->item);
    if (bw_key_compare(&items->item.key, &items->last) > 0) {
        items->slot = slot;
        return NULL;
    }
    items->at = items->item.key;
    items->ended |= !next_key(&items->at);
    if (!inside)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "tree block %" PRIu64 ": item %" PRIu32 " lies outside its leaf",
                               items->finder.bytenr, slot);
    const struct bw_disk_header *header = (const void *)leaf->block;
    if (location)
        *location = (struct bw_item_location){items->finder.bytenr, bw_get64(header->generation),
                                              bw_get64(header->owner), slot};
    *item = &items->item;
    return NULL;
}
