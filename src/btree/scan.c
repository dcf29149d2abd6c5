/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scan: a descent from the root into every child whose key range contains selected keys, with
 * one internal node per level in memory. Below a node of level 1, leaves are read in batches. The
 * scan always ends, because the level decreases by one with each step, and each child is limited to
 * the key range in its parent, so no block is reached by two paths. A lenient scan cannot rely on
 * keys; it remembers the blocks that it has visited instead.
 *
 * A lost block is reported, and the scan continues after it. Adopted leaves replace what is below a
 * lost node, if the caller has asked for them.
 *
 * To announce leaves, the children of a node of level 1 are visited twice: first to select and
 * announce them, then to read those that were selected.
 */
#include "btree/scan.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "graph/wind.h"

/* The leaves below a node of level 1, or those that replace a lost node. */
struct bw_scan_leaves {
    struct bw_block_pointer pointers[BW_BATCH]; /* of a batch */
    struct bw_request requests[BW_BATCH];
    unsigned count, size;  /* leaves that wait to be read, and their maximum */
    unsigned read, passed; /* leaves that were read, and those that the caller has received */
    uint8_t *blocks;
    unsigned room; /* capacity of `blocks` */

    uint32_t chosen[BW_MAX_CHILDREN]; /* slots of the leaves to be announced, and then read */
    uint32_t chosen_count, next_chosen;
    struct bw_range ranges[BW_MAX_CHILDREN];
};

void bw_block_scan_begin(struct bw_block_scan *scan, const struct bw_tree_reader *reader,
                         const struct bw_tree *tree)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    scan->frame = bw_frame_above(reader->frame, probes);
    scan->reader = *reader;
    scan->reader.frame = &scan->frame;
    scan->reader.keeps_leaves |= !tree->root.level; /* a small tree, which will be read again */
    scan->tree = *tree;
    scan->runs = true;
    scan->step = BW_SCAN_LEAF;
    scan->node.item_count = 0;
    scan->level = tree->root.level + 1u;
    scan->levels[scan->level].slot = 0;
    scan->levels[scan->level].end = 1;
    scan->start_time = BW_PROBE_START(probes, key__search__done);
    const struct bw_key_event event = {
        {.call = scan->frame.call}, tree->id, scan->first, scan->last};
    BW_PROBE(probes, key__search__start, key_start, &event);
}

struct bw_error *bw_block_scan_end(struct bw_block_scan *scan)
{
    if (!scan->runs)
        return NULL;
    struct bw_probes *probes = bw_xlator_probes(scan->reader.top);
    struct bw_scan_leaves *leaves = scan->leaves;
    scan->runs = scan->is_answered = false;
    for (; leaves && leaves->passed < leaves->read; leaves->passed++)
        bw_error_free(leaves->requests[leaves->passed].error);
    if (leaves)
        leaves->count = leaves->read = leaves->passed = leaves->chosen_count = 0;
    scan->adopted = NULL;
    bw_error_free(BW_TAKE(scan->error));
    bw_error_free(BW_TAKE(scan->lost_error));
    bw_key_set_free(&scan->seen);
    struct bw_key_event event = {
        {.call = scan->frame.call}, scan->tree.id, scan->first, scan->last};
    event.event.error = scan->failure;
    event.event.ns = scan->start_time ? bw_probes_now(probes) - scan->start_time : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
    return BW_TAKE(scan->failure);
}

void bw_block_scan_free(struct bw_block_scan *scan)
{
    bw_error_free(bw_block_scan_end(scan));
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(BW_TAKE(scan->levels[level].block));
    if (scan->leaves)
        free(scan->leaves->blocks);
    free(BW_TAKE(scan->leaves));
}

/* A step at a lost block; consumes the error. */
static bool pass_lost(struct bw_block_scan *scan, const struct bw_block_pointer *pointer,
                      struct bw_error *error)
{
    const bool is_fatal = error->code == BW_ERROR_NO_MEMORY;
    *(is_fatal ? &scan->failure : &scan->error) = error;
    scan->step = BW_SCAN_LOST;
    scan->pointer = *pointer;
    scan->node.item_count = 0;
    return !is_fatal;
}

static bool pass_leaf(struct bw_block_scan *scan, const struct bw_block_pointer *pointer,
                      const uint8_t *block)
{
    scan->step = BW_SCAN_LEAF;
    scan->pointer = *pointer;
    scan->node = bw_node_view(block, scan->reader.nodesize);
    if (scan->cut)
        scan->node.item_count = bw_leaf_count_below(&scan->node, &pointer->expectation.end_key);
    return true;
}

