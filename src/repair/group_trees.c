/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Block groups in two trees: a conversion to or from a block group tree moves their items one after
 * the other, and no mount accepts its flag. Both directions end with the block group tree: the
 * items that are in the extent tree are moved to it, in place. Nothing is allocated or freed, so
 * the free space tree stays valid, without which no mount accepts a block group tree.
 *
 * If all items are in the block group tree, and the superblock does not say so yet, it gets the
 * bit.
 *
 * The proof: the items of both trees together are the block groups of all chunks, each of them
 * once. The check of the trial compares their sizes with the extents. All items must fit in one
 * leaf, and no leaf of the extent tree may be left without an item (removals.c).
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "ondisk/disk_items.h"
#include "repair/repair.h"

struct group {
    uint64_t logical, length;
    struct bw_disk_block_group item;
};

BW_VECTOR(groups, struct group);

static void end_conversion(const struct bw_repair *repair, struct bw_disk_superblock *super)
{
    (void)repair;
    super->flags = bw_put64(bw_get64(super->flags) & ~BW_SUPER_FLAG_CHANGING_GROUP_TREE);
    super->compat_ro_flags =
        bw_put64(bw_get64(super->compat_ro_flags) | BW_COMPAT_RO_BLOCK_GROUP_TREE);
}

/* Adds the block groups in a tree. `*is_whole`: all items have the right size. */
static struct bw_error *add_groups(struct bw_repair *repair, const struct bw_tree *tree,
                                   struct groups *groups, bool *is_whole)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, repair->fs, tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct group group = {.logical = item->key.objectid, .length = item->key.offset};
        if (item->key.type != BW_BLOCK_GROUP_ITEM)
            continue;
        *is_whole &= item->size == sizeof group.item;
        if (item->size == sizeof group.item)
            memcpy(&group.item, item->data, sizeof group.item);
        BW_TRY(groups_push(groups, group));
    }
    return bw_fs_items_error(&items);
}

/* Why these groups cannot be in the tree, to which some are `moved`; NULL: they can. */
static struct bw_error *find_obstacle(struct bw_repair *repair, const struct bw_tree *tree,
                                      const struct groups *groups, bool moved,
                                      const char **obstacle)
{
    const struct bw_superblock *superblock = &repair->fs->superblock;
    const uint64_t needed = BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    const size_t room = superblock->nodesize - sizeof(struct bw_disk_header),
                 size = sizeof(struct bw_disk_item) + sizeof(struct bw_disk_block_group);
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(repair->fs, &chunks));
    bool is_same = chunks.count == groups->count;
    for (size_t i = 0; is_same && i < chunks.count; i++)
        is_same = chunks.items[i].logical == groups->items[i].logical &&
                  chunks.items[i].length == groups->items[i].length;
    if (!is_same)
        *obstacle = "their items do not match the chunks";
    else if (moved && (tree->root.level || groups->count > room / size))
        *obstacle = "they do not fit in one leaf of the block group tree";
    else if ((superblock->compat_ro_flags & needed) != needed ||
             !(superblock->incompat_flags & BW_INCOMPAT_NO_HOLES))
        *obstacle = "a block group tree needs a valid free space tree, and files without holes";
    return NULL;
}

/* Plans the leaf of the block group tree with all groups. */
static struct bw_error *plan_leaf(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  uint64_t logical, const struct groups *groups,
                                  const struct bw_repair_removal_texts *texts)
{
    const uint32_t size = repair->fs->superblock.nodesize;
    const uint8_t *contents;
    BW_AUTO_FREE uint8_t *leaf = calloc(1, size);
    if (!leaf)
        return bw_error_no_memory();
    BW_TRY(bw_repair_block_contents(repair, logical, &contents));
    if (!contents)
        return NULL;
    struct bw_repair_leaf made = bw_repair_leaf_begin(leaf, size, contents);
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = &groups->items[i];
        const struct bw_key key = {group->logical, BW_BLOCK_GROUP_ITEM, group->length};
        bw_repair_leaf_add(&made, &key, &group->item, sizeof group->item);
    }
    return bw_repair_edit_contents(repair, finding, logical, leaf,
                                   (struct bw_repair_edit){.group = repair->groups + 1,
                                                           .reveals = true,
                                                           .what = "leaf of the block group tree",
                                                           .why = texts->why,
                                                           .proof = texts->proof});
}

