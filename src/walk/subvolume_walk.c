/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waves of tasks: cutting the pending directories into tasks, running them, and merging what they
 * found. */
#include "walk/subvolume_walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/escape.h"
#include "btree/scan.h"
#include "fs/fs.h"

/* Enough for the leaves of about half a million files that snapshots share. */
enum { DIGEST_CACHE_SIZE = 10 << 20 };

bool bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                            const struct bw_walk_options *options,
                            const struct bw_file_writer *writer, struct bw_walk_summary *summary)
{
    *walk = (struct bw_subvolume_walk){
        .fs = fs, .options = options, .writer = writer, .summary = summary};
    walk->choice = bw_choice_of(options, &walk->is_plain);
    bw_output_init(&walk->output, options->consume, options->context);
    if (options->threads > 4)
        walk->output.window = 2 * options->threads;
    walk->pool = bw_pool_create(options->threads);
    walk->scratch = calloc(options->threads, sizeof *walk->scratch);
    bool snapshots = bw_subvolumes_have_snapshots(&fs->subvolumes);
    if (snapshots)
        walk->digests = bw_digest_cache_create(DIGEST_CACHE_SIZE);
    return walk->pool && walk->scratch && (walk->digests || !snapshots);
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

/* The first pending directory that may have entries at or behind `key`. */
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

void bw_subvolume_walk_lose(struct bw_subvolume_walk *walk, const struct bw_lost_range *range)
{
    struct bw_error *error = bw_lost_ranges_add(&walk->lost, range);
    walk->memory_short |= error != NULL;
    bw_error_free(error);
    if (range->bytenr != BW_NO_BLOCK)
        walk->memory_short |= !bw_map_put(&walk->lost_blocks, range->bytenr, 1);
}

static void lost_node(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, walk->wave);
    bw_fs_report_lost(walk->fs, pointer->bytenr, error);
    bw_subvolume_walk_lose(walk, &range);
}

static void run_task(void *context, unsigned worker, size_t number)
{
    struct bw_subvolume_walk *walk = context;
    if (!walk->scratch[worker])
        walk->scratch[worker] =
            bw_task_scratch_create(walk->fs, walk->digests, walk->writer, walk->choice.selection);
    if (walk->scratch[worker]) {
        bw_task_run(&walk->scope, walk->scratch[worker], &walk->tasks[number], number);
        return;
    }
    struct bw_buffer none;
    bw_output_fail(&walk->output, bw_error_no_memory());
    bw_output_begin(&walk->output, number, &none);
    bw_output_finish(&walk->output, number, &none);
}

uint32_t bw_subvolume_walk_add(struct bw_subvolume_walk *walk, uint64_t inode, uint32_t parent,
                               const void *name, size_t name_length)
{
    uint32_t index =
        bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave);
    if (index == BW_NO_DIRECTORY ||
        !BW_ARRAY_RESERVE(walk->pending, walk->pending_count, walk->pending_capacity)) {
        walk->memory_short = true;
        return BW_NO_DIRECTORY;
    }
    walk->pending[walk->pending_count++] = (struct bw_pending){inode, index};
    return index;
}

void bw_subvolume_walk_add_entry(struct bw_subvolume_walk *walk, uint64_t id, uint32_t directory,
                                 const char *name, size_t name_length)
{
    if (!BW_ARRAY_RESERVE(walk->entries, walk->entry_count, walk->entry_capacity)) {
        walk->memory_short = true;
        return;
    }
    size_t offset = walk->paths.length;
    bw_buffer_append(&walk->paths, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &walk->paths);
    bw_buffer_append(&walk->paths, name, name_length);
    bw_buffer_append_byte(&walk->paths, '/');
    walk->memory_short |= walk->paths.failed;
    walk->entries[walk->entry_count++] =
        (struct bw_subvolume_entry){id, offset, walk->paths.length - offset};
}

static void merge_subvolume(struct bw_subvolume_walk *walk, const struct bw_task_result *result,
                            const struct bw_found_subvolume *found, uint32_t directory)
{
    const char *name = result->names.data + found->name_offset;
    const struct bw_dir_entry entry = {.location.objectid = found->id,
                                       .name = (const uint8_t *)name,
                                       .name_length = found->name_length};
    if (bw_subvolume_of_entry(&walk->fs->subvolumes, walk->scope.tree->id, found->directory,
                              &entry))
        bw_subvolume_walk_add_entry(walk, found->id, directory, name, found->name_length);
}

static uint32_t resolve(uint32_t parent, const uint32_t *places)
{
    return parent & BW_FOUND_LOCAL ? places[parent & ~BW_FOUND_LOCAL] : parent;
}

/* Adds what a task found to the directory table. `places` gets the table index of each found
 * directory. */
