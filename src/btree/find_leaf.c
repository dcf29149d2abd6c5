/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lookups: the descent to the leaf of a key, and iteration over the items in a range of keys.
 *
 * A finder keeps the leaf that it found last, the node above it, and the root. If a key belongs
 * below that node, the search begins there; otherwise at the root. It always ends, because the
 * level decreases by one with each step. If searches advance from leaf to leaf, the next leaves are
 * announced.
 *
 * A lost block is an answer, not a failure: the finder then has the keys that are lost with it.
 * Below a lost node, it uses the leaves that recovery has found without the tree (adopted leaves);
 * between these, keys are lost unless the list of leaves is complete.
 *
 * A leaf whose keys are out of order is read completely instead of searched, so the result does not
 * depend on the previous searches.
 */
#include "btree/find_leaf.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/wind.h"
#include "ondisk/tree_title.h"

/* Number of leaves announced at a time. */
enum { ADVISE_LEAVES = 16 };

void bw_leaf_finder_init(struct bw_leaf_finder *finder, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree)
{
    *finder = (struct bw_leaf_finder){.reader = *reader, .tree = *tree};
}

static void forget_leaf(struct bw_leaf_finder *finder)
{
    bw_error_free(finder->error);
    finder->error = NULL;
    finder->found = finder->lost = false;
}

void bw_leaf_finder_set_tree(struct bw_leaf_finder *finder, const struct bw_tree *tree)
{
    bool same = finder->tree.id == tree->id && finder->tree.root.bytenr == tree->root.bytenr &&
                finder->tree.root.generation == tree->root.generation;
    finder->tree = *tree;
    if (same)
        return;
    forget_leaf(finder);
    finder->has_above = finder->has_root = false;
    finder->adopted = NULL;
    finder->advised = finder->previous_end = (struct bw_key){0};
}

void bw_leaf_finder_free(struct bw_leaf_finder *finder)
{
    forget_leaf(finder);
    bw_error_free(BW_TAKE(finder->node_error));
    free(finder->block);
    free(finder->node);
    free(finder->root);
    finder->block = finder->node = finder->root = NULL;
    finder->has_above = finder->has_root = false;
    finder->adopted = NULL;
}

static bool contains_key(const struct bw_key *first, const struct bw_key *end,
                         const struct bw_key *key)
{
    return bw_key_compare(first, key) <= 0 && bw_key_compare(key, end) < 0;
}

/* Announces the next leaves, if that was not done before and the search continues at the next leaf,
 * or skips only one. Otherwise it may jump again, and the next leaves may not be needed. */
static void advise_leaves(struct bw_leaf_finder *finder, const struct bw_node *node, uint32_t slot)
{
    struct bw_range ranges[ADVISE_LEAVES];
    size_t count = 0;
    const struct bw_key next = bw_node_key(node, slot);
    if (bw_key_compare(&next, &finder->advised) < 0)
        return;
    bool is_sequential = bw_key_compare(&next, &finder->previous_end) == 0;
    if (slot && !is_sequential) {
        const struct bw_key skipped = bw_node_key(node, slot - 1);
        is_sequential = bw_key_compare(&skipped, &finder->previous_end) == 0;
    }
    if (!is_sequential)
        return;
    for (uint32_t i = slot; i < node->item_count && count < ADVISE_LEAVES; i++)
        ranges[count++] =
            (struct bw_range){bw_node_pointer_at(node, i).bytenr, finder->reader.nodesize};
    finder->advised = finder->end;
    if (slot + count < node->item_count)
        finder->advised = bw_node_key(node, slot + (uint32_t)count);
    if (count > 1)
        bw_blocks_advise(&finder->reader, ranges, count);
}

static void set_range(struct bw_leaf_finder *finder, const struct bw_key *first,
                      const struct bw_block_pointer *pointer)
{
    finder->bytenr = pointer->bytenr;
    finder->first = *first;
    finder->end = finder->unknown = pointer->expectation.end_key;
}

static bool is_root_above(const struct bw_leaf_finder *finder, uint8_t level)
{
    return level > 1 && level == finder->tree.root.level;
}

/* Reads the block of a pointer into one of the buffers; NULL if memory runs out. */
static uint8_t *read_block(struct bw_leaf_finder *finder, const struct bw_block_pointer *pointer)
{
    const uint8_t level = pointer->expectation.level;
    uint8_t **buffer = &finder->node;
    if (!level)
        buffer = &finder->block;
    else if (is_root_above(finder, level))
        buffer = &finder->root;
    if (!*buffer)
        *buffer = bw_block_buffer(&finder->reader, 1);
    if (*buffer)
        finder->error = bw_block_read(&finder->reader, pointer, *buffer);
    return *buffer;
}

