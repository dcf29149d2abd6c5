/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting what subvolumes share. The set of subvolumes that reach a tree block is the union of
 * those of the blocks above it; so sets go down the trees, and each block is read once, however
 * many snapshots share it. A block with one reference takes the set of its parent at once; others
 * wait in the table of shared extents until all blocks of higher levels have been read, and so do
 * data with several references until the end.
 *
 * The extent tree tells which are shared. If it is not whole, or proves wrong, or has not heard of
 * what replaying the log has changed, everything is taken as shared: that takes more memory.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "owners/level_order.h"
#include "owners/node_runs.h"
#include "owners/ranges.h"
#include "owners/references.h"
#include "owners/shared_extents.h"
#include "owners/shares.h"
#include "owners/waves.h"

struct counting {
    struct bw_shares *shares;
    struct bw_waves waves;
    struct bw_shared_extents shared;
    struct bw_block_set seen; /* blocks with one reference */
    struct bw_run_taker taker;
    struct bw_node_runs **runs; /* of each worker */
    struct bw_run_child **data; /* of each worker: BW_MOST_REFERENCES */
    const struct bw_shares_options *options;
    uint64_t newest;                   /* no block has a greater generation */
    const struct bw_wave_list *wanted; /* blocks with one reference of the level that is read */
    struct bw_level_order order;
    bool contradicted; /* the extent tree is wrong */
};

static void fail(struct counting *counting)
{
    counting->waves.no_memory = true;
}

static void enter(struct counting *counting, uint32_t set, uint64_t bytes, uint64_t lost)
{
    if (!bw_shares_enter(counting->shares, set, bytes, lost))
        fail(counting);
}

/* The place of a reference in the table; with the lock, it is made if it may be shared. */
static size_t place_of(struct counting *counting, const struct bw_run_child *child)
{
    if (counting->shared.complete || child->shared != SIZE_MAX)
        return child->shared;
    size_t place = bw_shared_find(&counting->shared, child->bytenr);
    if (place == SIZE_MAX)
        place = bw_shared_add(&counting->shared, child->bytenr);
    if (place == SIZE_MAX)
        fail(counting);
    return place;
}

/* Adds a set to those that reach an extent. */
static void reach(struct counting *counting, struct bw_shared_extent *extent, uint32_t set)
{
    const uint32_t both = bw_root_set_union(&counting->shares->sets, extent->set, set);
    if (both == UINT32_MAX)
        fail(counting);
    else
        extent->set = both;
}

/* Nodes. */

/* Whether a block with one reference is met for the first time. */
static bool is_first(struct counting *counting, uint64_t bytenr)
{
    bool added = false;
    if (!bw_block_set_add(&counting->seen, bytenr, &added))
        fail(counting);
    counting->contradicted |= !added;
    return added;
}

/* References to a tree block; returns whether it is to be read at once. */
static bool reach_block(struct counting *counting, const struct bw_run_child *child, unsigned level,
                        uint32_t set)
{
    const size_t place = place_of(counting, child);
    if (place == SIZE_MAX)
        return is_first(counting, child->bytenr);
    struct bw_shared_extent *extent = &counting->shared.extents[place];
    if (!(extent->place & BW_SHARED_FLAGS)) {
        extent->place |= level + 1;
        extent->value = child->value;
        if (!bw_level_order_meet(&counting->order, level, place, child->group))
            fail(counting);
    }
    if ((extent->place & BW_SHARED_FLAGS) == level + 1)
        reach(counting, extent, set);
    else if (counting->shared.complete)
        counting->contradicted = true;
    else
        enter(counting, set, 0, 1);
    return false;
}

/* What a version of the node before had in a slot need not be looked up again. */
static bool find_child(void *context, struct bw_run_child *child)
{
    const struct counting *counting = context;
    if (counting->shared.complete && child->shared == SIZE_MAX)
        child->shared = bw_shared_find(&counting->shared, child->bytenr);
    return !counting->shared.complete || child->shared != SIZE_MAX;
}

static void reach_child(void *context, const struct bw_run_child *child, unsigned level,
                        uint32_t set)
{
    struct counting *counting = context;
    if (set == UINT32_MAX)
        fail(counting);
    else
        reach_block(counting, child, level, set);
}

static void take_node(void *context, unsigned worker, const struct bw_wave_block *block,
                      const struct bw_node *node, bool *wanted)
{
    struct counting *counting = context;
    const uint32_t first = block->dropped ? bw_tree_first_slot(block->dropped, node) : 0;
    const uint32_t begin = first + (block->dropped != NULL);
    bw_node_runs_take(counting->runs[worker], node, begin, counting->newest, block->value, wanted);
    pthread_mutex_lock(&counting->waves.lock);
    for (uint32_t slot = begin; slot < node->item_count; slot++)
        if (wanted[slot])
            wanted[slot] = is_first(counting, bw_node_pointer_at(node, slot).bytenr);
    enter(counting, block->value, node->nodesize, 0);
    pthread_mutex_unlock(&counting->waves.lock);
    if (begin > first && first < node->item_count)
        wanted[first] = true;
}

