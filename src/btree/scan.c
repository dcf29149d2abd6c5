/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scan. It descends one internal node a level and, above the leaves, batches. It cannot loop:
 * levels fall by one a step, and a child only counts inside the key range its parent gives it, so
 * that no block is reached by two ways. A lenient scan does without that promise of the keys and
 * remembers the blocks it has seen instead.
 */
#include "btree/scan.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "btree/adopted.h"
#include "graph/wind.h"
#include "xlators/classes.h"

struct state {
    const struct bw_tree_reader *reader;
    const struct bw_tree *tree;
    const struct bw_scan *scan;
    uint8_t *nodes[BW_MAX_LEVEL]; /* one buffer a level, made when first needed */
    uint8_t *leaves;              /* buffer of a batch */
    unsigned leaf_room;           /* how many it takes */
    struct bw_map seen;           /* lenient: addresses of the blocks visited */
};

static struct bw_error *scan_node(struct state *state, const struct bw_block_pointer *pointer);

static struct bw_error *lose(struct state *state, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    if (!state->scan->lost || error->code == BW_ERROR_NO_MEMORY)
        return error;
    state->scan->lost(state->scan->context, pointer, error);
    return NULL;
}

static bool wanted(struct state *state, const struct bw_block_pointer *pointer)
{
    const struct bw_scan *scan = state->scan;
    if (scan->lenient) {
        bool seen = bw_map_get(&state->seen, pointer->bytenr) != UINT32_MAX;
        return !seen && bw_map_put(&state->seen, pointer->bytenr, 1);
    }
    if (bw_key_compare(&pointer->expectation.first_key, &scan->last) > 0 ||
        bw_key_compare(&pointer->expectation.end_key, &scan->first) <= 0)
        return false;
    return !scan->wants || scan->wants(scan->context, pointer);
}

static struct bw_error *read_leaves(struct state *state, const struct bw_block_pointer *pointers,
                                    unsigned count)
{
    struct bw_request requests[BW_BATCH];
    for (unsigned i = 0; i < count; i++)
        requests[i] = bw_block_request(state->reader, &pointers[i],
                                       state->leaves + (size_t)i * state->reader->nodesize);
    bw_blocks_read(state->reader, requests, count);
    struct bw_error *result = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (result) {
            bw_error_free(requests[i].error);
        } else if (requests[i].error) {
            result = lose(state, &pointers[i], requests[i].error);
        } else {
            struct bw_node leaf = bw_node_view(requests[i].buffer, state->reader->nodesize);
            result = state->scan->leaf(state->scan->context, &leaf);
        }
    }
    return result;
}

/* Memory for a batch; most searches want one or two leaves. */
static struct bw_error *reserve_leaves(struct state *state, unsigned count)
{
    if (state->leaf_room >= count)
        return NULL;
    free(state->leaves);
    state->leaves = bw_block_buffer(state->reader, count);
    state->leaf_room = state->leaves ? count : 0;
    return state->leaves ? NULL : bw_error_no_memory();
}

/* The slots below which the keys wanted lie: from `first` up to and without `end`. */
struct slots {
    uint32_t first, end;
};

/* A lenient scan believes no order of keys. */
static struct slots slots_of(const struct bw_scan *scan, const struct bw_node *node)
{
    if (scan->lenient)
        return (struct slots){0, node->item_count};
    uint32_t before = bw_node_count_until(node, &scan->first);
    return (struct slots){before ? before - 1 : 0, bw_node_count_until(node, &scan->last)};
}

static struct bw_error *scan_leaves(struct state *state, const struct bw_block_pointer *parent,
                                    const struct bw_node *node)
{
    struct bw_block_pointer pointers[BW_BATCH];
    struct slots slots = slots_of(state->scan, node);
    unsigned batch = bw_block_batch(state->reader), count = 0;
    if (slots.first >= slots.end)
        return NULL;
    if (slots.end - slots.first < batch)
        batch = slots.end - slots.first;
    BW_TRY(reserve_leaves(state, batch));
    for (uint32_t slot = slots.first; slot < slots.end; slot++) {
        pointers[count] = bw_tree_child_pointer(parent, node, slot);
        count += wanted(state, &pointers[count]);
        if (count == batch) {
            BW_TRY(read_leaves(state, pointers, count));
            count = 0;
        }
    }
    return count ? read_leaves(state, pointers, count) : NULL;
}

