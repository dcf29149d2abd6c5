/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A root tree with flipped bits in keys. The root block of a tree names the tree, so it shows what
 * the key of a root item must be. Everything is copied into a root tree in memory, in which all
 * items are in order.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "fs/fs.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "rescue/rescue.h"

BW_VECTOR(key_list, struct bw_key);

struct correction {
    struct bw_fs *fs;
    struct key_list keys; /* of all items, in their order on disk */
    size_t at;            /* the next item */
    size_t corrected;
    struct bw_tree_editor tree;
};

/* Whether one bit makes a key from the key of a root item. */
static bool is_flipped(const struct bw_key *key, uint64_t tree)
{
    return __builtin_popcountll(tree ^ key->objectid) +
               __builtin_popcount((unsigned)(key->type ^ BW_ROOT_ITEM)) ==
           1;
}

/* Whether the key of an item cannot be right where it is, or one bit makes it from the key of a
 * tree that seems to be missing. Every file system has these trees. Only a root item has this size.
 */
static bool is_doubtful(const struct correction *correction, const struct bw_item *item)
{
    const size_t at = correction->at;
    const struct bw_key *key = &item->key, *before = at ? &correction->keys.items[at - 1] : NULL;
    const struct bw_key *after =
        at + 1 < correction->keys.count ? &correction->keys.items[at + 1] : NULL;
    const struct bw_fs *fs = correction->fs;
    if (item->size != sizeof(struct bw_disk_root_item))
        return false;
    if (key->type != BW_ROOT_ITEM || (before && bw_key_compare(before, key) >= 0))
        return true;
    if (after && (bw_key_compare(key, after) >= 0 ||
                  (after->type == BW_ROOT_BACKREF && after->objectid != key->objectid)))
        return true;
    return (!bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME) && is_flipped(key, BW_TOP_SUBVOLUME)) ||
           (!fs->extent_tree.id && is_flipped(key, BW_EXTENT_TREE)) ||
           (!fs->checksum_trees.count && is_flipped(key, BW_CSUM_TREE));
}

/* The tree to whose root block an item leads; 0 if that is unknown. */
static struct bw_error *find_owner(struct bw_fs *fs, const struct bw_item *item, uint64_t *owner)
{
    struct bw_root_item root;
    struct bw_tree_block *block = NULL;
    struct bw_error *error = bw_root_item_decode(item, &root);
    *owner = 0;
    if (!error)
        error = bw_tree_block_read(fs, root.root.bytenr, &block);
    if (!error) {
        const struct bw_tree_block_header header = bw_tree_block_header(block);
        *owner = header.generation == root.root.generation ? header.owner : 0;
    }
    bw_tree_block_free(block);
    return bw_error_tolerate(error);
}

/* Copies an item, with the right key. */
static struct bw_error *put_item(struct correction *correction, const struct bw_item *item)
{
    struct bw_key key = item->key;
    uint64_t owner = 0;
    if (is_doubtful(correction, item))
        BW_TRY(find_owner(correction->fs, item, &owner));
    correction->at++;
    if (owner && is_flipped(&key, owner)) {
        key.objectid = owner;
        key.type = BW_ROOT_ITEM;
        correction->corrected++;
        bw_fs_report(correction->fs, BW_WARNING,
                     bw_error_advise(bw_error_create(BW_ERROR_CORRUPT,
                                                     "root tree: a bit in the key of the root item "
                                                     "of tree %" PRIu64 " is flipped",
                                                     owner),
                                     "'repair' corrects it"));
    }
    return bw_edit_put(&correction->tree, &key, item->data, item->size);
}

static void correction_free(struct correction *correction)
{
    key_list_free(&correction->keys);
    bw_editor_destroy(&correction->tree);
}

struct bw_error *bw_rescue_root_keys(struct bw_fs *fs, bool *corrected)
{
    BW_SCOPED(correction) struct correction correction = {.fs = fs};
    *corrected = false;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_scan(&items, fs, &fs->root_tree, "root");
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        BW_TRY(key_list_push(&correction.keys, item->key));
    BW_TRY(bw_fs_items_error(&items));

    BW_TRY(bw_rescue_begin_tree(fs, BW_ROOT_TREE, &correction.tree));
    BW_SCOPED(bw_fs_items) struct bw_fs_items again;
    bw_fs_items_scan(&again, fs, &fs->root_tree, "root");
    for (const struct bw_item *item; (item = bw_fs_items_next(&again));)
        BW_TRY(bw_fs_report_damage(fs, put_item(&correction, item)));
    BW_TRY(bw_fs_items_error(&again));
    *corrected = correction.corrected;
    if (!correction.corrected)
        return NULL;
    fs->damaged_root_tree = fs->root_tree;
    fs->root_tree = correction.tree.tree;
    fs->is_remade = true;
    return NULL;
}