struct bw_key bw_key_after(struct bw_key key)
{
    key.offset++;
    if (key.offset == 0)
        key.type++;
    if (key.offset == 0 && key.type == 0)
        key.objectid++;
    return key;
}

struct bw_key bw_key_before(struct bw_key key)
{
    if (key.offset--)
        return key;
    if (!key.type--)
        key.objectid--;
    return key;
}

/* Leaves out the last items if their keys are not below the end of the leaf: whatever they were is
 * lost, and the next leaves may have the same keys. */
static void cut_leaf(struct bw_leaf_finder *finder)
{
    const uint32_t left = bw_leaf_count_below(&finder->leaf, &finder->end);
    if (left == finder->leaf.item_count)
        return;
    finder->leaf.item_count = left;
    finder->unknown = bw_key_after(bw_leaf_key(&finder->leaf, left - 1));
}

static struct bw_error *end_descent(struct bw_leaf_finder *finder)
{
    finder->lost = finder->error;
    if (finder->lost && finder->error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(finder->error);
    finder->found = true;
    if (finder->lost)
        return NULL;
    finder->leaf = bw_node_view(finder->block, finder->reader.nodesize);
    finder->ordered = true;
    struct bw_key before = {0};
    for (uint32_t slot = 0; slot < finder->leaf.item_count && finder->ordered; slot++) {
        const struct bw_key key = bw_leaf_key(&finder->leaf, slot);
        finder->ordered = !slot || bw_key_compare(&before, &key) < 0;
        before = key;
    }
    if (finder->ordered)
        cut_leaf(finder);
    return NULL;
}

/* Finds the adopted leaf of a key that belongs below the lost node. */
static struct bw_error *find_adopted(struct bw_leaf_finder *finder, const struct bw_key *key)
{
    const struct bw_adopted *adopted = finder->adopted;
    const struct bw_tree_block_expectation *node = &finder->lost_node.expectation;
    const size_t until = bw_adopted_until(adopted, key);
    const struct bw_adopted_leaf *leaf = NULL, *next = NULL;
    if (until)
        leaf = &adopted->leaves.items[until - 1];
    if (until < adopted->leaves.count)
        next = &adopted->leaves.items[until];
    const bool is_inside = leaf && bw_key_compare(key, &leaf->pointer.expectation.end_key) < 0;
    const bool ends_here =
        next && bw_key_compare(&next->pointer.expectation.first_key, &node->end_key) < 0;
    if (!is_inside && !(ends_here && adopted->complete)) {
        set_range(finder, &node->first_key, &finder->lost_node);
        if (ends_here)
            finder->end = next->pointer.expectation.first_key;
        finder->lost = finder->found = true;
        return NULL;
    }

