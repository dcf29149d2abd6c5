/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waves: cutting the pending directories into tasks, running these, and merging what they have
 * found. */
#include "walk/waves.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "walk/listing.h"

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
static bool has_pending_entries(void *context, const struct bw_block_pointer *pointer)
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

/* Notes that a block is lost, and which keys with it. */
struct bw_error *bw_waves_lose(struct bw_subvolume_walk *walk, const struct bw_lost_range *range)
{
    if (range->bytenr != BW_NO_BLOCK && !bw_map_put(&walk->lost_blocks, range->bytenr, 1))
        return bw_error_no_memory();
    return bw_lost_ranges_add(&walk->lost, range);
}

struct bw_error *bw_waves_lose_node(void *context, const struct bw_block_pointer *pointer,
                                    struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, walk->wave);
    bw_fs_report_lost(walk->fs, pointer->bytenr, error);
    return bw_waves_lose(walk, &range);
}

static void run_task(void *context, unsigned worker, size_t number)
{
    struct bw_subvolume_walk *walk = context;
    struct bw_task_scratch **scratch = &walk->scratch[worker];
    struct bw_error *error = *scratch ? NULL
                                      : bw_task_scratch_create(walk->fs, walk->lists, walk->writer,
                                                               &walk->choice, scratch);
    if (!error) {
        bw_task_run(&walk->scope, *scratch, &walk->tasks[number], number);
        return;
    }
    struct bw_buffer none;
    bw_output_fail(&walk->output, error);
    bw_output_begin(&walk->output, number, &none);
    bw_output_finish(&walk->output, number, &none);
}

struct bw_error *bw_waves_add_pending(struct bw_subvolume_walk *walk, uint64_t inode,
                                      uint32_t index)
{
    if (!BW_ARRAY_RESERVE(walk->pending, walk->pending_count, walk->pending_capacity))
        return bw_error_no_memory();
    walk->pending[walk->pending_count++] = (struct bw_pending){inode, index};
    return NULL;
}

/* Adds a directory to the table, at `*index`, and to the next wave. */
struct bw_error *bw_waves_add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                        uint32_t parent, const void *name, size_t name_length,
                                        uint32_t *index)
{
    BW_TRY(bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave,
                              index));
    return bw_waves_add_pending(walk, inode, *index);
}

struct bw_error *bw_subvolume_entries_add(struct bw_subvolume_entries *entries, uint64_t id,
                                          size_t path_offset)
{
    if (entries->paths.failed ||
        !BW_ARRAY_RESERVE(entries->items, entries->count, entries->capacity))
        return bw_error_no_memory();
    entries->items[entries->count++] =
        (struct bw_subvolume_entry){id, path_offset, entries->paths.length - path_offset};
    return NULL;
}

void bw_subvolume_entries_free(struct bw_subvolume_entries *entries)
{
    free(entries->items);
    bw_buffer_free(&entries->paths);
    *entries = (struct bw_subvolume_entries){0};
}

/* Notes that a subvolume has the entry `name` in directory `directory` (index in the table). */
struct bw_error *bw_waves_add_subvolume(struct bw_subvolume_walk *walk, uint64_t id,
                                        uint32_t directory, const char *name, size_t name_length)
{
    struct bw_buffer *paths = &walk->found.paths;
    const size_t offset = paths->length;
    bw_buffer_append(paths, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, paths);
    bw_buffer_append(paths, name, name_length);
    bw_buffer_append_byte(paths, '/');
    return bw_subvolume_entries_add(&walk->found, id, offset);
}

/* The number in the table of a directory that may be the task's own. */
static uint32_t directory_number(uint32_t parent, const struct bw_packed *found)
{
    return parent & BW_FOUND_LOCAL ? bw_found_directory_place(found, parent & ~BW_FOUND_LOCAL)
                                   : parent;
}

/* Two tasks of a wave have found the same directory. */
static void report_second_entry(const struct bw_subvolume_walk *walk, uint64_t inode)
{
    bw_fs_report_once(walk->fs, bw_error_create(BW_ERROR_CORRUPT,
                                                "subvolume %" PRIu64 ": directory inode %" PRIu64
                                                ": it has a second entry",
                                                walk->scope.tree->id, inode));
}

/* Adds a directory that a task has found to the table; `place` gets its number. */
static struct bw_error *merge_directory(struct bw_subvolume_walk *walk,
                                        const struct bw_found_directory *found, uint32_t parent,
                                        uint32_t *place)
{
    struct bw_directory_table *table = &walk->directories;
    *place = bw_directories_find(table, found->inode);
    if (*place != BW_NO_DIRECTORY || bw_directories_is_closed(table, found->inode))
        report_second_entry(walk, found->inode);
    if (*place != BW_NO_DIRECTORY)
        return NULL;
    return found->walked ? bw_directories_add(table, found->inode, parent, found->name,
                                              found->name_length, walk->scope.wave, place)
                         : bw_waves_add_directory(walk, found->inode, parent, found->name,
                                                  found->name_length, place);
}