struct bw_error *bw_repair_plan_groups(struct bw_repair *repair)
{
    static const struct bw_repair_removal_texts texts = {
        .item = "block group in the extent tree",
        .key = "key of a leaf with block groups in the extent tree",
        .why = "a conversion to or from a block group tree was interrupted",
        .proof = "the items of both trees are the block groups of all chunks",
        .reveals = true};
    struct bw_repair_finding *finding = NULL;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (bw_repair_is(&repair->findings.items[i], "half-done"))
            finding = &repair->findings.items[i];
    if (!finding || repair->is_made || !repair->fs->extent_tree.id ||
        !(repair->fs->superblock.flags & BW_SUPER_FLAG_CHANGING_GROUP_TREE))
        return NULL;

    /* The groups in both trees. Those in the extent tree come first. */
    struct bw_tree tree;
    BW_TRY(bw_repair_find_tree(repair->fs, BW_BLOCK_GROUP_TREE, &tree));
    BW_SCOPED(groups) struct groups groups = {0};
    BW_SCOPED(bw_repair_removals) struct bw_repair_removals removals = {0};
    bool is_possible = true;
    if (!tree.id)
        return NULL;
    BW_TRY(add_groups(repair, &repair->fs->extent_tree, &groups, &is_possible));
    for (size_t i = 0; i < groups.count; i++)
        BW_TRY(bw_repair_removals_push(
            &removals, (struct bw_repair_removal){repair->fs->extent_tree,
                                                  {groups.items[i].logical, BW_BLOCK_GROUP_ITEM,
                                                   groups.items[i].length}}));
    BW_TRY(add_groups(repair, &tree, &groups, &is_possible));
    const bool is_begun = removals.count < groups.count;
    if (!removals.count && repair->fs->superblock.compat_ro_flags & BW_COMPAT_RO_BLOCK_GROUP_TREE)
        return NULL; /* only the flag is wrong (conversions.c) */
    groups_sort(&groups, bw_compare_first);

    const char *obstacle = is_possible ? NULL : "an item of them has a wrong size";
    if (!obstacle)
        BW_TRY(find_obstacle(repair, &tree, &groups, removals.count, &obstacle));
    if (!obstacle) {
        BW_TRY(bw_repair_remove(repair, finding, &removals, &texts, &is_possible));
        if (!is_possible)
            obstacle = "a leaf of the extent tree would have no item left without them";
    }
    if (obstacle && is_begun)
        bw_fs_report_once(repair->given, BW_WARNING,
                          bw_error_create(BW_ERROR_UNSUPPORTED,
                                          "a conversion of the block groups is not ended: they are "
                                          "in two trees, and %s",
                                          obstacle));
    if (obstacle)
        return NULL;
    if (removals.count)
        BW_TRY(plan_leaf(repair, finding, tree.root.bytenr, &groups, &texts));
    BW_TRY(bw_repair_plan_supers(repair, "half-done", end_conversion,
                                 "the end of an interrupted change",
                                 "with its flag, no mount succeeds", texts.proof));

    /* Findings of other changes look the same, and remain for the next round (conversions.c). */
    const uint64_t others = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2 |
                            BW_SUPER_FLAG_CHANGING_DATA_CSUM | BW_SUPER_FLAG_CHANGING_META_CSUM;
    for (size_t i = 0; i < repair->findings.count; i++)
        if (bw_repair_is(&repair->findings.items[i], "half-done"))
            repair->findings.items[i].planned = !(repair->fs->superblock.flags & others);
    return NULL;
}
