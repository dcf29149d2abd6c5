/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sharing between subvolumes: buckets, one for each set of subvolumes, and their sums.
 *
 * Counting fills the buckets. The set of subvolumes that reach a tree block is the union of the
 * sets of the blocks above it. So sets are passed down the trees, and each block is read once,
 * however many snapshots share it. A block with one reference gets the set of its parent at once;
 * others wait in the table of shared extents until all blocks of higher levels have been read, and
 * data with several references until the end.
 *
 * The extent tree lists the shared blocks. If it is incomplete, proves wrong, or lacks the changes
 * of a log replay, everything is assumed to be shared, which takes more memory.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "data/references.h"
#include "owners/level_reader.h"
#include "owners/node_runs.h"
#include "owners/ranges.h"
#include "owners/root_sets.h"
#include "owners/shared_extents.h"
#include "owners/tree_list.h"

/* A set of subvolumes, and what exactly these share. */
struct bucket {
    uint32_t set;
    uint32_t first; /* index of the first subvolume; set when all is counted */
    uint64_t bytes;
    uint64_t lost_blocks;
};

/* A subvolume by its number in sets. Numbers are in the order in which subvolumes changed last: a
 * block that a subvolume had for a while is in consecutive snapshots, and if it still has it, in
 * the subvolume as well. So most sets are ranges of numbers. */
struct numbered_subvolume {
    uint32_t index; /* of the subvolume */
    uint32_t end;   /* up to this number, without it, indices are consecutive */
};

BW_VECTOR(buckets, struct bucket);

struct bw_shares {
    struct bw_subvolume_space *subvolumes; /* first those that stay, then those that are being
                                              deleted; both by ascending id; room for one more */
    uint32_t count, staying;
    struct numbered_subvolume *numbers; /* the same two groups, both in the order in which they
                                         changed last: what a subvolume has shared with its
                                         snapshots for a while is a single range of them */
    struct bw_root_sets sets;
    struct buckets buckets; /* one for a set */
    struct bw_key_map buckets_by_set;
    struct bw_shares_info info;
    const struct bw_listed_tree **trees; /* of the subvolumes, by index, while counting */
};

struct counting {
    struct bw_shares *shares;
    struct bw_level_reader reader;
    struct bw_shared_extents shared;
    struct bw_block_set seen; /* blocks with one reference */
    struct bw_run_receiver receiver;
    struct bw_node_runs **runs;          /* of each worker */
    struct bw_run_child **data;          /* of each worker: BW_MOST_REFERENCES */
    uint64_t newest;                     /* no block has a greater generation */
    const struct bw_block_queue *wanted; /* blocks with one reference of the level that is read */
    struct bw_level_order order;
    bool contradicted; /* the extent tree is wrong */
};

/* Adds to the bucket of a set; false if memory runs out. */
static bool add_to_bucket(struct bw_shares *shares, uint32_t set, uint64_t bytes,
                          uint64_t lost_blocks)
{
    uint32_t number = bw_key_map_get(&shares->buckets_by_set, set, UINT32_MAX);
    if (number == UINT32_MAX) {
        number = (uint32_t)shares->buckets.count;
        if (buckets_reserve(&shares->buckets, 1) ||
            bw_key_map_put(&shares->buckets_by_set, set, number))
            return false;
        shares->buckets.items[shares->buckets.count++] = (struct bucket){.set = set};
    }
    shares->buckets.items[number].bytes += bytes;
    shares->buckets.items[number].lost_blocks += lost_blocks;
    return true;
}

static void add_bytes(struct counting *counting, uint32_t set, uint64_t bytes, uint64_t lost)
{
    if (!add_to_bucket(counting->shares, set, bytes, lost))
        counting->reader.no_memory = true;
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
        counting->reader.no_memory = true;
    return place;
}

