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
 */
#include "btree/scan.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "graph/wind.h"
#include "xlators/classes.h"

struct scan_run {
    const struct bw_tree_reader *reader;
    const struct bw_tree *tree;
    const struct bw_scan *scan;
    struct bw_scan_buffers *buffers;
    struct bw_block_pointer *pointers; /* leaves to read: room for BW_BATCH */
    unsigned count, batch;             /* their number, and its maximum */
    struct bw_key_set seen;            /* addresses of visited blocks, in a lenient scan */
};

void bw_scan_buffers_free(struct bw_scan_buffers *buffers)
{
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(buffers->nodes[level]);
    free(buffers->leaves);
    free(buffers->ranges);
    *buffers = (struct bw_scan_buffers){0};
}

static struct bw_error *report_lost(struct scan_run *run, const struct bw_block_pointer *pointer,
                                    struct bw_error *error)
{
    if (!run->scan->lost || error->code == BW_ERROR_NO_MEMORY)
        return error;
    return run->scan->lost(run->scan->context, pointer, error);
}

/* Decides whether to read a block, which may contain selected keys according to its pointer. */
static struct bw_error *select_block(struct scan_run *run, const struct bw_block_pointer *pointer,
                                     bool *selected)
{
    const struct bw_scan *scan = run->scan;
    if (scan->lenient)
        return bw_key_set_add(&run->seen, pointer->bytenr, selected);
    const bool is_inside = bw_key_compare(&pointer->expectation.first_key, &scan->last) <= 0 &&
                           bw_key_compare(&pointer->expectation.end_key, &scan->first) > 0;
    *selected = is_inside && !scan->select;
    return is_inside && scan->select ? scan->select(scan->context, pointer, selected) : NULL;
}

/* Passes a leaf to the caller. */
static struct bw_error *pass_leaf(const struct scan_run *run,
                                  const struct bw_block_pointer *pointer, const uint8_t *block)
{
    struct bw_node leaf = bw_node_view(block, run->reader->nodesize);
    if (!run->scan->leaf)
        return NULL;
    if (run->scan->cut)
        leaf.item_count = bw_leaf_count_below(&leaf, &pointer->expectation.end_key);
    return run->scan->leaf(run->scan->context, &leaf);
}

static struct bw_error *read_leaves(struct scan_run *run)
{
    struct bw_request requests[BW_BATCH];
    const uint32_t nodesize = run->reader->nodesize;
    const unsigned count = run->count;
    run->count = 0;
    for (unsigned i = 0; i < count; i++)
        requests[i] = bw_block_request(run->reader, &run->pointers[i],
                                       run->buffers->leaves + (size_t)i * nodesize);
    bw_blocks_read(run->reader, requests, count);
    struct bw_error *result = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (result) {
            bw_error_free(requests[i].error);
        } else if (requests[i].error) {
            result = report_lost(run, &run->pointers[i], requests[i].error);
        } else {
            result = pass_leaf(run, &run->pointers[i], requests[i].buffer);
        }
    }
    return result;
}

/* Allocates memory for up to `count` leaves, because most scans read only one or two. */
static struct bw_error *begin_leaves(struct scan_run *run, uint32_t count)
{
    struct bw_scan_buffers *buffers = run->buffers;
    const unsigned batch = bw_block_batch(run->reader);
    run->batch = count < batch ? count : batch;
    if (buffers->leaf_room >= run->batch)
        return NULL;
    free(buffers->leaves);
    buffers->leaves = bw_block_buffer(run->reader, run->batch);
    buffers->leaf_room = buffers->leaves ? run->batch : 0;
    if (buffers->leaves)
        return NULL;
    return bw_error_no_memory();
}

/* Whether the caller has a leaf, which is handled. */
static bool is_known(const struct scan_run *run, const struct bw_block_pointer *pointer,
                     struct bw_error **error)
{
    const struct bw_scan *scan = run->scan;
    if (!scan->known || scan->lenient)
        return false;
    const uint8_t *block = scan->known(scan->context, pointer);
    if (!block)
        return false;
    *error = pass_leaf(run, pointer, block);
    return true;
}

static struct bw_error *add_leaf(struct scan_run *run, const struct bw_block_pointer *pointer)
{
    struct bw_error *error;
    bool wanted;
    BW_TRY(select_block(run, pointer, &wanted));
    if (wanted && is_known(run, pointer, &error))
        return error;
    if (wanted)
        run->pointers[run->count++] = *pointer;
    return run->count == run->batch ? read_leaves(run) : NULL;
}

/* Announces the selected leaves below a node, in the slots from `first` to `end`. */
static struct bw_error *advise_leaves(struct scan_run *run, const struct bw_block_pointer *parent,
                                      const struct bw_node *node, uint32_t first, uint32_t end)
{
    struct bw_range **ranges = &run->buffers->ranges;
    const uint32_t nodesize = run->reader->nodesize;
    uint32_t count = 0, behind = first;
    if (!*ranges)
        *ranges = malloc(BW_MAX_CHILDREN * sizeof **ranges);
    if (!*ranges)
        return bw_error_no_memory();
    for (uint32_t slot = first; slot < end; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(parent, node, slot);
        bool selected;
        BW_TRY(select_block(run, &child, &selected));
        if (!selected)
            continue;
        if (!count)
            first = slot;
        behind = slot + 1;
        (*ranges)[count++] = (struct bw_range){child.bytenr, nodesize};
    }
    if (count < 2)
        return NULL;
    /* As many again if they are close together: the next scan will probably read them. */
    uint32_t more = count;
    if (count < (behind - first) / 2)
        more = 0;
    for (; more && behind < node->item_count; more--)
        (*ranges)[count++] = (struct bw_range){bw_node_pointer_at(node, behind++).bytenr, nodesize};
    bw_blocks_advise(run->reader, *ranges, count);
    return NULL;
}

