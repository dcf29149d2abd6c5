/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk of one subvolume, or of the part of it that a shard has: listing outside of tasks, waves
 * of tasks, and recovery. */
#include "walk/subvolume_walk.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "walk/listing.h"
#include "walk/lost_entries.h"
#include "walk/waves.h"

/* Enough for the leaves of about half a million files that snapshots share. */
enum { ENTRY_CACHE_SIZE = 10 << 20 };

struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_file_writer *writer,
                                        struct bw_walk_summary *summary)
{
    *walk = (struct bw_subvolume_walk){.fs = fs,
                                       .options = options,
                                       .threads = options->threads,
                                       .writer = writer,
                                       .summary = summary,
                                       .choice = bw_choice_of(options)};
    bool snapshots = bw_subvolumes_have_snapshots(&fs->subvolumes);
    bw_output_init(&walk->output, options->consume, options->context);
    if (options->threads > 4)
        walk->output.window = 2 * (size_t)options->threads;
    if (writer->is_records)
        walk->output.limit = BW_RECORDS_LIMIT;
    walk->pool = bw_pool_create(options->threads);
    walk->scratch = calloc(options->threads, sizeof *walk->scratch);
    if (snapshots)
        walk->lists = bw_entry_cache_create(ENTRY_CACHE_SIZE);
    if (!walk->pool || !walk->scratch || (snapshots && !walk->lists))
        return bw_error_no_memory();
    return bw_collector_create(fs, writer, &walk->choice, &walk->listed);
}

struct bw_error *bw_subvolume_walk_init_inner(struct bw_subvolume_walk *walk,
                                              const struct bw_subvolume_walk *outer,
                                              unsigned worker)
{
    *walk = (struct bw_subvolume_walk){.fs = outer->fs,
                                       .options = outer->options,
                                       .threads = 1,
                                       .writer = outer->writer,
                                       .choice = outer->choice,
                                       .outer = outer,
                                       .scratch = outer->scratch + worker,
                                       .lists = outer->lists};
    bw_output_init(&walk->output, NULL, NULL);
    walk->pool = bw_pool_create(1);
    return walk->pool ? bw_collector_create(walk->fs, walk->writer, &walk->choice, &walk->listed)
                      : bw_error_no_memory();
}

static void free_scratch(struct bw_subvolume_walk *walk)
{
    for (unsigned i = 0; walk->scratch && i < walk->threads; i++)
        bw_task_scratch_destroy(walk->scratch[i]);
    free(walk->scratch);
    bw_entry_cache_destroy(walk->lists);
}

struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk)
{
    if (!walk->outer)
        free_scratch(walk);
    bw_pool_destroy(walk->pool);
    bw_directories_free(&walk->directories);
    free(walk->pending);
    free(walk->tasks);
    free(walk->lost.items);
    bw_map_free(&walk->lost_blocks);
    bw_number_set_free(&walk->queued);
    bw_shard_cuts_free(&walk->shared_cuts);
    bw_map_free(&walk->twins.nodes);
    bw_adopted_free(&walk->adopted);
    bw_collector_destroy(walk->listed);
    bw_subvolume_entries_free(&walk->found);
    return bw_output_destroy(&walk->output);
}

/* Running the walk of a subvolume. */

static struct bw_error *begin_subvolume(struct bw_subvolume_walk *walk,
                                        const struct bw_walk_top *top)
{
    walk->scope = (struct bw_task_scope){.fs = walk->fs,
                                         .tree = &top->subvolume->tree,
                                         .root_leaf = top->root_leaf,
                                         .directories = &walk->directories,
                                         .lost_blocks = &walk->lost_blocks,
                                         .prefix = top->prefix,
                                         .prefix_length = top->prefix_length,
                                         .silent = top->silent,
                                         .output = &walk->output,
                                         .writer = walk->writer,
                                         .choice = &walk->choice,
                                         .wanting = &walk->wanting};
    walk->pending_count = walk->lost.count = walk->adopted.count = 0;
    walk->wanting = 0;
    bw_map_clear(&walk->lost_blocks);
    walk->wave = 1;
    return bw_directories_reset(&walk->directories, top->inode);
}

