/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items that are deleted where they are. If the first item of a leaf is deleted, the nodes above it
 * get the new first key, in the same group of changes. No leaf but a root may be empty, and none
 * can be freed in place. So a leaf that would have no item left takes over one of its neighbour:
 * the last item before it, or the first item after it. If both neighbours have only one, the leaf
 * before it gives its own, takes over one of the leaf before that, and so on. If none there has
 * two, nothing is planned.
 */

#include "base/cleanup.h"
#include "base/search.h"
#include "btree/find_leaf.h"
#include "ondisk/disk_items.h"
#include "repair/repair.h"

/* A leaf without an item, and the item of a neighbour that it takes over. */
struct takeover {
    struct bw_tree tree;
    uint64_t leaf;
    struct bw_key old, item; /* a key that belongs in the leaf; the key of the item */
};

BW_VECTOR(takeovers, struct takeover);

/* Counts the items of a leaf that stay, and copies the first and last of their keys. */
static uint32_t count_staying(const struct bw_repair_removals *removals, const struct bw_tree *tree,
                              const struct bw_node *leaf, struct bw_key *first, struct bw_key *last)
{
    struct bw_item item;
    uint32_t count = 0;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        bool stays = true;
        for (size_t i = 0; i < removals->count && stays; i++)
            stays = removals->items[i].tree.id != tree->id ||
                    bw_key_compare(&removals->items[i].key, &item.key) != 0;
        if (!stays)
            continue;
        if (!count++)
            *first = item.key;
        *last = item.key;
    }
    return count;
}

static int compare_removals(const void *first, const void *second)
{
    const struct bw_repair_removal *a = first, *b = second;
    if (a->tree.id != b->tree.id)
        return a->tree.id < b->tree.id ? -1 : 1;
    return bw_key_compare(&a->key, &b->key);
}

/* If the leaf of removal `*next - 1` would be empty, chooses the item that it takes over, which
 * becomes one more removal, in its order. Leaves before it may be empty then: they have their turn
 * later. `*next` becomes the number of removals before this one. */
static struct bw_error *fill_if_empty(struct bw_leaf_finder *finder,
                                      struct bw_repair_removals *removals, size_t *next,
                                      struct takeovers *takeovers, bool *is_possible)
{
    static const struct bw_key smallest = {0, 0, 0};
    const struct bw_repair_removal removal = removals->items[--*next];
    struct takeover takeover = {.tree = removal.tree, .old = removal.key};
    struct bw_key first, last;
    bw_leaf_finder_set_tree(finder, &removal.tree);
    BW_TRY(bw_find_leaf(finder, &removal.key));
    takeover.leaf = finder->bytenr;
    *is_possible = !finder->lost;
    const bool is_known =
        takeovers->count && takeovers->items[takeovers->count - 1].leaf == takeover.leaf;
    if (!*is_possible || is_known ||
        count_staying(removals, &removal.tree, &finder->leaf, &first, &last))
        return NULL;

    const struct bw_key end = finder->end;
    struct bw_key begin = finder->first;
    uint32_t count = 0;
    while (!count && !finder->lost && bw_key_compare(&begin, &smallest) > 0) {
        const struct bw_key before = bw_key_before(begin);
        BW_TRY(bw_find_leaf(finder, &before));
        if (!finder->lost)
            count = count_staying(removals, &removal.tree, &finder->leaf, &first, &last);
        begin = finder->first;
    }
    takeover.item = last;
    if (count < 2) {
        struct bw_key other;
        uint32_t later = 0;
        BW_TRY(bw_find_leaf(finder, &end));
        if (!finder->lost && finder->bytenr != takeover.leaf)
            later = count_staying(removals, &removal.tree, &finder->leaf, &first, &other);
        if (later >= 2)
            takeover.item = first;
        *is_possible = count || later >= 2;
    }
    if (!*is_possible)
        return NULL;
    const struct bw_repair_removal taken = {removal.tree, takeover.item};
    const size_t at =
        BW_FIRST_INDEX(k, removals->count, compare_removals(&removals->items[k], &taken) >= 0);
    *next += at <= *next;
    BW_TRY(bw_repair_removals_insert(removals, at, taken));
    return takeovers_push(takeovers, takeover);
}

