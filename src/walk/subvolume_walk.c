/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waves of tasks: cutting the pending directories into tasks, running them, and merging what they
 * have found. */
#include "walk/subvolume_walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"

/* Enough for the leaves of about half a million files that snapshots share. */
enum { DIGEST_CACHE_SIZE = 10 << 20 };

struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_file_writer *writer,
                                        struct bw_walk_summary *summary)
{
    *walk = (struct bw_subvolume_walk){.fs = fs,
                                       .options = options,
                                       .writer = writer,
                                       .summary = summary,
                                       .choice = bw_choice_of(options)};
    bool snapshots = bw_subvolumes_have_snapshots(&fs->subvolumes);
    bw_output_init(&walk->output, options->consume, options->context);
    if (options->threads > 4)
        walk->output.window = 2 * (size_t)options->threads;
    walk->pool = bw_pool_create(options->threads);
    walk->scratch = calloc(options->threads, sizeof *walk->scratch);
    if (snapshots)
        walk->digests = bw_digest_cache_create(DIGEST_CACHE_SIZE);
    if (!walk->pool || !walk->scratch || (snapshots && !walk->digests))
        return bw_error_no_memory();
    return bw_collector_create(fs, writer, &walk->choice, &walk->listed);
}

struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk)
{
    for (unsigned i = 0; walk->scratch && i < walk->options->threads; i++)
        bw_task_scratch_destroy(walk->scratch[i]);
    free(walk->scratch);
    bw_pool_destroy(walk->pool);
    bw_digest_cache_destroy(walk->digests);
    bw_directories_free(&walk->directories);
    free(walk->pending);
    free(walk->tasks);
    free(walk->lost.items);
    bw_map_free(&walk->lost_blocks);
    bw_adopted_free(&walk->adopted);
    bw_collector_destroy(walk->listed);
    free(walk->entries);
    bw_buffer_free(&walk->paths);
    return bw_output_destroy(&walk->output);
}

/* The first pending directory that may have entries at or after `key`. */
static size_t first_reaching(const struct bw_subvolume_walk *walk, const struct bw_key *key)
{
    const struct bw_pending *pending = walk->pending;
    return BW_FIRST_INDEX(i, walk->pending_count,
                          pending[i].inode > key->objectid ||
                              (pending[i].inode == key->objectid && key->type <= BW_DIR_INDEX));
}

static bool entries_begin_below(const struct bw_pending *pending, const struct bw_key *key)
{
    struct bw_key first = bw_first_entry_key(pending->inode);
    return bw_key_compare(&first, key) < 0;
}

/* A block that was lost stays lost, even if it could be read now: see bw_leaves_open(). */
static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    const struct bw_subvolume_walk *walk = context;
    if (bw_map_get(&walk->lost_blocks, pointer->bytenr) != UINT32_MAX)
        return false;
    size_t first = first_reaching(walk, &pointer->expectation.first_key);
    return first < walk->pending_count &&
           entries_begin_below(&walk->pending[first], &pointer->expectation.end_key);
}

static struct bw_error *add_task(void *context, const struct bw_block_pointer *pointer)
{
    struct bw_subvolume_walk *walk = context;
    if (!BW_ARRAY_RESERVE(walk->tasks, walk->task_count, walk->task_capacity))
        return bw_error_no_memory();
    size_t first = first_reaching(walk, &pointer->expectation.first_key), end = first;
    while (end < walk->pending_count &&
           entries_begin_below(&walk->pending[end], &pointer->expectation.end_key))
        end++;
    walk->tasks[walk->task_count++] = (struct bw_task){
        .pointer = *pointer, .pending = walk->pending + first, .pending_count = end - first};
    return NULL;
}

struct bw_error *bw_subvolume_walk_lose(struct bw_subvolume_walk *walk,
                                        const struct bw_lost_range *range)
{
    if (range->bytenr != BW_NO_BLOCK && !bw_map_put(&walk->lost_blocks, range->bytenr, 1))
        return bw_error_no_memory();
    return bw_lost_ranges_add(&walk->lost, range);
}