static void end_row(void *context, unsigned worker)
{
    struct counting *counting = context;
    bw_node_runs_end(counting->runs[worker]);
}

/* Leaves. */

struct leaf_sum {
    struct bw_run_child *data;
    size_t count;
    uint64_t bytes; /* of extents with one reference */
};

/* A reference to data. Those in a row to the same extent are one. */
static void take_data(const struct counting *counting, struct leaf_sum *sum,
                      const struct bw_reference *reference)
{
    const struct bw_run_child data = {
        reference->bytenr,
        counting->shared.complete ? bw_shared_find(&counting->shared, reference->bytenr) : SIZE_MAX,
        bw_shared_units(reference->length), 0, 0};
    if (counting->shared.complete && data.shared == SIZE_MAX)
        sum->bytes += reference->length;
    else if (!sum->count || sum->data[sum->count - 1].bytenr != data.bytenr)
        sum->data[sum->count++] = data;
}

/* With the lock. */
static void reach_data(struct counting *counting, const struct bw_run_child *data, uint32_t set)
{
    const size_t place = place_of(counting, data);
    if (place == SIZE_MAX)
        return;
    struct bw_shared_extent *extent = &counting->shared.extents[place];
    if (!counting->shared.complete && !(extent->place & BW_SHARED_FLAGS)) {
        extent->place |= BW_SHARED_DATA;
        extent->value = data->value;
    }
    if (extent->place & BW_SHARED_DATA)
        reach(counting, extent, set);
}

struct leaf_taker {
    const struct counting *counting;
    struct leaf_sum sum;
};

static void take_reference(void *context, const struct bw_reference *reference)
{
    struct leaf_taker *taker = context;
    if (reference->kind)
        take_data(taker->counting, &taker->sum, reference);
}

static void take_leaf(void *context, unsigned worker, const struct bw_wave_block *block,
                      const struct bw_node *leaf)
{
    struct counting *counting = context;
    struct leaf_taker taker = {counting, {.data = counting->data[worker]}};
    bw_references_of_block(leaf, 0, false, take_reference, &taker);
    pthread_mutex_lock(&counting->waves.lock);
    for (size_t i = 0; i < taker.sum.count; i++)
        reach_data(counting, &taker.sum.data[i], block->value);
    enter(counting, block->value, leaf->nodesize + taker.sum.bytes, 0);
    pthread_mutex_unlock(&counting->waves.lock);
}

static void lose(void *context, const struct bw_wave_block *block, struct bw_error *error)
{
    struct counting *counting = context;
    pthread_mutex_lock(&counting->waves.lock);
    enter(counting, block->value, 0, 1);
    pthread_mutex_unlock(&counting->waves.lock);
    bw_fs_report_lost(counting->waves.fs, block->pointer.bytenr, error);
}

/* The blocks of a level: those with one reference that are wanted, and the shared ones of the
 * table.
 */

static size_t order_level(void *context, unsigned level, const struct bw_wave_list *wanted)
{
    struct counting *counting = context;
    size_t count;
    counting->wanted = wanted;
    if (bw_level_order_make(&counting->order, level, wanted, &counting->shared, counting->newest,
                            &count))
        return count;
    fail(counting);
    return 0;
}

/* A subvolume that reaches a block. */
static uint64_t owner_of(const struct bw_shares *shares, uint32_t set)
{
    struct bw_root_run run = {0};
    return bw_root_set_next(&shares->sets, set, &run)
               ? shares->subvolumes[shares->numbers[run.first].index].id
               : 0;
}

static struct bw_wave_block block_of(const struct counting *counting,
                                     const struct bw_shared_extent *extent, unsigned level)
{
    return (struct bw_wave_block){
        .pointer = {.bytenr = extent->place & ~(uint64_t)BW_SHARED_FLAGS,
                    .expectation = {.owner = owner_of(counting->shares, extent->set),
                                    .generation = counting->newest - extent->value,
                                    .level = (uint8_t)level}},
        .value = extent->set};
}

static void pick_blocks(void *context, unsigned level, size_t first, unsigned count,
                        struct bw_wave_block *blocks)
{
    struct counting *counting = context;
    const struct bw_wave_list *wanted = counting->wanted;
    pthread_mutex_lock(&counting->waves.lock);
    for (unsigned i = 0; i < count; i++) {
        const uint32_t number = counting->order.numbers[first + i];
        blocks[i] =
            number < wanted->count
                ? wanted->blocks[number]
                : block_of(counting, &counting->shared.extents[number - wanted->count], level);
    }
    pthread_mutex_unlock(&counting->waves.lock);
}

/* The whole. */

