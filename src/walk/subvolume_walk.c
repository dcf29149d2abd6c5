/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk of one subvolume: listing outside of tasks, waves of tasks, and recovery. */
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
