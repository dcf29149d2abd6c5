/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items that are deleted where they are. If the first item of a leaf is deleted, the nodes above it
 * get the new first key, in the same group of changes. No leaf but a root may be empty, and none
 * can be freed in place: if a leaf would have no item left, nothing is planned.
 */
#include <string.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "repair/repair.h"

/* Finds the first item that stays in the leaf of a removal. `*moves`: the removal is its first
 * item. `*found`: there is such an item, and the leaf can be read. */
static struct bw_error *find_new_first(const struct bw_repair *repair,
                                       const struct bw_repair_removals *removals,
                                       const struct bw_repair_removal *removal,
                                       struct bw_key *first, bool *moves, bool *found)
{
    struct bw_leaf_finder finder;
    struct bw_item item;
    uint32_t slot = 0;
    *found = *moves = false;
    bw_leaf_finder_init(&finder, &repair->fs->reader, &removal->tree);
    struct bw_error *error = bw_find_leaf(&finder, &removal->key);
    if (!error && !finder.lost) {
        *moves =
            bw_leaf_item(&finder.leaf, 0, &item) && bw_key_compare(&item.key, &removal->key) == 0;
        while (!*found && bw_leaf_next(&finder.leaf, &slot, &item)) {
            *found = true;
            for (size_t i = 0; i < removals->count && *found; i++)
                *found = removals->items[i].tree.id != removal->tree.id ||
                         bw_key_compare(&removals->items[i].key, &item.key) != 0;
        }
        *first = item.key;
    }
    bw_leaf_finder_free(&finder);
    return error;
}

struct bw_error *bw_repair_remove(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  const struct bw_repair_removals *removals,
                                  const struct bw_repair_removal_texts *texts, bool *is_possible)
{
    struct bw_key first;
    bool moves;
    *is_possible = true;
    for (size_t i = 0; *is_possible && i < removals->count; i++)
        BW_TRY(find_new_first(repair, removals, &removals->items[i], &first, &moves, is_possible));
    for (size_t i = 0; *is_possible && i < removals->count; i++) {
        const struct bw_repair_removal *removal = &removals->items[i];
        struct bw_repair_edit edit = {.group = repair->groups + 1,
                                      .reveals = texts->reveals,
                                      .what = texts->item,
                                      .why = strdup(texts->why),
                                      .proof = strdup(texts->proof)};
        BW_TRY(find_new_first(repair, removals, removal, &first, &moves, is_possible));
        BW_TRY(bw_repair_delete_item(repair, finding, &removal->tree, &removal->key, edit));
        if (!moves)
            continue;
        edit.what = texts->key;
        edit.why = strdup(texts->why);
        edit.proof = strdup(texts->proof);
        BW_TRY(
            bw_repair_move_first_key(repair, finding, &removal->tree, &removal->key, &first, edit));
    }
    return NULL;
}