/* Adds a set to those that reach an extent. */
static void add_set(struct counting *counting, struct bw_shared_extent *extent, uint32_t set)
{
    const uint32_t both = bw_root_set_union(&counting->shares->sets, extent->set, set);
    if (both == UINT32_MAX)
        counting->reader.no_memory = true;
    else
        extent->set = both;
}

/* Nodes. */

/* Whether a block with one reference is visited for the first time. */
static bool is_first(struct counting *counting, uint64_t bytenr)
{
    bool added = false;
    if (bw_block_set_insert(&counting->seen, bytenr, &added))
        counting->reader.no_memory = true;
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
    struct bw_shared_extent *extent = &counting->shared.extents.items[place];
    if (!(extent->place & BW_SHARED_FLAGS)) {
        extent->place |= level + 1;
        extent->value = child->value;
        if (!bw_level_order_add(&counting->order, level, place, child->group))
            counting->reader.no_memory = true;
    }
    if ((extent->place & BW_SHARED_FLAGS) == level + 1)
        add_set(counting, extent, set);
    else if (counting->shared.complete)
        counting->contradicted = true;
    else
        add_bytes(counting, set, 0, 1);
    return false;
}

/* A child that an earlier version of the node had in the same slot need not be looked up again. */
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
        counting->reader.no_memory = true;
    else
        reach_block(counting, child, level, set);
}

static void on_node(void *context, unsigned worker, const struct bw_queued_block *block,
                    const struct bw_node *node, bool *wanted)
{
    struct counting *counting = context;
    const uint32_t first = block->dropped ? bw_tree_first_slot(block->dropped, node) : 0;
    const uint32_t begin = first + (block->dropped != NULL);
    bw_node_runs_add(counting->runs[worker], node, begin, counting->newest, block->value, wanted);
    pthread_mutex_lock(&counting->reader.lock);
    for (uint32_t slot = begin; slot < node->item_count; slot++)
        if (wanted[slot])
            wanted[slot] = is_first(counting, bw_node_pointer_at(node, slot).bytenr);
    add_bytes(counting, block->value, node->nodesize, 0);
    pthread_mutex_unlock(&counting->reader.lock);
    if (begin > first && first < node->item_count)
        wanted[first] = true;
}

static void on_row_end(void *context, unsigned worker)
{
    struct counting *counting = context;
    bw_node_runs_end(counting->runs[worker]);
}

/* Leaves. */

static void on_leaf(void *context, unsigned worker, const struct bw_queued_block *block,
                    const struct bw_node *leaf)
{
    struct counting *counting = context;
    struct bw_shared_extents *shared = &counting->shared;

    /* Data with one reference are counted at once; references in a row to the same extent are one.
     */
    struct bw_run_child *data = counting->data[worker];
    size_t count = 0;
    uint64_t bytes = leaf->nodesize;
    struct bw_block_references references = bw_block_references_open(leaf, 0, false);
    struct bw_reference reference;
    while (bw_block_references_next(&references, &reference)) {
        const size_t place = shared->complete ? bw_shared_find(shared, reference.bytenr) : SIZE_MAX;
        if (shared->complete && place == SIZE_MAX)
            bytes += reference.length;
        else if (!count || data[count - 1].bytenr != reference.bytenr)
            data[count++] = (struct bw_run_child){reference.bytenr, place,
                                                  bw_shared_units(reference.length), 0, 0};
    }

    pthread_mutex_lock(&counting->reader.lock);
    for (size_t i = 0; i < count; i++) {
        const size_t place = place_of(counting, &data[i]);
        if (place == SIZE_MAX)
            continue;
        struct bw_shared_extent *extent = &shared->extents.items[place];
        if (!shared->complete && !(extent->place & BW_SHARED_FLAGS)) {
            extent->place |= BW_SHARED_DATA;
            extent->value = data[i].value;
        }
        if (extent->place & BW_SHARED_DATA)
            add_set(counting, extent, block->value);
    }
    add_bytes(counting, block->value, bytes, 0);
    pthread_mutex_unlock(&counting->reader.lock);
}