/* Handles a lost node: everything below it is lost, except adopted leaves, which are scanned. */
static struct bw_error *handle_lost_node(struct scan_run *run,
                                         const struct bw_block_pointer *pointer,
                                         struct bw_error *lost)
{
    const struct bw_scan *scan = run->scan;
    const struct bw_adopted *adopted = NULL;
    if (!scan->adopt || pointer->expectation.level == 0 || lost->code == BW_ERROR_NO_MEMORY)
        return report_lost(run, pointer, lost);
    struct bw_error *error = bw_adopted_find(run->reader, run->tree, pointer->bytenr, &adopted);
    if (!error && adopted)
        error = begin_leaves(run, BW_BATCH);
    for (size_t i = 0; !error && adopted && i < adopted->leaves.count; i++) {
        const struct bw_block_pointer *leaf = &adopted->leaves.items[i].pointer;
        if (bw_key_compare(&leaf->expectation.first_key, &pointer->expectation.first_key) >= 0 &&
            bw_key_compare(&leaf->expectation.first_key, &pointer->expectation.end_key) < 0)
            error = add_leaf(run, leaf);
    }
    if (!error && adopted)
        error = read_leaves(run);
    if (!error && !(adopted && bw_adopted_covers(adopted, &scan->first, &scan->last)))
        return report_lost(run, pointer, lost);
    bw_error_free(lost);
    return error;
}

/* Scans a block and all selected blocks below it. */
static struct bw_error *scan_node(struct scan_run *run, const struct bw_block_pointer *pointer)
{
    const struct bw_scan *scan = run->scan;
    const uint8_t level = pointer->expectation.level;
    uint8_t **block = &run->buffers->nodes[level];
    struct bw_error *error;
    bool wanted;
    BW_TRY(select_block(run, pointer, &wanted));
    if (!wanted)
        return NULL;
    if (scan->pointer && level <= 1)
        return scan->pointer(scan->context, pointer);
    if (level == 0 && is_known(run, pointer, &error))
        return error;
    if (!*block)
        *block = bw_block_buffer(run->reader, 1);
    if (!*block)
        return bw_error_no_memory();
    error = bw_block_read(run->reader, pointer, *block);
    if (error)
        return handle_lost_node(run, pointer, error);
    if (level == 0)
        return pass_leaf(run, pointer, *block);
    const struct bw_node node = bw_node_view(*block, run->reader->nodesize);
    if (scan->node)
        BW_TRY(scan->node(scan->context, &node));
    if (level == scan->lowest_level)
        return NULL;

    /* The children with selected keys. */
    uint32_t first = 0, end = node.item_count;
    if (!scan->lenient) {
        first = bw_child_slot(&node, &scan->first);
        end = bw_node_count_until(&node, &scan->last);
    }
    if (level == 1 && first < end) {
        if (scan->announce && !scan->lenient)
            BW_TRY(advise_leaves(run, pointer, &node, first, end));
        BW_TRY(begin_leaves(run, end - first));
    }
    for (uint32_t slot = first; slot < end; slot++) {
        const struct bw_block_pointer child = bw_tree_child_pointer(pointer, &node, slot);
        if (level == 1)
            BW_TRY(add_leaf(run, &child));
        else
            BW_TRY(scan_node(run, &child));
    }
    return level == 1 ? read_leaves(run) : NULL;
}

struct bw_error *bw_scan_ignore_lost(void *context, const struct bw_block_pointer *pointer,
                                     struct bw_error *error)
{
    (void)context;
    (void)pointer;
    bw_error_free(error);
    return NULL;
}

struct bw_error *bw_tree_scan(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                              const struct bw_scan *scan)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    const struct bw_frame frame = bw_frame_above(reader->frame, probes);
    struct bw_tree_reader own = *reader;
    own.frame = &frame;
    own.keeps_leaves |= !tree->root.level; /* a small tree, which other scans will read, too */
    struct bw_key_event event = {{.call = frame.call}, tree->id, scan->first, scan->last};
    struct bw_scan_buffers buffers = {0};
    struct bw_block_pointer pointers[BW_BATCH];
    struct scan_run run = {.reader = &own,
                           .pointers = pointers,
                           .tree = tree,
                           .scan = scan,
                           .buffers = scan->buffers ? scan->buffers : &buffers};
    uint64_t start = BW_PROBE_START(probes, key__search__done);
    BW_PROBE(probes, key__search__start, key_start, &event);
    struct bw_block_pointer root = bw_tree_root_pointer(tree, scan->lenient);
    struct bw_error *error = scan_node(&run, &root);
    bw_scan_buffers_free(&buffers);
    bw_key_set_free(&run.seen);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
    return error;
}
