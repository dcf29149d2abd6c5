/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Going through the items in a range of keys, from leaf to leaf. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "graph/wind.h"
#include "xlators/classes.h"

static struct bw_key_event event_of(const struct bw_item_range *range)
{
    return (struct bw_key_event){
        {.call = range->frame.call}, range->finder.tree.id, range->first, range->last};
}

void bw_item_range_begin(struct bw_item_range *range, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree, struct bw_key first, struct bw_key last)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    *range = (struct bw_item_range){.next = first, .first = first, .last = last};
    range->frame = bw_frame_above(reader->frame, probes);
    bw_leaf_finder_init(&range->finder, reader, tree);
    range->finder.reader.frame = &range->frame;
    range->ended = bw_key_compare(&first, &last) > 0;
    range->start_time = BW_PROBE_START(probes, key__search__done);
    const struct bw_key_event event = event_of(range);
    BW_PROBE(probes, key__search__start, key_start, &event);
}

static void lose_item(struct bw_item_range *range)
{
    const struct bw_key *key = &range->item.key;
    range->lost = BW_LOST_ITEM;
    range->error =
        bw_error_create(BW_ERROR_CORRUPT,
                        "tree %" PRIu64 ": item (%" PRIu64 " %u %" PRIu64 ") lies outside its leaf",
                        range->finder.tree.id, key->objectid, key->type, key->offset);
}

/* The keys of a leaf may be out of order, so all of them are looked at. */
static bool next_in_leaf(struct bw_item_range *range)
{
    const struct bw_node *leaf = &range->finder.leaf;
    while (range->slot < leaf->item_count) {
        bool inside = bw_leaf_item(leaf, range->slot++, &range->item);
        if (bw_key_compare(&range->item.key, &range->first) < 0 ||
            bw_key_compare(&range->item.key, &range->last) > 0)
            continue;
        if (!inside)
            lose_item(range);
        return true;
    }
    return false;
}

/* Reports what is lost here; false if an earlier step has reported the same block. */
static bool lose_block(struct bw_item_range *range, uint64_t bytenr)
{
    struct bw_leaf_finder *finder = &range->finder;
    struct bw_error **error = finder->error ? &finder->error : &finder->node_error;
    if (range->lost == bytenr && !*error)
        return false;
    range->lost = bytenr;
    range->error =
        *error ? BW_TAKE(*error)
               : bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 " is lost", bytenr);
    return true;
}

static bool enter_leaf(struct bw_item_range *range)
{
    struct bw_leaf_finder *finder = &range->finder;
    range->failure = bw_find_leaf(finder, &range->next);
    range->in_leaf = !range->failure;
    range->slot = 0;
    return range->in_leaf && finder->lost && lose_block(range, finder->bytenr);
}

/* Goes on to the keys after the leaf; true if there may be lost ones between its last one and
 * those. */
static bool leave_leaf(struct bw_item_range *range)
{
    const struct bw_leaf_finder *finder = &range->finder;
    const struct bw_key end = finder->end, no_limit = BW_KEY_MAX;
    range->in_leaf = false;
    range->next = end;
    range->ended = bw_key_compare(&end, &range->last) > 0 || bw_key_compare(&end, &no_limit) == 0;
    bool gap = !finder->lost && bw_key_compare(&finder->unknown, &end) < 0 &&
               bw_key_compare(&finder->unknown, &range->last) <= 0;
    return gap && lose_block(range, bw_leaf_lost_block(finder, &finder->unknown));
}

bool bw_item_range_next(struct bw_item_range *range)
{
    bw_error_free(BW_TAKE(range->error));
    while (!range->failure) {
        if (range->in_leaf && !range->finder.lost && next_in_leaf(range))
            return true;
        if (range->in_leaf && leave_leaf(range))
            return true;
        if (range->ended)
            return false;
        if (enter_leaf(range))
            return true;
    }
    return false;
}

struct bw_error *bw_item_range_end(struct bw_item_range *range, struct bw_error *error)
{
    struct bw_probes *probes = bw_xlator_probes(range->finder.reader.top);
    struct bw_key_event event = event_of(range);
    if (range->failure)
        bw_error_free(error);
    error = range->failure ? range->failure : error;
    event.event.error = error;
    event.event.ns = range->start_time ? bw_probes_now(probes) - range->start_time : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
    bw_error_free(range->error);
    bw_leaf_finder_free(&range->finder);
    return error;
}