static void on_lost_block(void *context, const struct bw_queued_block *block,
                          struct bw_error *error)
{
    struct counting *counting = context;
    pthread_mutex_lock(&counting->reader.lock);
    add_bytes(counting, block->value, 0, 1);
    pthread_mutex_unlock(&counting->reader.lock);
    bw_fs_report_lost(counting->reader.fs, block->pointer.bytenr, error);
}

/* The blocks of a level: those with one reference that are wanted, and the shared ones of the
 * table.
 */

static size_t order_level(void *context, unsigned level, const struct bw_block_queue *wanted)
{
    struct counting *counting = context;
    size_t count;
    counting->wanted = wanted;
    if (bw_level_order_make(&counting->order, level, wanted, &counting->shared, counting->newest,
                            &count))
        return count;
    counting->reader.no_memory = true;
    return 0;
}

static void pick_blocks(void *context, unsigned level, size_t first, unsigned count,
                        struct bw_queued_block *blocks)
{
    struct counting *counting = context;
    const struct bw_shares *shares = counting->shares;
    const struct bw_block_queue *wanted = counting->wanted;
    pthread_mutex_lock(&counting->reader.lock);
    for (unsigned i = 0; i < count; i++) {
        const uint32_t number = counting->order.numbers[first + i];
        if (number < wanted->count) {
            blocks[i] = wanted->items[number];
            continue;
        }
        /* A shared block, with any of the subvolumes that reach it as its owner. */
        const struct bw_shared_extent *extent =
            &counting->shared.extents.items[number - wanted->count];
        struct bw_root_range range = {0};
        uint64_t owner = 0;
        if (bw_root_set_next(&shares->sets, extent->set, &range))
            owner = shares->subvolumes[shares->numbers[range.first].index].id;
        blocks[i] = (struct bw_queued_block){
            .pointer = {.bytenr = extent->place & ~(uint64_t)BW_SHARED_FLAGS,
                        .expectation = {.owner = owner,
                                        .generation = counting->newest - extent->value,
                                        .level = (uint8_t)level}},
            .value = extent->set};
    }
    pthread_mutex_unlock(&counting->reader.lock);
}

/* All trees. */

static void counting_free(struct counting *counting)
{
    for (unsigned i = 0; counting->runs && i < counting->reader.workers; i++)
        bw_node_runs_destroy(counting->runs[i]);
    for (unsigned i = 0; counting->data && i < counting->reader.workers; i++)
        free(counting->data[i]);
    free(counting->runs);
    free(counting->data);
    bw_level_reader_end(&counting->reader);
    bw_key_map_free(&counting->seen.words);
    bw_level_order_free(&counting->order);
    bw_shared_free(&counting->shared);
}

/* Counts; `*wrong`: the extent tree was relied on, and is wrong. `shared` is emptied. */
static struct bw_error *count_shares(struct bw_shares *shares, struct bw_fs *fs,
                                     const struct bw_shares_options *options,
                                     struct bw_shared_extents *shared, bool *wrong)
{
    BW_SCOPED(counting)
    struct counting counting = {.shares = shares,
                                .reader = {.fs = fs,
                                           .threads = options->threads,
                                           .node = on_node,
                                           .leaf = on_leaf,
                                           .row = on_row_end,
                                           .lost = on_lost_block,
                                           .order = order_level,
                                           .pick = pick_blocks,
                                           .context = &counting,
                                           .progress = options->progress,
                                           .progress_context = options->context},
                                .shared = *shared,
                                .receiver = {.sets = &shares->sets,
                                             .lock = &counting.reader.lock,
                                             .find = find_child,
                                             .reach = reach_child,
                                             .context = &counting},
                                .newest = fs->superblock.generation + 1};
    *shared = (struct bw_shared_extents){0};
    BW_TRY(bw_level_reader_begin(&counting.reader));
    const unsigned workers = counting.reader.workers;
    counting.runs = calloc(workers, sizeof *counting.runs);
    counting.data = calloc(workers, sizeof *counting.data);
    bool complete = counting.runs && counting.data;
    for (unsigned i = 0; complete && i < workers; i++) {
        counting.runs[i] = bw_node_runs_create(&counting.receiver);
        counting.data[i] = calloc(BW_MOST_REFERENCES, sizeof **counting.data);
        complete = counting.runs[i] && counting.data[i];
    }
    if (!complete)
        return bw_error_no_memory();