static void read_batch(struct bw_block_scan *scan)
{
    struct bw_scan_leaves *leaves = scan->leaves;
    for (unsigned i = 0; i < leaves->count; i++)
        leaves->requests[i] = bw_block_request(&scan->reader, &leaves->pointers[i],
                                               leaves->blocks + (size_t)i * scan->reader.nodesize);
    bw_blocks_read(&scan->reader, leaves->requests, leaves->count);
    leaves->read = leaves->count;
    leaves->count = leaves->passed = 0;
}

/* Allocates memory for up to `count` leaves, because most scans read only one or two. */
static void begin_leaves(struct bw_block_scan *scan, uint32_t count)
{
    const unsigned most = bw_block_batch(&scan->reader);
    struct bw_scan_leaves *leaves = scan->leaves;
    if (!leaves) {
        leaves = scan->leaves = malloc(sizeof *leaves);
        if (leaves) {
            leaves->blocks = NULL;
            leaves->count = leaves->read = leaves->passed = leaves->room = 0;
        }
    }
    if (leaves) {
        leaves->size = count < most ? count : most;
        leaves->chosen_count = leaves->next_chosen = 0;
    }
    if (leaves && leaves->room < leaves->size) {
        free(leaves->blocks);
        leaves->blocks = bw_block_buffer(&scan->reader, leaves->size);
        leaves->room = leaves->blocks ? leaves->size : 0;
    }
    if (!leaves || !leaves->blocks)
        scan->failure = bw_error_no_memory();
}

/* Announces the chosen leaves below a node. */
static void announce_leaves(const struct bw_block_scan *scan)
{
    const struct bw_node *node = &scan->levels[1].node;
    struct bw_scan_leaves *leaves = scan->leaves;
    const uint32_t nodesize = scan->reader.nodesize;
    uint32_t count = 0;
    for (; count < leaves->chosen_count; count++)
        leaves->ranges[count] =
            (struct bw_range){bw_node_pointer_at(node, leaves->chosen[count]).bytenr, nodesize};
    if (count < 2)
        return;
    /* As many again if they are close together: the next scan will probably read them. */
    uint32_t behind = leaves->chosen[count - 1] + 1, more = count;
    if (count < (behind - leaves->chosen[0]) / 2)
        more = 0;
    for (; more && behind < node->item_count; more--)
        leaves->ranges[count++] =
            (struct bw_range){bw_node_pointer_at(node, behind++).bytenr, nodesize};
    bw_blocks_advise(&scan->reader, leaves->ranges, count);
}

/* Replaces a lost node by adopted leaves; without any, it is a step. */
static bool pass_lost_node(struct bw_block_scan *scan, const struct bw_block_pointer *pointer,
                           struct bw_error *lost)
{
    if (!scan->adopt || pointer->expectation.level == 0 || lost->code == BW_ERROR_NO_MEMORY)
        return pass_lost(scan, pointer, lost);
    scan->failure = bw_adopted_find(&scan->reader, &scan->tree, pointer->bytenr, &scan->adopted);
    if (!scan->failure && !scan->adopted)
        return pass_lost(scan, pointer, lost);
    scan->lost_node = *pointer;
    scan->lost_error = lost;
    scan->next_adopted = 0;
    if (!scan->failure)
        begin_leaves(scan, BW_BATCH);
    return false;
}

/* Reads a block that is not in a batch. False if there is no step. */
static bool read_block(struct bw_block_scan *scan, const struct bw_block_pointer *pointer)
{
    const uint8_t level = pointer->expectation.level;
    struct bw_scan_level *below = &scan->levels[level];
    if (!below->block)
        below->block = bw_block_buffer(&scan->reader, 1);
    if (!below->block) {
        scan->failure = bw_error_no_memory();
        return false;
    }
    struct bw_error *error = bw_block_read(&scan->reader, pointer, below->block);
    if (error)
        return pass_lost_node(scan, pointer, error);
    if (level == 0)
        return pass_leaf(scan, pointer, below->block);

    /* The children with selected keys. */
    const struct bw_node node = bw_node_view(below->block, scan->reader.nodesize);
    scan->level = level;
    below->pointer = *pointer;
    below->node = node;
    below->slot = 0;
    below->end = node.item_count;
    if (!scan->lenient) {
        below->slot = bw_child_slot(&node, &scan->first);
        below->end = bw_node_count_until(&node, &scan->last);
    }
    if (level == scan->lowest_level)
        below->end = 0;
    if (level == 1 && below->slot < below->end)
        begin_leaves(scan, below->end - below->slot);
    if (!scan->nodes || scan->failure)
        return false;
    scan->step = BW_SCAN_NODE;
    scan->pointer = *pointer;
    scan->node = node;
    return true;
}

