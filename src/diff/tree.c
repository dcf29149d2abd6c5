/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of one of two subvolumes that are compared: what is lost is told from what is not
 * there. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "diff/diff.h"

void bw_diff_tree_init(struct bw_diff_tree *tree, const struct bw_diff_side *side)
{
    *tree = (struct bw_diff_tree){.fs = side->fs, .subvolume = side->subvolume};
    bw_leaf_finder_init(&tree->finder, &side->fs->reader, &side->subvolume->tree);
    bw_leaf_finder_init(&tree->climb, &side->fs->reader, &side->subvolume->tree);
}

void bw_diff_tree_free(struct bw_diff_tree *tree)
{
    bw_leaf_finder_free(&tree->finder);
    bw_leaf_finder_free(&tree->climb);
    bw_map_free(&tree->part_of);
    free(tree->parts);
    bw_buffer_free(&tree->names);
}

/* Passes on the items of the finder's leaf. */
static struct bw_error *take_leaf(struct bw_diff_tree *tree, const struct bw_leaf_finder *finder,
                                  const struct bw_key *first, const struct bw_key *last,
                                  bw_item_taker *take, void *context, bool *lost)
{
    const struct bw_node *leaf = &finder->leaf;
    uint32_t slot = finder->ordered ? bw_node_count_until(leaf, first) : 0;
    for (slot -= slot > 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        bool inside = bw_leaf_item(leaf, slot, &item);
        if (finder->ordered && bw_key_compare(&item.key, last) > 0)
            return NULL;
        if (bw_key_compare(&item.key, first) < 0 || bw_key_compare(&item.key, last) > 0)
            continue;
        if (inside) {
            BW_TRY(take(context, &item));
            continue;
        }
        *lost = true;
        bw_fs_report_lost(tree->fs, finder->bytenr,
                          bw_error_create(BW_ERROR_CORRUPT,
                                          "tree block %" PRIu64 ": item %" PRIu32
                                          " lies outside its leaf",
                                          finder->bytenr, slot));
    }
    return NULL;
}

struct bw_error *bw_diff_items(struct bw_diff_tree *tree, struct bw_leaf_finder *finder,
                               struct bw_key first, struct bw_key last, bw_item_taker *take,
                               void *context, bool *lost)
{
    const struct bw_key no_limit = BW_KEY_MAX;
    bool missing = false;
    for (struct bw_key at = first;; at = finder->end) {
        BW_TRY(bw_fs_find_leaf(tree->fs, finder, &at));
        missing |= finder->lost || (bw_key_compare(&finder->unknown, &finder->end) < 0 &&
                                    bw_key_compare(&finder->unknown, &last) <= 0);
        if (!finder->lost)
            BW_TRY(take_leaf(tree, finder, &first, &last, take, context, &missing));
        if (bw_key_compare(&finder->end, &last) > 0 || bw_key_compare(&finder->end, &no_limit) == 0)
            break;
    }
    *lost |= missing;
    tree->lost |= missing;
    return NULL;
}

/* An inode that is being read. */
struct reading {
    struct bw_diff_file *file;
    bool found;
};

static struct bw_error *take_inode(void *context, const struct bw_item *item)
{
    struct reading *reading = context;
    struct bw_diff_file *file = reading->file;
    reading->found = true;
    if (bw_inode_decode(item, &file->inode)) {
        file->exists = file->inode.link_count || file->number == BW_SUBVOLUME_ROOT_INODE;
        return NULL;
    }
    file->lost = true;
    bw_fs_report(file->tree->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "tree %" PRIu64 ": inode %" PRIu64 " cannot be read",
                                 file->tree->subvolume->tree.id, file->number));
    return NULL;
}

struct bw_error *bw_diff_file_read(struct bw_diff_tree *tree, uint64_t number,
                                   struct bw_diff_file *file)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct reading reading = {.file = file};
    bool lost = false;
    *file = (struct bw_diff_file){.tree = tree, .number = number};
    BW_TRY(bw_diff_items(tree, &tree->finder, key, key, take_inode, &reading, &lost));
    file->lost |= lost && !reading.found;
    return NULL;
}