static void merge_directories(struct bw_subvolume_walk *walk, const struct bw_task_result *result,
                              uint32_t *places)
{
    for (size_t i = 0; i < result->found_count; i++) {
        const struct bw_found_directory *found = &result->found[i];
        const char *name = result->names.data + found->name_offset;
        uint32_t parent = resolve(found->parent, places);
        places[i] = bw_directories_find(&walk->directories, found->inode);
        if (places[i] != BW_NO_DIRECTORY)
            bw_fs_report(walk->fs, BW_DAMAGE,
                         bw_error_create(BW_ERROR_CORRUPT,
                                         "tree %" PRIu64 ": directory inode %" PRIu64
                                         ": it has a second entry",
                                         walk->scope.tree->id, found->inode));
        else if (found->walked)
            places[i] = bw_directories_add(&walk->directories, found->inode, parent, name,
                                           found->name_length, walk->scope.wave);
        else
            places[i] = bw_subvolume_walk_add(walk, found->inode, parent, name, found->name_length);
        if (places[i] == BW_NO_DIRECTORY) {
            walk->memory_short = true;
            places[i] = 0;
        }
    }
}

static void merge(struct bw_subvolume_walk *walk, const struct bw_task_result *result)
{
    BW_AUTO_FREE uint32_t *places = malloc((result->found_count + 1) * sizeof *places);
    if (!places) {
        walk->memory_short = true;
        return;
    }
    merge_directories(walk, result, places);
    for (size_t i = 0; i < result->subvolume_count; i++)
        merge_subvolume(walk, result, &result->subvolumes[i],
                        resolve(result->subvolumes[i].parent, places));
    for (size_t i = 0; i < result->lost.count; i++)
        bw_subvolume_walk_lose(walk, &result->lost.items[i]);
    walk->summary->files += result->files;
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

/* Cuts what is pending into tasks: along the tree, unless only the adopted leaves are asked for,
 * and along those. */
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
    bw_subvolume_walk_flush(walk);
    walk->scope.wave = walk->wave;
    BW_TRY(make_tasks(walk, only_adopted));
    bw_output_restart(&walk->output);
    bw_pool_run(walk->pool, walk->task_count, run_task, walk);
    walk->wave += walk->wave < BW_LAST_WAVE;
    walk->pending_count = 0;
    for (size_t i = 0; i < walk->task_count; i++) {
        merge(walk, &walk->tasks[i].result);
        bw_task_result_free(&walk->tasks[i].result);
    }
    return walk->memory_short ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_subvolume_walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending_count = 0;
    for (uint32_t i = 0; i < walk->directories.count; i++) {
        if (!BW_ARRAY_RESERVE(walk->pending, walk->pending_count, walk->pending_capacity))
            return bw_error_no_memory();
        walk->pending[walk->pending_count++] =
            (struct bw_pending){walk->directories.items[i].inode, i};
    }
    return run_wave(walk, true);
}

struct bw_error *bw_subvolume_walk_waves(struct bw_subvolume_walk *walk)
{
    while (walk->pending_count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}

static void begin(struct bw_subvolume_walk *walk, const struct bw_walk_top *top)
{
    walk->scope = (struct bw_task_scope){.fs = walk->fs,
                                         .tree = &top->subvolume->tree,
                                         .directories = &walk->directories,
                                         .lost_blocks = &walk->lost_blocks,
                                         .prefix = top->prefix,
                                         .prefix_length = top->prefix_length,
                                         .silent = top->silent,
                                         .escape = walk->options->escape && !walk->writer,
                                         .terminator = walk->options->terminator,
                                         .output = &walk->output,
                                         .writer = walk->writer,
                                         .choice = walk->is_plain ? NULL : &walk->choice,
                                         .wanting = &walk->wanting};
    walk->pending_count = walk->lost.count = walk->adopted.count = 0;
    walk->wanting = 0;
    bw_map_clear(&walk->lost_blocks);
    walk->wave = 1;
}

struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top)
{
    begin(walk, top);
    if (!bw_directories_reset(&walk->directories, top->inode) ||
        !BW_ARRAY_RESERVE(walk->pending, walk->pending_count, walk->pending_capacity))
        return bw_error_no_memory();
    if (!bw_subvolume_walk_list_top(walk, top->inode) || top->shallow ||
        !bw_choice_enters(&walk->choice,
                          bw_choice_depth(&walk->choice, top->prefix, top->prefix_length)))
        return NULL;
    walk->pending[walk->pending_count++] = (struct bw_pending){top->inode, 0};
    return bw_subvolume_walk_waves(walk);
}

struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length)
{
    begin(walk, top);
    if (!bw_directories_reset(&walk->directories, top->inode))
        return bw_error_no_memory();
    bw_subvolume_walk_list(walk, 0, what, name, name_length);
    return walk->memory_short ? bw_error_no_memory() : NULL;
}