    /* Roots are visited like other blocks: a damaged root tree may lead to one twice. */
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct bw_listed_tree *tree = shares->trees[shares->numbers[i].index];
        const struct bw_block_pointer root = bw_tree_root_pointer(&tree->tree, false);
        const uint32_t set = bw_root_set_of(&shares->sets, i);
        const struct bw_run_child child = {
            root.bytenr, bw_shared_find(&counting.shared, root.bytenr),
            bw_shared_age(counting.newest, root.expectation.generation), 0, 0};
        const struct bw_queued_block block = {root, set, tree->references ? NULL : tree};
        if (set == UINT32_MAX)
            return bw_error_no_memory();
        if (block.dropped || reach_block(&counting, &child, root.expectation.level, set))
            BW_TRY(bw_level_reader_add(&counting.reader, &block));
    }
    BW_TRY(bw_level_reader_run(&counting.reader));

    /* Now the sets of all shared data are complete. */
    for (size_t i = 0; i < counting.shared.extents.count; i++) {
        const struct bw_shared_extent *extent = &counting.shared.extents.items[i];
        if (extent->place & BW_SHARED_DATA && extent->set)
            add_bytes(&counting, extent->set, (uint64_t)extent->value * BW_MIN_SECTORSIZE, 0);
    }
    *wrong = counting.contradicted;
    shares->info.blocks = counting.reader.blocks;
    return counting.reader.no_memory ? bw_error_no_memory() : NULL;
}

/* Counts what the subvolumes share: fills the buckets. `list` has all trees. */
static struct bw_error *count_all(struct bw_shares *shares, struct bw_fs *fs,
                                  const struct bw_tree_list *list,
                                  const struct bw_shares_options *options)
{
    struct bw_shared_extents shared = {0};
    bool wrong = false;
    if (!fs->memory.blocks.count) {
        struct bw_error *error = bw_shared_load(&shared, fs, list, options->threads,
                                                options->progress, options->context);
        if (error) {
            bw_shared_free(&shared);
            return error;
        }
    }
    shares->info.by_extent_tree = shared.complete;
    BW_TRY(count_shares(shares, fs, options, &shared, &wrong));
    if (!wrong)
        return NULL;
    for (size_t i = 0; i < shares->buckets.count; i++)
        shares->buckets.items[i].bytes = shares->buckets.items[i].lost_blocks = 0;
    shares->info.by_extent_tree = false;
    return count_shares(shares, fs, options, &shared, &wrong);
}

/* Opening. */

/* Subvolumes that stay, or those that are being deleted. Replaying the log has changed roots. */
static void add_subvolumes(struct bw_shares *shares, const struct bw_fs *fs,
                           const struct bw_tree_list *list, bool deleted)
{
    for (size_t i = 0; i < list->entries.count; i++) {
        struct bw_listed_tree *tree = &list->entries.items[i];
        if (!tree->is_subvolume || !tree->references != deleted)
            continue;
        const struct bw_subvolume *replayed = bw_subvolume_by_id(fs, tree->tree.id);
        if (replayed)
            tree->tree = replayed->tree;
        shares->trees[shares->count] = tree;
        shares->subvolumes[shares->count++] =
            (struct bw_subvolume_space){.id = tree->tree.id, .is_deleted = deleted};
    }
}

static int by_age(const void *left, const void *right, void *context)
{
    const uint32_t a = ((const struct numbered_subvolume *)left)->index,
                   b = ((const struct numbered_subvolume *)right)->index;
    const struct bw_listed_tree *const *trees = context;
    return BW_COMPARE_ALL(((uint64_t[]){trees[a]->tree.root.generation, a}),
                          ((uint64_t[]){trees[b]->tree.root.generation, b}));
}