static bool goes_on(void *context)
{
    const struct bw_shares_options *options = ((struct counting *)context)->options;
    return !options->progress || options->progress(options->context);
}

/* Roots are met like other blocks: a damaged root tree may lead to one twice. */
static struct bw_error *add_roots(struct counting *counting)
{
    struct bw_shares *shares = counting->shares;
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct bw_listed_tree *tree = shares->trees[shares->numbers[i].index];
        const struct bw_block_pointer root = bw_tree_root_pointer(&tree->tree, false);
        const uint32_t set = bw_root_set_of(&shares->sets, i);
        const struct bw_run_child child = {
            root.bytenr, bw_shared_find(&counting->shared, root.bytenr),
            bw_shared_age(counting->newest, root.expectation.generation), 0, 0};
        const struct bw_wave_block block = {root, set, tree->references ? NULL : tree};
        if (set == UINT32_MAX)
            return bw_error_no_memory();
        if (block.dropped || reach_block(counting, &child, root.expectation.level, set))
            BW_TRY(bw_waves_add(&counting->waves, &block));
    }
    return NULL;
}

static struct bw_error *make_workers(struct counting *counting)
{
    const unsigned workers = counting->waves.workers;
    counting->runs = calloc(workers, sizeof *counting->runs);
    counting->data = calloc(workers, sizeof *counting->data);
    bool complete = counting->runs && counting->data;
    for (unsigned i = 0; complete && i < workers; i++) {
        counting->runs[i] = bw_node_runs_create(&counting->taker);
        counting->data[i] = calloc(BW_MOST_REFERENCES, sizeof **counting->data);
        complete = counting->runs[i] && counting->data[i];
    }
    return complete ? NULL : bw_error_no_memory();
}

static struct bw_error *count_trees(struct counting *counting)
{
    BW_TRY(bw_waves_begin(&counting->waves));
    BW_TRY(make_workers(counting));
    BW_TRY(add_roots(counting));
    BW_TRY(bw_waves_run(&counting->waves));
    for (size_t i = 0; i < counting->shared.count; i++) {
        const struct bw_shared_extent *extent = &counting->shared.extents[i];
        if (extent->place & BW_SHARED_DATA && extent->set)
            enter(counting, extent->set, (uint64_t)extent->value * BW_MIN_SECTORSIZE, 0);
    }
    return counting->waves.no_memory ? bw_error_no_memory() : NULL;
}

static void release(struct counting *counting)
{
    for (unsigned i = 0; counting->runs && i < counting->waves.workers; i++)
        bw_node_runs_destroy(counting->runs[i]);
    for (unsigned i = 0; counting->data && i < counting->waves.workers; i++)
        free(counting->data[i]);
    free(counting->runs);
    free(counting->data);
    bw_waves_end(&counting->waves);
    bw_map_free(&counting->seen.words);
    bw_level_order_free(&counting->order);
    bw_shared_free(&counting->shared);
}

/* Counts; `*wrong`: the extent tree was relied on, and is wrong. */
static struct bw_error *count(struct bw_shares *shares, struct bw_fs *fs,
                              const struct bw_shares_options *options,
                              struct bw_shared_extents *shared, bool *wrong)
{
    struct counting counting = {.shares = shares,
                                .waves = {.fs = fs,
                                          .threads = options->threads,
                                          .node = take_node,
                                          .leaf = take_leaf,
                                          .row = end_row,
                                          .lost = lose,
                                          .order = order_level,
                                          .pick = pick_blocks,
                                          .goes_on = goes_on,
                                          .context = &counting},
                                .shared = *shared,
                                .taker = {.sets = &shares->sets,
                                          .lock = &counting.waves.lock,
                                          .find = find_child,
                                          .reach = reach_child,
                                          .context = &counting},
                                .options = options,
                                .newest = fs->superblock.generation + 1};
    *shared = (struct bw_shared_extents){0};
    struct bw_error *error = count_trees(&counting);
    *wrong = counting.contradicted;
    shares->info.blocks = counting.waves.blocks;
    release(&counting);
    return error;
}

struct bw_error *bw_shares_count(struct bw_shares *shares, struct bw_fs *fs,
                                 const struct bw_tree_list *list,
                                 const struct bw_shares_options *options)
{
    struct bw_shared_extents shared = {0};
    bool wrong = false;
    if (!fs->memory.count) {
        struct bw_error *error = bw_shared_load(&shared, fs, list, options->threads,
                                                options->progress, options->context);
        if (error) {
            bw_shared_free(&shared);
            return error;
        }
    }
    shares->info.by_extent_tree = shared.complete;
    BW_TRY(count(shares, fs, options, &shared, &wrong));
    if (!wrong)
        return NULL;
    for (size_t i = 0; i < shares->account_count; i++)
        shares->accounts[i].bytes = shares->accounts[i].lost_blocks = 0;
    shares->info.by_extent_tree = false;
    return count(shares, fs, options, &shared, &wrong);
}
