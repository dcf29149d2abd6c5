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
#include "owners/references.h"
#include "owners/shared_extents.h"
#include "owners/shares.h"
#include "owners/waves.h"

/* What a node or leaf leads to, and a thread has not entered yet. */
struct pending {
    uint64_t bytenr;
    size_t shared; /* index in the table; SIZE_MAX: not known */
    uint32_t value;
};

/* The most references that a block can make. */
enum { MOST_REFERENCES = BW_MAX_NODESIZE / sizeof(struct bw_disk_item) };

struct counting {
    struct bw_shares *shares;
    struct bw_waves waves;
    struct bw_shared_extents shared;
    struct bw_map seen;       /* places of blocks with one reference */
    struct pending **pending; /* of each worker: MOST_REFERENCES */
    const struct bw_shares_options *options;
    uint64_t newest;          /* no block has a greater generation */
    size_t met[BW_MAX_LEVEL]; /* blocks of the table, by level */
    uint32_t *order;          /* of those of the level that is read: their indices in the table */
    bool contradicted;        /* the extent tree is wrong */
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
static size_t place_of(struct counting *counting, const struct pending *pending)
{
    if (counting->shared.complete || pending->shared != SIZE_MAX)
        return pending->shared;
    size_t place = bw_shared_find(&counting->shared, pending->bytenr);
    if (place == SIZE_MAX)
        place = bw_shared_add(&counting->shared, pending->bytenr);
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

/* Adds the subvolumes that wait for it to the set of those that reach an extent. */
static uint32_t settle(struct counting *counting, struct bw_shared_extent *extent)
{
    if (extent->late)
        reach(counting, extent,
              bw_root_set_of_word(&counting->shares->sets, extent->first, extent->late));
    extent->late = 0;
    return extent->set;
}

/* Those who reach a block from above. */
struct reaching {
    uint32_t set;
    bool is_word; /* they are these, see bw_root_set_of_word(): */
    uint32_t first;
    uint64_t bits;
};

static struct reaching those_of(const struct counting *counting, uint32_t set)
{
    struct reaching those = {.set = set};
    those.is_word = bw_root_set_is_word(&counting->shares->sets, set, &those.first, &those.bits);
    return those;
}

/* Thousands of snapshots reach a block, one after the other or in small groups: its set grows by up
 * to 64 at once. */
static void reach_by(struct counting *counting, struct bw_shared_extent *extent,
                     const struct reaching *those)
{
    if (!those->is_word) {
        reach(counting, extent, those->set);
        return;
    }
    if (extent->first != those->first)
        settle(counting, extent);
    extent->first = those->first;
    extent->late |= those->bits;
}

/* Nodes. */

/* Whether a block with one reference is met for the first time. */
static bool is_first(struct counting *counting, uint64_t bytenr)
{
    enum { PLACES = 16 };
    const uint64_t place = bytenr / BW_MIN_SECTORSIZE;
    const uint32_t bit = UINT32_C(1) << place % PLACES;
    uint32_t known = bw_map_get(&counting->seen, place / PLACES);
    known = known == UINT32_MAX ? 0 : known;
    if (known & bit)
        counting->contradicted = true;
    else if (!bw_map_put(&counting->seen, place / PLACES, known | bit))
        fail(counting);
    return !(known & bit);
}

/* A reference to a tree block; returns whether it is to be read at once. */
static bool reach_block(struct counting *counting, const struct pending *child, unsigned level,
                        const struct reaching *those)
{
    const size_t place = place_of(counting, child);
    if (place == SIZE_MAX)
        return is_first(counting, child->bytenr);
    struct bw_shared_extent *extent = &counting->shared.extents[place];
    if (!(extent->place & BW_SHARED_FLAGS)) {
        extent->place |= level + 1;
        extent->value = child->value;
        counting->met[level]++;
    }
    if ((extent->place & BW_SHARED_FLAGS) == level + 1)
        reach_by(counting, extent, those);
    else if (counting->shared.complete)
        counting->contradicted = true;
    else
        enter(counting, those->set, 0, 1);
    return false;
}

static uint32_t age_of(const struct counting *counting, uint64_t generation)
{
    const uint64_t age = counting->newest - generation;
    return age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

/* What the node before had in a slot is looked up once: roots of snapshots have the same children.
 */
static void take_node(void *context, unsigned worker, const struct bw_wave_block *block,
                      const struct bw_node *node, bool *wanted)
{
    struct counting *counting = context;
    struct pending *pending = counting->pending[worker];
    const uint32_t first = block->dropped ? bw_tree_first_slot(block->dropped, node) : 0;
    for (uint32_t slot = first; slot < node->item_count; slot++) {
        const struct bw_node_pointer child = bw_node_pointer_at(node, slot);
        if (!child.bytenr || pending[slot].bytenr != child.bytenr || !counting->shared.complete)
            pending[slot] = (struct pending){.bytenr = child.bytenr, .shared = SIZE_MAX};
        pending[slot].value = age_of(counting, child.generation);
        if (counting->shared.complete && pending[slot].shared == SIZE_MAX)
            pending[slot].shared = bw_shared_find(&counting->shared, child.bytenr);
    }
    pthread_mutex_lock(&counting->waves.lock);
    const struct reaching those = those_of(counting, block->value);
    for (uint32_t slot = first; slot < node->item_count; slot++)
        wanted[slot] = (block->dropped && slot == first) ||
                       reach_block(counting, &pending[slot], node->level - 1u, &those);
    enter(counting, block->value, node->nodesize, 0);
    pthread_mutex_unlock(&counting->waves.lock);
}

/* Leaves. */

struct leaf_sum {
    struct pending *pending;
    size_t count;
    uint64_t bytes; /* of extents with one reference */
};

/* A reference to data. Those in a row to the same extent are one. */
static void take_data(const struct counting *counting, struct leaf_sum *sum,
                      const struct bw_reference *reference)
{
    const struct pending data = {
        reference->bytenr,
        counting->shared.complete ? bw_shared_find(&counting->shared, reference->bytenr) : SIZE_MAX,
        bw_shared_units(reference->length)};
    if (counting->shared.complete && data.shared == SIZE_MAX)
        sum->bytes += reference->length;
    else if (!sum->count || sum->pending[sum->count - 1].bytenr != data.bytenr)
        sum->pending[sum->count++] = data;
}

/* With the lock. */
static void reach_data(struct counting *counting, const struct pending *data, uint32_t set)
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
    struct leaf_taker taker = {counting, {.pending = counting->pending[worker]}};
    bw_references_of_block(leaf, 0, false, take_reference, &taker);
    pthread_mutex_lock(&counting->waves.lock);
    for (size_t i = 0; i < taker.sum.count; i++)
        reach_data(counting, &taker.sum.pending[i], block->value);
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

/* Shared blocks: those of the present level are picked from the table. */

/* Older blocks come first: in about the order in which snapshots were made, so that sets grow by
 * neighbours. */
static int compare_ages(const void *left, const void *right, void *context)
{
    const struct bw_shared_extent *extents = context;
    const struct bw_shared_extent *a = &extents[*(const uint32_t *)left],
                                  *b = &extents[*(const uint32_t *)right];
    return a->value != b->value ? (a->value > b->value ? -1 : 1)
                                : (a->place > b->place) - (a->place < b->place);
}

/* Leaves are read in the order of their addresses. */
static bool list_level(struct counting *counting, unsigned level)
{
    const struct bw_shared_extents *shared = &counting->shared;
    uint32_t *order = realloc(counting->order, counting->met[level] * sizeof *order);
    size_t count = 0;
    if (!order)
        return false;
    counting->order = order;
    for (size_t i = 0; i < shared->count && count < counting->met[level]; i++)
        if ((shared->extents[i].place & BW_SHARED_FLAGS) == level + 1)
            order[count++] = (uint32_t)i;
    counting->met[level] = count;
    if (level)
        qsort_r(order, count, sizeof *order, compare_ages, shared->extents);
    return true;
}

static size_t count_tasks(void *context, unsigned level)
{
    struct counting *counting = context;
    const size_t step = bw_block_batch(&counting->waves.fs->reader);
    if (counting->met[level] && !list_level(counting, level)) {
        fail(counting);
        return 0;
    }
    return (counting->met[level] + step - 1) / step;
}

/* A subvolume that reaches a block. */
static uint64_t owner_of(const struct bw_shares *shares, uint32_t set)
{
    struct bw_root_run run = {0};
    return bw_root_set_next(&shares->sets, set, &run) ? shares->subvolumes[run.first].id : 0;
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

static unsigned pick_blocks(void *context, unsigned level, size_t task,
                            struct bw_wave_block *blocks)
{
    struct counting *counting = context;
    const size_t step = bw_block_batch(&counting->waves.fs->reader), first = task * step;
    unsigned count = 0;
    pthread_mutex_lock(&counting->waves.lock);
    for (size_t i = first; i < counting->met[level] && i < first + step; i++) {
        struct bw_shared_extent *extent = &counting->shared.extents[counting->order[i]];
        settle(counting, extent);
        blocks[count++] = block_of(counting, extent, level);
    }
    pthread_mutex_unlock(&counting->waves.lock);
    return count;
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
        const struct bw_listed_tree *tree = shares->trees[i];
        const struct bw_block_pointer root = bw_tree_root_pointer(&tree->tree, false);
        const uint32_t set = bw_root_set_of(&shares->sets, i);
        const struct pending pending = {root.bytenr, bw_shared_find(&counting->shared, root.bytenr),
                                        age_of(counting, root.expectation.generation)};
        const struct bw_wave_block block = {root, set, tree->references ? NULL : tree};
        if (set == UINT32_MAX)
            return bw_error_no_memory();
        const struct reaching those = those_of(counting, set);
        if (block.dropped || reach_block(counting, &pending, root.expectation.level, &those))
            BW_TRY(bw_waves_add(&counting->waves, &block));
    }
    return NULL;
}

static struct bw_error *make_pending(struct counting *counting)
{
    counting->pending = calloc(counting->waves.workers, sizeof *counting->pending);
    for (unsigned i = 0; counting->pending && i < counting->waves.workers; i++)
        if (!(counting->pending[i] = calloc(MOST_REFERENCES, sizeof **counting->pending)))
            return bw_error_no_memory();
    return counting->pending ? NULL : bw_error_no_memory();
}

static struct bw_error *count_trees(struct counting *counting)
{
    BW_TRY(bw_waves_begin(&counting->waves));
    BW_TRY(make_pending(counting));
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
    for (unsigned i = 0; counting->pending && i < counting->waves.workers; i++)
        free(counting->pending[i]);
    free(counting->pending);
    bw_waves_end(&counting->waves);
    bw_map_free(&counting->seen);
    free(counting->order);
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
                                          .lost = lose,
                                          .tasks = count_tasks,
                                          .more = pick_blocks,
                                          .goes_on = goes_on,
                                          .context = &counting},
                                .shared = *shared,
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