/* Lists the subvolumes and numbers them. Numbers of those that stay are lower than those of others.
 */
static struct bw_error *list_subvolumes(struct bw_shares *shares, const struct bw_fs *fs,
                                        const struct bw_tree_list *list)
{
    struct numbered_subvolume *numbers = shares->numbers =
        calloc(list->entries.count + 1, sizeof *shares->numbers);
    shares->subvolumes = calloc(list->entries.count + 1, sizeof *shares->subvolumes);
    shares->trees = calloc(list->entries.count + 1, sizeof(struct bw_listed_tree *));
    if (!shares->subvolumes || !shares->trees || !numbers || list->entries.count >= UINT32_MAX)
        return bw_error_no_memory();
    add_subvolumes(shares, fs, list, false);
    shares->staying = shares->count;
    add_subvolumes(shares, fs, list, true);

    for (uint32_t i = 0; i < shares->count; i++)
        numbers[i].index = i;
    qsort_r(numbers, shares->staying, sizeof *numbers, by_age, shares->trees);
    qsort_r(numbers + shares->staying, shares->count - shares->staying, sizeof *numbers, by_age,
            shares->trees);
    for (uint32_t i = shares->count; i-- > 0;) {
        const bool last = i + 1 == shares->count || numbers[i].index + 1 != numbers[i + 1].index;
        numbers[i].end = last ? i + 1 : numbers[i + 1].end;
    }
    return bw_root_sets_init(&shares->sets, shares->count) ? NULL : bw_error_no_memory();
}

/* Space that a deleted subvolume shares with others is charged to the others only. Buckets that
 * this or the counting has left empty are removed. */
static struct bw_error *assign_to_staying(struct bw_shares *shares)
{
    for (size_t i = 0; shares->staying < shares->count && i < shares->buckets.count; i++) {
        const struct bucket bucket = shares->buckets.items[i];
        const uint32_t set = bw_root_set_below(&shares->sets, bucket.set, shares->staying);
        if (!set || set == bucket.set)
            continue;
        shares->buckets.items[i].bytes = shares->buckets.items[i].lost_blocks = 0;
        if (set == UINT32_MAX || !add_to_bucket(shares, set, bucket.bytes, bucket.lost_blocks))
            return bw_error_no_memory();
    }
    size_t kept = 0;
    for (size_t i = 0; i < shares->buckets.count; i++) {
        const struct bucket bucket = shares->buckets.items[i];
        if (bucket.bytes || bucket.lost_blocks)
            shares->buckets.items[kept++] = bucket;
    }
    shares->buckets.count = kept;
    bw_key_map_free(&shares->buckets_by_set);
    return NULL;
}

/* Some subvolumes of a set. */
struct part {
    uint32_t first, count;      /* indices */
    struct bw_root_range range; /* the current range of numbers */
    uint32_t next;              /* where to continue in it */
};

/* The next part of a set; the first one after all zeros. In the order of numbers. */
static bool next_part(const struct bw_shares *shares, uint32_t set, struct part *part)
{
    if (part->next >= part->range.end) {
        if (!bw_root_set_next(&shares->sets, set, &part->range))
            return false;
        part->next = part->range.first;
    }
    const struct numbered_subvolume *number = &shares->numbers[part->next];
    const uint32_t end = number->end < part->range.end ? number->end : part->range.end;
    part->first = number->index;
    part->count = end - part->next;
    part->next = end;
    return true;
}

/* Computes the figures of each subvolume. Each bucket adds to the first subvolume of each part of
 * its set, and subtracts from the one after the last; then all are added up, in their order. */