/* Plans a leaf with the item that it takes over. */
static struct bw_error *plan_takeover(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      const struct takeover *takeover,
                                      const struct bw_repair_removal_texts *texts)
{
    const uint32_t size = repair->fs->superblock.nodesize;
    const uint8_t *contents;
    BW_TRY(bw_repair_block_contents(repair, takeover->leaf, &contents));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, repair->fs, &takeover->tree, takeover->item, takeover->item);
    const struct bw_item *item = bw_fs_items_next(&items);
    BW_TRY(bw_fs_items_error(&items));
    BW_AUTO_FREE uint8_t *leaf = calloc(1, size);
    if (!leaf)
        return bw_error_no_memory();
    if (!item || !contents)
        return bw_error_create(BW_ERROR_CORRUPT, "a leaf cannot be read again");
    struct bw_repair_leaf made = bw_repair_leaf_begin(leaf, size, contents);
    bw_repair_leaf_add(&made, &item->key, item->data, item->size);
    struct bw_repair_edit edit = {.group = repair->groups + 1,
                                  .reveals = texts->reveals,
                                  .what = "leaf that takes over an item of its neighbour",
                                  .why = texts->why,
                                  .proof = texts->proof};
    BW_TRY(bw_repair_edit_contents(repair, finding, takeover->leaf, leaf, edit));
    edit.what = texts->key;
    return bw_repair_move_first_key(repair, finding, &takeover->tree, &takeover->old,
                                    &takeover->item, edit);
}

struct bw_error *bw_repair_remove(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  struct bw_repair_removals *removals,
                                  const struct bw_repair_removal_texts *texts, bool *is_possible)
{
    const size_t count = removals->count;
    *is_possible = true;
    if (!count)
        return NULL;

    /* From the last leaf to the first: so several empty ones take over items in their order. */
    BW_SCOPED(takeovers) struct takeovers takeovers = {0};
    qsort(removals->items, count, sizeof *removals->items, compare_removals);
    BW_SCOPED(bw_leaf_finder) struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, &repair->fs->reader, &removals->items[0].tree);
    for (size_t next = count; next && *is_possible;)
        BW_TRY(fill_if_empty(&finder, removals, &next, &takeovers, is_possible));

    /* The deletions in leaves that are not replaced, and the leaves that are. */
    for (size_t i = 0; i < removals->count && *is_possible; i++) {
        const struct bw_repair_removal *removal = &removals->items[i];
        struct bw_key first, last;
        struct bw_item item;
        bool is_replaced = false;
        bw_leaf_finder_set_tree(&finder, &removal->tree);
        BW_TRY(bw_find_leaf(&finder, &removal->key));
        for (size_t k = 0; k < takeovers.count; k++)
            is_replaced |= takeovers.items[k].leaf == finder.bytenr;
        if (is_replaced)
            continue;
        struct bw_repair_edit edit = {.group = repair->groups + 1,
                                      .reveals = texts->reveals,
                                      .what = texts->item,
                                      .why = texts->why,
                                      .proof = texts->proof};
        BW_TRY(bw_repair_delete_item(repair, finding, &removal->tree, &removal->key, edit));
        if (!bw_leaf_item(&finder.leaf, 0, &item) || bw_key_compare(&item.key, &removal->key) != 0)
            continue;
        count_staying(removals, &removal->tree, &finder.leaf, &first, &last);
        edit.what = texts->key;
        BW_TRY(
            bw_repair_move_first_key(repair, finding, &removal->tree, &removal->key, &first, edit));
    }
    for (size_t i = 0; i < takeovers.count && *is_possible; i++)
        BW_TRY(plan_takeover(repair, finding, &takeovers.items[i], texts));
    return NULL;
}