    /* If the list is complete, the first leaf also stands for the keys before it. */
    const struct bw_adopted_leaf *chosen = is_inside ? leaf : next;
    set_range(finder, is_inside ? &leaf->pointer.expectation.first_key : &node->first_key,
              &chosen->pointer);
    if (!read_block(finder, &chosen->pointer))
        return bw_error_no_memory();
    if (!adopted->complete)
        finder->unknown = bw_key_after(chosen->last_key);
    return end_descent(finder);
}

/* Descends from a block whose keys begin at `first`. */
static struct bw_error *descend_from(struct bw_leaf_finder *finder, struct bw_block_pointer pointer,
                                     struct bw_key first, bool is_read, const struct bw_key *key)
{
    for (;;) {
        uint8_t level = pointer.expectation.level;
        set_range(finder, &first, &pointer);
        if (!is_read && !read_block(finder, &pointer))
            return bw_error_no_memory();
        is_read = false;
        if (finder->error && level && finder->error->code != BW_ERROR_NO_MEMORY) {
            /* Adopted leaves replace a lost node; without any, all keys below it are lost. */
            const struct bw_adopted *adopted = NULL;
            BW_TRY(bw_adopted_find(&finder->reader, &finder->tree, pointer.bytenr, &adopted));
            if (adopted) {
                bw_error_free(finder->node_error);
                finder->node_error = BW_TAKE(finder->error);
                finder->adopted = adopted;
                finder->lost_node = pointer;
                finder->lost_node.expectation.first_key = first;
                return find_adopted(finder, key);
            }
        }
        if (finder->error || level == 0)
            return end_descent(finder);
        const bool is_root = is_root_above(finder, level);
        struct bw_node node =
            bw_node_view(is_root ? finder->root : finder->node, finder->reader.nodesize);
        finder->has_root |= is_root;
        finder->has_above = level == 1;
        finder->above = pointer;
        finder->above.expectation.first_key = first;
        uint32_t slot = bw_child_slot(&node, key);
        if (slot)
            first = bw_node_key(&node, slot);
        if (level == 1)
            advise_leaves(finder, &node, slot);
        pointer = bw_tree_child_pointer(&pointer, &node, slot);
    }
}

struct bw_error *bw_find_leaf(struct bw_leaf_finder *finder, const struct bw_key *key)
{
    if (finder->found && contains_key(&finder->first, &finder->end, key))
        return NULL;
    if (finder->found)
        finder->previous_end = finder->end;
    forget_leaf(finder);
    const struct bw_tree_block_expectation *lost = &finder->lost_node.expectation;
    if (finder->adopted && contains_key(&lost->first_key, &lost->end_key, key))
        return find_adopted(finder, key);
    const struct bw_tree_block_expectation *above = &finder->above.expectation;
    if (finder->has_above && contains_key(&above->first_key, &above->end_key, key))
        return descend_from(finder, finder->above, above->first_key, true, key);
    finder->has_above = false;
    return descend_from(finder, bw_tree_root_pointer(&finder->tree, false), (struct bw_key){0},
                        finder->has_root, key);
}

size_t bw_leaf_finder_announce(const struct bw_leaf_finder *finder, struct bw_key *keys,
                               size_t count)
{
    const struct bw_tree_block_expectation *above = &finder->above.expectation;
    struct bw_range ranges[ADVISE_LEAVES];
    size_t others = 0, ranged = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_below =
            finder->has_above && contains_key(&above->first_key, &above->end_key, &keys[i]);
        if (!is_below || ranged == ADVISE_LEAVES) {
            keys[others++] = keys[i];
            continue;
        }
        const struct bw_node node = bw_node_view(finder->node, finder->reader.nodesize);
        const uint64_t leaf = bw_node_pointer_at(&node, bw_child_slot(&node, &keys[i])).bytenr;
        if (!ranged || ranges[ranged - 1].address != leaf)
            ranges[ranged++] = (struct bw_range){leaf, finder->reader.nodesize};
    }
    if (ranged)
        bw_blocks_advise(&finder->reader, ranges, ranged);
    return others;
}

uint64_t bw_leaf_lost_block(const struct bw_leaf_finder *finder, const struct bw_key *key)
{
    if (finder->lost)
        return finder->bytenr;
    if (bw_key_compare(key, &finder->unknown) < 0)
        return 0;
    return finder->adopted ? finder->lost_node.bytenr : finder->bytenr;
}

/* Examines all keys for the greatest one that is at most `key` or, with `behind`, the least one
 * greater than it. */
static int64_t search_all_keys(const struct bw_node *leaf, const struct bw_key *key, bool behind)
{
    int64_t best = -1;
    struct bw_key best_key = {0};
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_key at = bw_leaf_key(leaf, slot);
        if ((bw_key_compare(&at, key) > 0) != behind)
            continue;
        const int order = best < 0 ? 0 : bw_key_compare(&at, &best_key);
        const bool is_better = behind ? order < 0 : order > 0;
        if (best >= 0 && !is_better)
            continue;
        best = slot;
        best_key = at;
    }
    return best;
}

int64_t bw_leaf_last_until(const struct bw_leaf_finder *finder, const struct bw_key *key)
{
    if (!finder->ordered)
        return search_all_keys(&finder->leaf, key, false);
    return (int64_t)bw_node_count_until(&finder->leaf, key) - 1;
}

int64_t bw_leaf_first_behind(const struct bw_leaf_finder *finder, const struct bw_key *key)
{
    if (!finder->ordered)
        return search_all_keys(&finder->leaf, key, true);
    uint32_t slot = bw_node_count_until(&finder->leaf, key);
    return slot < finder->leaf.item_count ? (int64_t)slot : -1;
}

/* Iterating over the items in a range of keys, from leaf to leaf. */

static struct bw_key_event event_of(const struct bw_item_range *range)
{
    return (struct bw_key_event){
        {.call = range->frame.call}, range->finder.tree.id, range->first, range->last};
}

static void begin_range(struct bw_item_range *range, const struct bw_tree_reader *reader,
                        const struct bw_leaf_finder *finder, struct bw_key first,
                        struct bw_key last)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    *range = (struct bw_item_range){
        .next = first, .first = first, .last = last, .finder = *finder, .reads = true};
    range->frame = bw_frame_above(reader->frame, probes);
    range->finder.reader = *reader;
    range->finder.reader.frame = &range->frame;
    range->ended = bw_key_compare(&first, &last) > 0;
    range->start_time = BW_PROBE_START(probes, key__search__done);
    const struct bw_key_event event = event_of(range);
    BW_PROBE(probes, key__search__start, key_start, &event);
}