static void sum_up(struct bw_shares *shares)
{
    struct bw_subvolume_space *subvolumes = shares->subvolumes;
    for (size_t i = 0; i < shares->buckets.count; i++) {
        struct bucket *bucket = &shares->buckets.items[i];
        struct part part = {0};
        uint64_t size = 0;
        bucket->first = UINT32_MAX;
        while (next_part(shares, bucket->set, &part)) {
            const uint32_t end = part.first + part.count;
            bucket->first = part.first < bucket->first ? part.first : bucket->first;
            size += part.count;
            subvolumes[part.first].referenced += bucket->bytes;
            subvolumes[end].referenced -= bucket->bytes;
            subvolumes[part.first].lost_blocks += bucket->lost_blocks;
            subvolumes[end].lost_blocks -= bucket->lost_blocks;
        }
        if (size == 1)
            subvolumes[bucket->first].exclusive = bucket->bytes;
        shares->info.lost_blocks += bucket->lost_blocks;
    }
    for (uint32_t i = 1; i < shares->count; i++) {
        subvolumes[i].referenced += subvolumes[i - 1].referenced;
        subvolumes[i].lost_blocks += subvolumes[i - 1].lost_blocks;
    }
}

/* Reports losses, once for each set of subvolumes. */
static void report_losses(const struct bw_shares *shares, struct bw_fs *fs)
{
    for (size_t i = 0; i < shares->buckets.count; i++) {
        const struct bucket *bucket = &shares->buckets.items[i];
        if (!bucket->lost_blocks)
            continue;
        struct bw_root_range range = {0};
        uint64_t size = 0;
        while (bw_root_set_next(&shares->sets, bucket->set, &range))
            size += range.end - range.first;
        struct bw_buffer text = {0};
        bw_buffer_format(&text, "%" PRIu64 " tree block%s of subvolume %" PRIu64,
                         bucket->lost_blocks, bw_plural(bucket->lost_blocks),
                         shares->subvolumes[bucket->first].id);
        if (size > 1)
            bw_buffer_format(&text, " and %" PRIu64 " other%s", size - 1, bw_plural(size - 1));
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT, "%s lost: sizes are lower bounds",
                          text.failed ? "tree blocks" : text.data);
        bw_buffer_free(&text);
    }
}

static int by_bytes(const void *left, const void *right, void *context)
{
    const struct bw_shares *shares = context;
    const struct bucket *a = left, *b = right;
    struct bw_root_range first = {0}, second = {0};
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    while (bw_root_set_next(&shares->sets, a->set, &first) &&
           bw_root_set_next(&shares->sets, b->set, &second)) {
        if (first.first != second.first)
            return first.first < second.first ? -1 : 1;
        if (first.end != second.end)
            return first.end < second.end ? -1 : 1;
    }
    return 0;
}

struct bw_error *bw_shares_open(struct bw_fs *fs, const struct bw_shares_options *options,
                                struct bw_shares **result)
{
    struct bw_shares_options own = {0};
    struct bw_tree_list list = {0};
    *result = NULL;
    BW_TRY(BW_TAKE_OPTIONS(&own, options));
    struct bw_shares *shares = calloc(1, sizeof *shares);
    if (!shares)
        return bw_error_no_memory();
    struct bw_error *error = bw_tree_list_load(fs, &list);
    if (!error)
        error = list_subvolumes(shares, fs, &list);
    if (!error)
        error = count_all(shares, fs, &list, &own);
    if (!error)
        error = assign_to_staying(shares);
    bw_listed_trees_free(&list.entries);
    free(BW_TAKE(shares->trees));
    if (error) {
        bw_shares_close(shares);
        return error;
    }
    sum_up(shares);
    shares->info.sets = shares->buckets.count;
    if (shares->buckets.count)
        qsort_r(shares->buckets.items, shares->buckets.count, sizeof *shares->buckets.items,
                by_bytes, shares);
    report_losses(shares, fs);
    *result = shares;
    return NULL;
}

void bw_shares_close(struct bw_shares *shares)
{
    if (!shares)
        return;
    free(shares->subvolumes);
    free(shares->numbers);
    buckets_free(&shares->buckets);
    bw_key_map_free(&shares->buckets_by_set);
    bw_root_sets_free(&shares->sets);
    free(shares);
}