static struct bw_error *merge_closed(struct bw_subvolume_walk *walk, const struct bw_buffer *closed)
{
    const uint8_t *at = (const uint8_t *)closed->data;
    uint64_t inode = 0;
    while ((size_t)(at - (const uint8_t *)closed->data) < closed->length) {
        inode += bw_varint_get(&at);
        const bool known = bw_directories_find(&walk->directories, inode) != BW_NO_DIRECTORY;
        bool is_new;
        BW_TRY(bw_directories_close(&walk->directories, inode, &is_new));
        if (known || !is_new)
            report_second_entry(walk, inode);
    }
    return NULL;
}

static struct bw_error *merge_directories(struct bw_subvolume_walk *walk,
                                          const struct bw_packed *found)
{
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY;) {
        const struct bw_found_directory directory = bw_found_directory_get(found, number);
        uint32_t place;
        BW_TRY(
            merge_directory(walk, &directory, directory_number(directory.parent, found), &place));
        bw_found_directory_set_place(found, number, place);
        number = bw_packed_next(found, number, directory.size);
    }
    return NULL;
}

static struct bw_error *merge_result(struct bw_subvolume_walk *walk, const struct bw_task *task)
{
    const struct bw_task_result *result = &task->result;
    BW_TRY(merge_directories(walk, &result->found));
    BW_TRY(merge_closed(walk, &result->closed));
    for (size_t i = 0; i < result->subvolume_count; i++) {
        const struct bw_found_subvolume *found = &result->subvolumes[i];
        BW_TRY(bw_waves_add_subvolume(walk, found->id,
                                      directory_number(found->parent, &result->found),
                                      result->names.data + found->name_offset, found->name_length));
    }
    for (size_t i = 0; i < result->lost.count; i++)
        BW_TRY(bw_waves_lose(walk, &result->lost.items[i]));
    return NULL;
}

static struct bw_error *add_adopted_tasks(struct bw_subvolume_walk *walk)
{
    for (size_t i = 0; i < walk->adopted.count; i++) {
        const struct bw_adopted_leaf *leaf = &walk->adopted.leaves[i];
        if (!has_pending_entries(walk, &leaf->pointer))
            continue;
        BW_TRY(add_task(walk, &leaf->pointer));
        walk->tasks[walk->task_count - 1].since = leaf->wave;
    }
    return NULL;
}

/* Pending directories are often sorted already, and qsort() may allocate a copy of them. */
static void sort_pending(struct bw_subvolume_walk *walk)
{
    const struct bw_pending *pending = walk->pending;
    size_t i = 1;
    while (i < walk->pending_count && pending[i - 1].inode <= pending[i].inode)
        i++;
    if (i < walk->pending_count)
        qsort(walk->pending, walk->pending_count, sizeof *pending, bw_compare_first);
}

/* Cuts the pending directories into tasks: by the nodes of the tree, unless only the adopted leaves
 * are to be walked, and by those. */
static struct bw_error *make_tasks(struct bw_subvolume_walk *walk, bool only_adopted)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .wants = has_pending_entries, .pointer = add_task,
                                 .lost = bw_waves_lose_node, .context = walk};
    walk->task_count = 0;
    sort_pending(walk);
    if (!only_adopted)
        BW_TRY(bw_tree_scan(&walk->fs->reader, walk->scope.tree, &scan));
    return add_adopted_tasks(walk);
}

/* Runs the tasks of a wave, and merges their results. */
struct bw_error *bw_waves_run_tasks(struct bw_subvolume_walk *walk)
{
    walk->scope.wave = walk->wave;
    walk->scope.complete = !walk->lost.count;
    bw_output_restart(&walk->output);
    bw_pool_run(walk->pool, walk->task_count, run_task, walk);
    walk->wave += walk->wave < BW_LAST_WAVE;
    walk->pending_count = 0;
    /* If a task has failed or was stopped, its result may be incomplete and nothing needs it. */
    struct bw_error *error = NULL;
    for (size_t i = 0; i < walk->task_count; i++) {
        walk->summary->files += walk->tasks[i].result.files;
        if (!error && !bw_output_stopped(&walk->output))
            error = merge_result(walk, &walk->tasks[i]);
        bw_task_result_free(&walk->tasks[i].result);
    }
    return error;
}

static struct bw_error *run_wave(struct bw_subvolume_walk *walk, bool only_adopted)
{
    BW_TRY(bw_listing_flush(walk));
    BW_TRY(make_tasks(walk, only_adopted));
    return bw_waves_run_tasks(walk);
}

/* Walks all directories known so far through the adopted leaves alone. */
struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending_count = 0;
    for (uint32_t number = 0; number != BW_NO_DIRECTORY;) {
        const struct bw_directory directory = bw_directories_get(&walk->directories, number);
        BW_TRY(bw_waves_add_pending(walk, directory.inode, number));
        number = bw_directories_next(&walk->directories, number, &directory);
    }
    return run_wave(walk, true);
}

/* Runs waves until no directory is pending. */
struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk)
{
    while (walk->pending_count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}