/* Writes the entries listed outside of tasks. */
static struct bw_error *write_rest(struct bw_subvolume_walk *walk)
{
    BW_TRY(bw_listing_flush(walk));
    bw_collector_report_rest(&walk->scope);
    return NULL;
}

/* Ends the walk of a subvolume, and counts it. */
static struct bw_error *end_subvolume(struct bw_subvolume_walk *walk, const struct bw_walk_top *top)
{
    walk->summary->subvolumes += !top->shallow;
    walk->summary->directories += top->shallow ? 0 : walk->directories.count;
    return write_rest(walk);
}

struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top)
{
    bool included;
    BW_TRY(begin_subvolume(walk, top));
    BW_TRY(bw_listing_add_top(walk, top->inode, &included));
    if (included && !top->shallow &&
        bw_choice_enters(&walk->choice,
                         bw_choice_depth(&walk->choice, top->prefix, top->prefix_length))) {
        BW_TRY(bw_waves_add_pending(walk, top->inode, 0));
        BW_TRY(bw_waves_run(walk));
    }
    BW_TRY(bw_lost_entries_list(walk));
    return end_subvolume(walk, top);
}

/* Shards. */

/* A node above level 1 that cannot be read. Its whole range belongs to the first shard. */
static struct bw_error *on_lost_above(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    if (walk->options->shard == 1)
        return bw_waves_lose_node(walk, pointer, error);
    bw_fs_report_lost(walk->fs, pointer->bytenr, error);
    return NULL;
}

static struct bw_error *add_parts(struct bw_subvolume_walk *walk)
{
    const struct bw_shard_nodes *nodes = walk->scope.nodes;
    walk->task_count = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct bw_tree_block_expectation *keys = &nodes->pointers[i].expectation;
        if (!bw_shard_has_any(nodes, &keys->first_key, &keys->end_key))
            continue;
        if (!BW_ARRAY_RESERVE(walk->tasks, walk->task_count, walk->task_capacity))
            return bw_error_no_memory();
        walk->tasks[walk->task_count++] =
            (struct bw_task){.pointer = nodes->pointers[i], .scans = true};
    }
    return NULL;
}

/* The cuts of trees that share leaves, which are the nodes of one of these trees. */
static struct bw_error *get_shared_cuts(struct bw_subvolume_walk *walk, struct bw_shard shard)
{
    struct bw_shard_nodes nodes = {0};
    const struct bw_subvolume *model = bw_shard_model(&walk->fs->subvolumes);
    if (walk->shared_cuts.keys || !model)
        return NULL;
    struct bw_error *error =
        bw_shard_nodes_load(&nodes, &walk->fs->reader, &model->tree, bw_scan_ignore_lost, NULL);
    if (!error)
        error = bw_shard_cuts_make(&walk->shared_cuts, &nodes, shard, true);
    if (!error)
        error = bw_shard_twins_add(&walk->twins, &nodes);
    bw_shard_nodes_free(&nodes);
    return error;
}

/* Finds the nodes of the tree, and its cuts; `own` has them if it shares no leaves. */
static struct bw_error *cut_tree(struct bw_subvolume_walk *walk,
                                 const struct bw_subvolume *subvolume, struct bw_shard shard,
                                 struct bw_shard_nodes *nodes, struct bw_shard_cuts *own)
{
    BW_TRY(bw_shard_nodes_load(nodes, &walk->fs->reader, &subvolume->tree, on_lost_above, walk));
    nodes->cuts = bw_shard_shares(subvolume) ? &walk->shared_cuts : own;
    return bw_shard_shares(subvolume) ? get_shared_cuts(walk, shard)
                                      : bw_shard_cuts_make(own, nodes, shard, false);
}