/* Answers. */

void bw_shares_get(const struct bw_shares *shares, struct bw_shares_info *info)
{
    *info = shares->info;
}

const struct bw_subvolume_space *bw_shares_subvolume(const struct bw_shares *shares, uint64_t id)
{
    const struct bw_subvolume_space *all = shares->subvolumes;
    const size_t staying = shares->staying, count = shares->count;
    size_t at = BW_FIRST_INDEX(i, staying, all[i].id >= id);
    if (at == staying || all[at].id != id)
        at = staying + BW_FIRST_INDEX(i, count - staying, all[staying + i].id >= id);
    return at < count && all[at].id == id ? &all[at] : NULL;
}

struct bw_error *bw_shares_of(const struct bw_shares *shares, const uint64_t *ids, size_t count,
                              struct bw_shares_sum *sum)
{
    /* before[i]: the number of selected subvolumes with indices below i. */
    BW_AUTO_FREE uint32_t *before = calloc(shares->count + (size_t)1, sizeof *before);
    if (!before)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        const struct bw_subvolume_space *subvolume = bw_shares_subvolume(shares, ids[i]);
        if (!subvolume)
            return bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume %" PRIu64, ids[i]);
        before[subvolume - shares->subvolumes + 1] = 1;
    }
    for (uint32_t i = 0; i < shares->count; i++)
        before[i + 1] += before[i];

    *sum = (struct bw_shares_sum){0};
    for (size_t i = 0; i < shares->buckets.count; i++) {
        const struct bucket *bucket = &shares->buckets.items[i];
        struct part part = {0};
        uint64_t selected = 0, size = 0;
        while (next_part(shares, bucket->set, &part)) {
            selected += before[part.first + part.count] - before[part.first];
            size += part.count;
        }
        if (!selected)
            continue;
        sum->referenced += bucket->bytes;
        sum->lost_blocks += bucket->lost_blocks;
        if (selected == size)
            sum->exclusive += bucket->bytes;
    }
    return NULL;
}

static int by_first_index(const void *left, const void *right)
{
    const struct bw_root_range *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

struct bw_error *bw_shares_sets(const struct bw_shares *shares, bw_shared_set_visitor *visit,
                                void *context)
{
    const size_t room = shares->count + (size_t)1;
    BW_AUTO_FREE struct bw_root_range *indices = calloc(room, sizeof *indices);
    BW_AUTO_FREE struct bw_subvolume_range *ranges = calloc(room, sizeof *ranges);
    if (!indices || !ranges)
        return bw_error_no_memory();
    for (size_t i = 0; i < shares->buckets.count; i++) {
        const struct bucket *bucket = &shares->buckets.items[i];
        if (!bucket->bytes)
            continue;

        /* The subvolumes of the set as few ranges of indices, ascending. */
        struct part part = {0};
        size_t found = 0, kept = 0;
        while (next_part(shares, bucket->set, &part))
            indices[found++] = (struct bw_root_range){part.first, part.first + part.count};
        qsort(indices, found, sizeof *indices, by_first_index);
        for (size_t k = 0; k < found; k++)
            if (kept && indices[kept - 1].end == indices[k].first)
                indices[kept - 1].end = indices[k].end;
            else
                indices[kept++] = indices[k];

        struct bw_shared_set set = {.bytes = bucket->bytes,
                                    .ranges = ranges,
                                    .range_count = kept,
                                    .are_deleted = bucket->first >= shares->staying};
        for (size_t k = 0; k < set.range_count; k++) {
            ranges[k] = (struct bw_subvolume_range){shares->subvolumes[indices[k].first].id,
                                                    shares->subvolumes[indices[k].end - 1].id};
            set.subvolume_count += indices[k].end - indices[k].first;
        }
        BW_TRY(visit(context, &set));
    }
    return NULL;
}