static struct bw_error *lost_node(void *context, const struct bw_block_pointer *pointer,
                                  struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, walk->wave);
    bw_fs_report_lost(walk->fs, pointer->bytenr, error);
    return bw_subvolume_walk_lose(walk, &range);
}

static void run_task(void *context, unsigned worker, size_t number)
{
    struct bw_subvolume_walk *walk = context;
    struct bw_task_scratch **scratch = &walk->scratch[worker];
    struct bw_error *error =
        *scratch
            ? NULL
            : bw_task_scratch_create(walk->fs, walk->digests, walk->writer, &walk->choice, scratch);
    if (!error) {
        bw_task_run(&walk->scope, *scratch, &walk->tasks[number], number);
        return;
    }
    struct bw_buffer none;
    bw_output_fail(&walk->output, error);
    bw_output_begin(&walk->output, number, &none);
    bw_output_finish(&walk->output, number, &none);
}

static struct bw_error *add_pending(struct bw_subvolume_walk *walk, uint64_t inode, uint32_t index)
{
    if (!BW_ARRAY_RESERVE(walk->pending, walk->pending_count, walk->pending_capacity))
        return bw_error_no_memory();
    walk->pending[walk->pending_count++] = (struct bw_pending){inode, index};
    return NULL;
}

struct bw_error *bw_subvolume_walk_add(struct bw_subvolume_walk *walk, uint64_t inode,
                                       uint32_t parent, const void *name, size_t name_length,
                                       uint32_t *index)
{
    BW_TRY(bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave,
                              index));
    return add_pending(walk, inode, *index);
}

struct bw_error *bw_subvolume_walk_add_entry(struct bw_subvolume_walk *walk, uint64_t id,
                                             uint32_t directory, const char *name,
                                             size_t name_length)
{
    if (!BW_ARRAY_RESERVE(walk->entries, walk->entry_count, walk->entry_capacity))
        return bw_error_no_memory();
    size_t offset = walk->paths.length;
    bw_buffer_append(&walk->paths, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &walk->paths);
    bw_buffer_append(&walk->paths, name, name_length);
    bw_buffer_append_byte(&walk->paths, '/');
    walk->entries[walk->entry_count++] =
        (struct bw_subvolume_entry){id, offset, walk->paths.length - offset};
    return walk->paths.failed ? bw_error_no_memory() : NULL;
}

static uint32_t resolve(uint32_t parent, const uint32_t *places)
{
    return parent & BW_FOUND_LOCAL ? places[parent & ~BW_FOUND_LOCAL] : parent;
}

/* Adds a directory that a task has found to the table; `place` gets its index. */
static struct bw_error *merge_directory(struct bw_subvolume_walk *walk,
                                        const struct bw_found *found, uint32_t parent,
                                        const char *name, uint32_t *place)
{
    *place = bw_directories_find(&walk->directories, found->id);
    if (*place == BW_NO_DIRECTORY)
        return found->walked ? bw_directories_add(&walk->directories, found->id, parent, name,
                                                  found->name_length, walk->scope.wave, place)
                             : bw_subvolume_walk_add(walk, found->id, parent, name,
                                                     found->name_length, place);
    bw_fs_report(walk->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "tree %" PRIu64 ": directory inode %" PRIu64
                                 ": it has a second entry",
                                 walk->scope.tree->id, found->id));
    return NULL;
}

static struct bw_error *merge(struct bw_subvolume_walk *walk, const struct bw_task_result *result)
{
    /* The index in the table of each directory that the task has found. */
    BW_AUTO_FREE uint32_t *places = malloc((result->found_count + 1) * sizeof *places);
    if (!places)
        return bw_error_no_memory();
    for (size_t i = 0; i < result->found_count; i++) {
        const struct bw_found *found = &result->found[i];
        BW_TRY(merge_directory(walk, found, resolve(found->parent, places),
                               result->names.data + found->name_offset, &places[i]));
    }
    for (size_t i = 0; i < result->subvolume_count; i++) {
        const struct bw_found *found = &result->subvolumes[i];
        BW_TRY(bw_subvolume_walk_add_entry(walk, found->id, resolve(found->parent, places),
                                           result->names.data + found->name_offset,
                                           found->name_length));
    }
    for (size_t i = 0; i < result->lost.count; i++)
        BW_TRY(bw_subvolume_walk_lose(walk, &result->lost.items[i]));
    walk->summary->files += result->files;
    return NULL;
}