static struct bw_error *scan_children(struct state *state, const struct bw_block_pointer *parent,
                                      const struct bw_node *node)
{
    if (node->level == 1)
        return scan_leaves(state, parent, node);
    struct slots slots = slots_of(state->scan, node);
    for (uint32_t slot = slots.first; slot < slots.end; slot++) {
        struct bw_block_pointer child = bw_tree_child_pointer(parent, node, slot);
        if (wanted(state, &child))
            BW_TRY(scan_node(state, &child));
    }
    return NULL;
}

/* Leaves that begin below a node which is lost. */
static struct bw_error *scan_adopted(struct state *state, const struct bw_block_pointer *lost,
                                     const struct bw_adopted *adopted)
{
    struct bw_block_pointer pointers[BW_BATCH];
    unsigned batch = bw_block_batch(state->reader), count = 0;
    BW_TRY(reserve_leaves(state, batch));
    for (size_t i = 0; i < adopted->count; i++) {
        const struct bw_block_pointer *leaf = &adopted->leaves[i].pointer;
        if (bw_key_compare(&leaf->expectation.first_key, &lost->expectation.first_key) < 0 ||
            bw_key_compare(&leaf->expectation.first_key, &lost->expectation.end_key) >= 0 ||
            !wanted(state, leaf))
            continue;
        pointers[count++] = *leaf;
        if (count == batch) {
            BW_TRY(read_leaves(state, pointers, count));
            count = 0;
        }
    }
    return count ? read_leaves(state, pointers, count) : NULL;
}

/* A node is lost, with whatever was below it that is not known in another way. */
static struct bw_error *lose_node(struct state *state, const struct bw_block_pointer *pointer,
                                  struct bw_error *lost)
{
    const struct bw_scan *scan = state->scan;
    const struct bw_adopted *adopted = NULL;
    if (!scan->adopt || pointer->expectation.level == 0 || lost->code == BW_ERROR_NO_MEMORY)
        return lose(state, pointer, lost);
    struct bw_error *error = bw_adopted_find(state->reader, state->tree, pointer->bytenr, &adopted);
    if (!error && adopted)
        error = scan_adopted(state, pointer, adopted);
    if (!error && !(adopted && bw_adopted_tells(adopted, &scan->first, &scan->last)))
        return lose(state, pointer, lost);
    bw_error_free(lost);
    return error;
}

static struct bw_error *scan_node(struct state *state, const struct bw_block_pointer *pointer)
{
    uint8_t level = pointer->expectation.level;
    if (state->scan->stop_above_leaves && level <= 1)
        return state->scan->pointer(state->scan->context, pointer);
    if (!state->nodes[level])
        state->nodes[level] = bw_block_buffer(state->reader, 1);
    if (!state->nodes[level])
        return bw_error_no_memory();
    struct bw_error *error = bw_block_read(state->reader, pointer, state->nodes[level]);
    if (error)
        return lose_node(state, pointer, error);
    struct bw_node node = bw_node_view(state->nodes[level], state->reader->nodesize);
    return level ? scan_children(state, pointer, &node)
                 : state->scan->leaf(state->scan->context, &node);
}

void bw_scan_ignore_lost(void *context, const struct bw_block_pointer *pointer,
                         struct bw_error *error)
{
    (void)context;
    (void)pointer;
    bw_error_free(error);
}

struct bw_error *bw_tree_scan(const struct bw_tree_reader *reader, const struct bw_tree *tree,
                              const struct bw_scan *scan)
{
    struct bw_probes *probes = bw_xlator_probes(reader->top);
    const struct bw_frame frame = bw_frame_above(reader->frame, probes);
    const struct bw_tree_reader own = {reader->top, reader->nodesize, &frame, reader->adopter};
    struct bw_key_event event = {{.call = frame.call}, tree->id, scan->first, scan->last};
    struct state state = {.reader = &own, .tree = tree, .scan = scan};
    uint64_t start = BW_PROBE_START(probes, key__search__done);
    BW_PROBE(probes, key__search__start, key_start, &event);
    struct bw_block_pointer root = bw_tree_root_pointer(tree, scan->lenient);
    struct bw_error *error = wanted(&state, &root) ? scan_node(&state, &root) : NULL;
    for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
        free(state.nodes[level]);
    free(state.leaves);
    bw_map_free(&state.seen);
    event.event.error = error;
    event.event.ns = start ? bw_probes_now(probes) - start : 0;
    BW_PROBE(probes, key__search__done, key_done, &event);
    return error;
}