/* Lists the entries that are missing because of damage, by a walk of the whole subvolume. */
static struct bw_error *list_missing(struct bw_subvolume_walk *walk, const struct bw_walk_top *top,
                                     struct bw_shard_nodes *nodes)
{
    struct bw_missing missing = {
        .nodes = nodes, .queued = walk->queued, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct bw_error *error = bw_lost_list_make(&walk->lost, 0, &missing.lost);
    if (!error)
        error = write_rest(walk);
    if (!error)
        error = begin_subvolume(walk, top);
    walk->scope.missing = &missing;
    if (!error)
        error = bw_waves_add_pending(walk, top->inode, 0);
    if (!error)
        error = bw_waves_run(walk);
    if (!error)
        error = bw_lost_entries_list(walk);
    walk->scope.missing = NULL;
    bw_lost_list_free(&missing.lost);
    bw_number_set_free(&missing.followed);
    return error;
}

/* Scans the shard's leaves, then walks directories below sparse nodes. */
static struct bw_error *run_parts(struct bw_subvolume_walk *walk, const struct bw_walk_top *top,
                                  struct bw_shard_nodes *nodes)
{
    bool is_new;
    walk->scope.nodes = nodes;
    BW_TRY(bw_listing_flush(walk));
    BW_TRY(add_parts(walk));
    BW_TRY(bw_waves_run_tasks(walk));
    if (nodes->cuts->shard.number == 1) {
        if (!bw_number_set_add(&walk->queued, top->inode, &is_new))
            return bw_error_no_memory();
        BW_TRY(bw_waves_add_pending(walk, top->inode, 0));
    }
    BW_TRY(bw_waves_run(walk));
    walk->scope.nodes = NULL;
    return walk->lost.count || bw_shard_nodes_have_unresolved(nodes)
               ? list_missing(walk, top, nodes)
               : NULL;
}

/* A tree that is not worth dividing: the shards list different inodes of it. */
static struct bw_error *run_share(struct bw_subvolume_walk *walk, const struct bw_walk_top *top,
                                  struct bw_shard shard)
{
    const struct bw_choice choice = walk->choice;
    walk->choice.is_plain = false;
    walk->choice.share = shard.number;
    walk->choice.shares = shard.count;
    struct bw_error *error = bw_subvolume_walk_run(walk, top);
    walk->choice = choice;
    return error;
}

/* Only the first shard lists the top directory; the others find out whether it is excluded. */
static struct bw_error *run_divided(struct bw_subvolume_walk *walk, const struct bw_walk_top *top,
                                    struct bw_shard_nodes *nodes)
{
    bool included;
    walk->scope.silent = top->silent || nodes->cuts->shard.number > 1;
    BW_TRY(bw_listing_add_top(walk, top->inode, &included));
    walk->scope.silent = top->silent;
    if (included && bw_choice_enters(&walk->choice, bw_choice_depth(&walk->choice, top->prefix,
                                                                    top->prefix_length)))
        BW_TRY(run_parts(walk, top, nodes));
    return end_subvolume(walk, top);
}

struct bw_error *bw_subvolume_walk_run_part(struct bw_subvolume_walk *walk,
                                            const struct bw_walk_top *top, struct bw_shard shard)
{
    struct bw_shard_nodes nodes = {0};
    struct bw_shard_cuts cuts = {0};
    BW_TRY(begin_subvolume(walk, top));
    bw_number_set_free(&walk->queued);
    struct bw_shard_twins *twins = bw_shard_shares(top->subvolume) ? &walk->twins : NULL;
    bool divides;
    struct bw_error *error = cut_tree(walk, top->subvolume, shard, &nodes, &cuts);
    if (!error)
        error = bw_shard_divides(&nodes, top->subvolume->bytes, shard, twins, &divides);
    if (!error)
        error = divides ? run_divided(walk, top, &nodes) : run_share(walk, top, shard);
    bw_shard_nodes_free(&nodes);
    bw_shard_cuts_free(&cuts);
    return error;
}

struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length)
{
    bool included;
    BW_TRY(begin_subvolume(walk, top));
    BW_TRY(bw_listing_add_entry(walk, 0, what, name, name_length, &included));
    return write_rest(walk);
}