void bw_item_range_begin(struct bw_item_range *range, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree, struct bw_key first, struct bw_key last)
{
    struct bw_leaf_finder finder;
    bw_leaf_finder_init(&finder, reader, tree);
    begin_range(range, reader, &finder, first, last);
}

void bw_item_range_restart(struct bw_item_range *range, const struct bw_tree_reader *reader,
                           const struct bw_tree *tree, struct bw_key first, struct bw_key last)
{
    struct bw_leaf_finder finder = range->finder;
    bw_leaf_finder_set_tree(&finder, tree);
    begin_range(range, reader, &finder, first, last);
}

/* Reports the loss at this position; false if it is the same block as in an earlier step. */
static bool report_lost_block(struct bw_item_range *range, uint64_t bytenr)
{
    struct bw_leaf_finder *finder = &range->finder;
    struct bw_error **error = finder->error ? &finder->error : &finder->node_error;
    if (range->lost == bytenr && !*error)
        return false;
    range->lost = bytenr;
    range->error = BW_TAKE(*error);
    if (!range->error && !finder->lost && !finder->adopted)
        range->error = bw_error_create(BW_ERROR_CORRUPT,
                                       "last items of tree block %" PRIu64 " are lost", bytenr);
    else if (!range->error)
        range->error = bw_error_create(BW_ERROR_CORRUPT, "tree block %" PRIu64 " is lost", bytenr);
    return true;
}

bool bw_item_range_next(struct bw_item_range *range)
{
    struct bw_leaf_finder *finder = &range->finder;
    const struct bw_node *leaf = &finder->leaf;
    bw_error_free(BW_TAKE(range->error));
    while (!range->failure) {
        /* The next item of the leaf. */
        while (range->in_leaf && !finder->lost && range->slot < leaf->item_count) {
            const struct bw_key *key = &range->item.key;
            const bool is_inside = bw_leaf_item(leaf, range->slot++, &range->item);
            const bool is_behind = bw_key_compare(key, &range->last) > 0;
            if (is_behind && finder->ordered)
                range->slot = leaf->item_count;
            if (is_behind || bw_key_compare(key, &range->first) < 0)
                continue;
            if (!is_inside) {
                range->lost = BW_LOST_ITEM;
                range->error = bw_error_create(
                    BW_ERROR_CORRUPT,
                    "item (%" PRIu64 " %u %" PRIu64 ") of %s lies outside its leaf", key->objectid,
                    key->type, key->offset, bw_tree_title(finder->tree.id).text);
            }
            return true;
        }

        /* The end of the leaf. Keys may be lost between its last one and those of the next leaf. */
        if (range->in_leaf) {
            const struct bw_key end = finder->end, no_limit = BW_KEY_MAX;
            range->in_leaf = false;
            range->next = end;
            range->ended =
                bw_key_compare(&end, &range->last) > 0 || bw_key_compare(&end, &no_limit) == 0;
            if (!finder->lost && bw_key_compare(&finder->unknown, &end) < 0 &&
                bw_key_compare(&finder->unknown, &range->last) <= 0 &&
                report_lost_block(range, bw_leaf_lost_block(finder, &finder->unknown)))
                return true;
        }
        if (range->ended)
            return false;

        /* The next leaf. If its keys are out of order, all of them are examined. */
        range->failure = bw_find_leaf(finder, &range->next);
        if (range->failure)
            return false;
        range->in_leaf = true;
        range->slot = 0;
        if (!finder->lost && finder->ordered) {
            range->slot = bw_node_count_until(leaf, &range->first);
            if (range->slot) {
                const struct bw_key key = bw_leaf_key(leaf, range->slot - 1);
                range->slot -= bw_key_compare(&key, &range->first) == 0;
            }
        }
        if (finder->lost && report_lost_block(range, finder->bytenr))
            return true;
    }
    return false;
}

struct bw_error *bw_item_range_stop(struct bw_item_range *range, struct bw_error *error)
{
    struct bw_probes *probes = bw_xlator_probes(range->finder.reader.top);
    struct bw_key_event event = event_of(range);
    if (range->failure) {
        bw_error_free(error);
        error = range->failure;
    }
    event.event.error = error;
    event.event.ns = range->start_time ? bw_probes_now(probes) - range->start_time : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
    bw_error_free(BW_TAKE(range->error));
    range->failure = NULL;
    range->reads = false;
    /* another range must report the losses again */
    if (range->finder.lost || range->finder.node_error)
        bw_leaf_finder_free(&range->finder);
    return error;
}

struct bw_error *bw_item_range_end(struct bw_item_range *range, struct bw_error *error)
{
    if (range->reads)
        error = bw_item_range_stop(range, error);
    bw_leaf_finder_free(&range->finder);
    return error;
}