/* Finds the next block that may be read. */
static bool next_pointer(struct bw_block_scan *scan, struct bw_block_pointer *pointer)
{
    struct bw_scan_level *parent = &scan->levels[scan->level];
    const struct bw_key *first = &scan->lost_node.expectation.first_key,
                        *end = &scan->lost_node.expectation.end_key;
    while (scan->adopted && scan->next_adopted < scan->adopted->leaves.count) {
        *pointer = scan->adopted->leaves.items[scan->next_adopted++].pointer;
        if (bw_key_compare(&pointer->expectation.first_key, first) >= 0 &&
            bw_key_compare(&pointer->expectation.first_key, end) < 0)
            return true;
    }
    if (scan->adopted || parent->slot >= parent->end)
        return false;
    if (scan->level > scan->tree.root.level)
        *pointer = bw_tree_root_pointer(&scan->tree, scan->lenient);
    else
        *pointer = bw_tree_child_pointer(&parent->pointer, &parent->node, parent->slot);
    parent->slot++;
    return true;
}

bool bw_block_scan_next(struct bw_block_scan *scan)
{
    bw_error_free(BW_TAKE(scan->error));
    while (!scan->failure) {
        struct bw_scan_leaves *leaves = scan->leaves;
        const bool is_above_leaves = scan->level == 1 && scan->tree.root.level && !scan->adopted;
        const bool announces = is_above_leaves && scan->announce && !scan->lenient;

        /* The leaves of a batch that was read. */
        if (leaves && leaves->passed < leaves->read) {
            const unsigned i = leaves->passed++;
            if (leaves->requests[i].error)
                return pass_lost(scan, &leaves->pointers[i], BW_TAKE(leaves->requests[i].error));
            return pass_leaf(scan, &leaves->pointers[i], leaves->requests[i].buffer);
        }

        /* The next block. The caller may have to decide whether to read it. */
        struct bw_block_pointer pointer;
        bool is_selected, is_chosen = false;
        if (scan->is_answered) {
            pointer = scan->pointer;
            is_selected = scan->selected;
            scan->is_answered = false;
        } else if (next_pointer(scan, &pointer)) {
            const struct bw_tree_block_expectation *expectation = &pointer.expectation;
            is_selected = bw_key_compare(&expectation->first_key, &scan->last) <= 0 &&
                          bw_key_compare(&expectation->end_key, &scan->first) > 0 &&
                          (!scan->newer_than || expectation->generation > scan->newer_than);
            if (scan->lenient)
                scan->failure = bw_key_set_add(&scan->seen, pointer.bytenr, &is_selected);
            if (!scan->lenient && is_selected && scan->pointers) {
                scan->is_answered = true;
                scan->selected = false;
                scan->step = BW_SCAN_POINTER;
                scan->pointer = pointer;
                return true;
            }
        } else if (announces && leaves && leaves->next_chosen < leaves->chosen_count) {
            if (!leaves->next_chosen)
                announce_leaves(scan);
            pointer = bw_tree_child_pointer(&scan->levels[1].pointer, &scan->levels[1].node,
                                            leaves->chosen[leaves->next_chosen++]);
            is_selected = is_chosen = true;
        } else if (leaves && leaves->count) {
            read_batch(scan);
            continue;
        } else if (scan->adopted) {
            const struct bw_adopted *adopted = BW_TAKE(scan->adopted);
            struct bw_error *lost = BW_TAKE(scan->lost_error);
            if (!bw_adopted_covers(adopted, &scan->first, &scan->last))
                return pass_lost(scan, &scan->lost_node, lost);
            bw_error_free(lost);
            continue;
        } else if (scan->level > scan->tree.root.level) {
            return false;
        } else {
            scan->level++;
            continue;
        }

        /* Read it, now or with a batch. */
        if (scan->failure || !is_selected)
            continue;
        if (announces && !is_chosen) {
            leaves->chosen[leaves->chosen_count++] = scan->levels[1].slot - 1;
        } else if (is_above_leaves || scan->adopted) {
            leaves->pointers[leaves->count++] = pointer;
            if (leaves->count == leaves->size)
                read_batch(scan);
        } else if (read_block(scan, &pointer)) {
            return true;
        }
    }
    return false;
}
