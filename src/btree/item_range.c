/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A scan whose leaves are looked through for the items in a range of keys. */
#include "btree/item_range.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "btree/scan.h"

struct state {
    const struct bw_item_range *range;
    uint64_t tree;
};

static struct bw_error *lose_item(const struct state *state, const struct bw_key *key)
{
    struct bw_error *error =
        bw_error_create(BW_ERROR_CORRUPT,
                        "tree %" PRIu64 ": item (%" PRIu64 " %u %" PRIu64 ") lies outside its leaf",
                        state->tree, key->objectid, key->type, key->offset);
    if (!state->range->lost)
        return error;
    state->range->lost(state->range->context, BW_LOST_ITEM, error);
    return NULL;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    const struct state *state = context;
    const struct bw_item_range *range = state->range;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        bool inside = bw_leaf_item(leaf, slot, &item);
        if (bw_key_compare(&item.key, &range->first) < 0 ||
            bw_key_compare(&item.key, &range->last) > 0)
            continue;
        BW_TRY(inside ? range->item(range->context, &item) : lose_item(state, &item.key));
    }
    return NULL;
}

static void lose_block(void *context, const struct bw_block_pointer *pointer,
                       struct bw_error *error)
{
    const struct state *state = context;
    state->range->lost(state->range->context, pointer->bytenr, error);
}

struct bw_error *bw_item_range_read(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                                    const struct bw_item_range *range)
{
    struct state state = {range, tree->id};
    const struct bw_scan scan = {.first = range->first,
                                 .last = range->last,
                                 .adopt = true,
                                 .leaf = take_leaf,
                                 .lost = range->lost ? lose_block : NULL,
                                 .context = &state};
    return bw_tree_scan(reader, tree, &scan);
}