static int by_inode(const void *a, const void *b)
{
    const struct bw_pending *left = a, *right = b;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static struct bw_error *add_adopted_tasks(struct bw_subvolume_walk *walk)
{
    for (size_t i = 0; i < walk->adopted.count; i++) {
        const struct bw_adopted_leaf *leaf = &walk->adopted.leaves[i];
        if (!wants(walk, &leaf->pointer))
            continue;
        BW_TRY(add_task(walk, &leaf->pointer));
        walk->tasks[walk->task_count - 1].since = leaf->wave;
    }
    return NULL;
}

/* Cuts the pending directories into tasks: by the nodes of the tree, unless only the adopted leaves
 * are to be walked, and by those. */
static struct bw_error *make_tasks(struct bw_subvolume_walk *walk, bool only_adopted)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .wants = wants, .pointer = add_task,
                                 .lost = lost_node, .context = walk};
    walk->task_count = 0;
    qsort(walk->pending, walk->pending_count, sizeof *walk->pending, by_inode);
    if (!only_adopted)
        BW_TRY(bw_tree_scan(&walk->fs->reader, walk->scope.tree, &scan));
    return add_adopted_tasks(walk);
}

static struct bw_error *run_wave(struct bw_subvolume_walk *walk, bool only_adopted)
{
    BW_TRY(bw_subvolume_walk_flush(walk));
    walk->scope.wave = walk->wave;
    BW_TRY(make_tasks(walk, only_adopted));
    bw_output_restart(&walk->output);
    bw_pool_run(walk->pool, walk->task_count, run_task, walk);
    walk->wave += walk->wave < BW_LAST_WAVE;
    walk->pending_count = 0;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < walk->task_count; i++) {
        if (!error)
            error = merge(walk, &walk->tasks[i].result);
        bw_task_result_free(&walk->tasks[i].result);
    }
    return error;
}

struct bw_error *bw_subvolume_walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending_count = 0;
    for (uint32_t i = 0; i < walk->directories.count; i++)
        BW_TRY(add_pending(walk, walk->directories.items[i].inode, i));
    return run_wave(walk, true);
}

struct bw_error *bw_subvolume_walk_waves(struct bw_subvolume_walk *walk)
{
    while (walk->pending_count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}

static struct bw_error *begin(struct bw_subvolume_walk *walk, const struct bw_walk_top *top)
{
    walk->scope = (struct bw_task_scope){.fs = walk->fs,
                                         .tree = &top->subvolume->tree,
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

/* Writes what was listed outside of tasks. */
static struct bw_error *end(struct bw_subvolume_walk *walk)
{
    BW_TRY(bw_subvolume_walk_flush(walk));
    bw_collector_report_rest(&walk->scope);
    return NULL;
}

struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top)
{
    bool taken;
    BW_TRY(begin(walk, top));
    BW_TRY(bw_subvolume_walk_list_top(walk, top->inode, &taken));
    if (taken && !top->shallow &&
        bw_choice_enters(&walk->choice,
                         bw_choice_depth(&walk->choice, top->prefix, top->prefix_length))) {
        BW_TRY(add_pending(walk, top->inode, 0));
        BW_TRY(bw_subvolume_walk_waves(walk));
    }
    BW_TRY(bw_recover(walk));
    return end(walk);
}

struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length)
{
    bool taken;
    BW_TRY(begin(walk, top));
    BW_TRY(bw_subvolume_walk_list(walk, 0, what, name, name_length, &taken));
    return end(walk);
}
