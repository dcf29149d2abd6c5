/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The waves of a subvolume's walk.
 *
 * The pending directories are sorted by inode, and a scan of the internal nodes shows below which
 * nodes of level 1 their entries are stored: each of these nodes is a task, with the directories
 * that it has entries of. Worker threads run the tasks; each follows the directories that it finds
 * below its own node at once. When all have ended, their results are merged in the order of the
 * tasks: directories that are stored elsewhere are pending for the next wave, entries of subvolumes
 * join the queue of the walk, lost blocks are noted for recovery.
 *
 * Leaves below lost nodes that were found in another way ("adopted" leaves) are tasks, too.
 */
#include "walk/walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"

/* What the next wave and recovery will need. */

struct bw_error *bw_waves_add_pending(struct bw_subvolume_walk *walk, uint64_t inode,
                                      uint32_t index)
{
    return bw_pending_list_push(&walk->pending, (struct bw_pending){inode, index});
}

struct bw_error *bw_waves_add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                        uint32_t parent, const void *name, size_t name_length,
                                        uint32_t *index)
{
    BW_TRY(bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave,
                              index));
    return bw_waves_add_pending(walk, inode, *index);
}

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

struct bw_error *bw_waves_lose(struct bw_subvolume_walk *walk, const struct bw_lost_range *range)
{
    if (range->bytenr != BW_NO_BLOCK)
        BW_TRY(bw_key_map_put(&walk->lost_blocks, range->bytenr, 1));
    return bw_lost_ranges_push(&walk->lost, *range);
}

/* Making tasks. */

/* The first pending directory that may have entries at or after `key`. */
static size_t first_reaching(const struct bw_subvolume_walk *walk, const struct bw_key *key)
{
    const struct bw_pending *pending = walk->pending.items;
    return BW_FIRST_INDEX(i, walk->pending.count,
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
    if (bw_key_map_has(&walk->lost_blocks, pointer->bytenr))
        return false;
    size_t first = first_reaching(walk, &pointer->expectation.first_key);
    return first < walk->pending.count &&
           entries_begin_below(&walk->pending.items[first], &pointer->expectation.end_key);
}

static struct bw_error *add_task(void *context, const struct bw_block_pointer *pointer)
{
    struct bw_subvolume_walk *walk = context;
    size_t first = first_reaching(walk, &pointer->expectation.first_key), end = first;
    while (end < walk->pending.count &&
           entries_begin_below(&walk->pending.items[end], &pointer->expectation.end_key))
        end++;
    const struct bw_task task = {
        .pointer = *pointer, .pending = walk->pending.items + first, .pending_count = end - first};
    return bw_tasks_push(&walk->tasks, task);
}

static struct bw_error *lose_node(void *context, const struct bw_block_pointer *pointer,
                                  struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, walk->wave);
    bw_fs_report_lost(walk->fs, pointer->bytenr, error);
    return bw_waves_lose(walk, &range);
}

/* Cuts the pending directories into tasks: by the nodes of the tree, unless only the adopted leaves
 * are to be walked, and by those. */
static struct bw_error *make_tasks(struct bw_subvolume_walk *walk, bool only_adopted)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .wants = has_pending_entries, .pointer = add_task,
                                 .lost = lose_node, .context = walk};
    const struct bw_pending *pending = walk->pending.items;
    size_t sorted = 1;
    walk->tasks.count = 0;

    /* They are often sorted already, and qsort() may allocate a copy of them. */
    while (sorted < walk->pending.count && pending[sorted - 1].inode <= pending[sorted].inode)
        sorted++;
    if (sorted < walk->pending.count)
        qsort(walk->pending.items, walk->pending.count, sizeof *pending, bw_compare_first);

    if (!only_adopted)
        BW_TRY(bw_tree_scan(&walk->fs->reader, walk->scope.tree, &scan));
    for (size_t i = 0; i < walk->adopted.leaves.count; i++) {
        const struct bw_adopted_leaf *leaf = &walk->adopted.leaves.items[i];
        if (!has_pending_entries(walk, &leaf->pointer))
            continue;
        BW_TRY(add_task(walk, &leaf->pointer));
        walk->tasks.items[walk->tasks.count - 1].since = leaf->wave;
    }
    return NULL;
}

/* Merging results. */

/* The number in the table of a directory that may be the task's own. */
static uint32_t directory_number(uint32_t parent, const struct bw_packed *found)
{
    if (parent & BW_FOUND_LOCAL)
        return bw_found_directory_place(found, parent & ~BW_FOUND_LOCAL);
    return parent;
}

/* Two tasks of a wave have found the same directory. */
static void report_second_entry(const struct bw_subvolume_walk *walk, uint64_t inode)
{
    bw_fs_report_once(walk->fs, bw_error_create(BW_ERROR_CORRUPT,
                                                "subvolume %" PRIu64 ": directory inode %" PRIu64
                                                ": it has a second entry",
                                                walk->scope.tree->id, inode));
}

/* Adds the directories that a task has found to the table, and notes their numbers there. */
static struct bw_error *merge_directories(struct bw_subvolume_walk *walk,
                                          const struct bw_packed *found)
{
    struct bw_directory_table *table = &walk->directories;
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY;) {
        const struct bw_found_directory directory = bw_found_directory_get(found, number);
        const uint32_t parent = directory_number(directory.parent, found);
        uint32_t place = bw_directories_find(table, directory.inode);
        if (place != BW_NO_DIRECTORY || bw_directories_is_closed(table, directory.inode))
            report_second_entry(walk, directory.inode);
        if (place == BW_NO_DIRECTORY && directory.walked)
            BW_TRY(bw_directories_add(table, directory.inode, parent, directory.name,
                                      directory.name_length, walk->scope.wave, &place));
        else if (place == BW_NO_DIRECTORY)
            BW_TRY(bw_waves_add_directory(walk, directory.inode, parent, directory.name,
                                          directory.name_length, &place));
        bw_found_directory_set_place(found, number, place);
        number = bw_packed_next(found, number, directory.size);
    }
    return NULL;
}

static struct bw_error *merge_result(struct bw_subvolume_walk *walk,
                                     const struct bw_task_result *result)
{
    BW_TRY(merge_directories(walk, &result->found));

    const uint8_t *at = (const uint8_t *)result->closed.data;
    const uint8_t *end = at ? at + result->closed.length : at;
    for (uint64_t inode = 0; at < end;) {
        inode += bw_varint_get(&at);
        const bool known = bw_directories_find(&walk->directories, inode) != BW_NO_DIRECTORY;
        bool is_new;
        BW_TRY(bw_directories_close(&walk->directories, inode, &is_new));
        if (known || !is_new)
            report_second_entry(walk, inode);
    }

    for (size_t i = 0; i < result->subvolumes.count; i++) {
        const struct bw_found_subvolume *found = &result->subvolumes.items[i];
        BW_TRY(bw_waves_add_subvolume(walk, found->id,
                                      directory_number(found->parent, &result->found),
                                      result->names.data + found->name_offset, found->name_length));
    }
    for (size_t i = 0; i < result->lost.count; i++)
        BW_TRY(bw_waves_lose(walk, &result->lost.items[i]));
    return NULL;
}

/* Running waves. */

static void run_task(void *context, unsigned number, size_t task)
{
    struct bw_subvolume_walk *walk = context;
    struct bw_task_worker **worker = &walk->workers[number];
    struct bw_error *error = NULL;
    if (!*worker)
        error = bw_task_worker_create(walk->fs, walk->lists, walk->writer, &walk->choice, worker);
    if (!error) {
        bw_task_run(&walk->scope, *worker, &walk->tasks.items[task], task);
        return;
    }
    struct bw_buffer none;
    bw_output_fail(&walk->output, error);
    bw_output_begin(&walk->output, task, &none);
    bw_output_finish(&walk->output, task, &none);
}

static struct bw_error *run_wave(struct bw_subvolume_walk *walk, bool only_adopted)
{
    BW_TRY(bw_subvolume_walk_flush(walk));
    BW_TRY(make_tasks(walk, only_adopted));
    walk->scope.wave = walk->wave;
    walk->scope.complete = !walk->lost.count;
    bw_output_restart(&walk->output);
    bw_pool_run(walk->pool, walk->tasks.count, run_task, walk);
    walk->wave += walk->wave < BW_LAST_WAVE;
    walk->pending.count = 0;
    /* If a task has failed or was stopped, its result may be incomplete and nothing needs it. */
    struct bw_error *error = NULL;
    for (size_t i = 0; i < walk->tasks.count; i++) {
        struct bw_task_result *result = &walk->tasks.items[i].result;
        walk->summary->files += result->files;
        if (!error && !bw_output_stopped(&walk->output))
            error = merge_result(walk, result);
        bw_task_result_free(result);
    }
    return error;
}

struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending.count = 0;
    for (uint32_t number = 0; number != BW_NO_DIRECTORY;) {
        const struct bw_directory directory = bw_directories_get(&walk->directories, number);
        BW_TRY(bw_waves_add_pending(walk, directory.inode, number));
        number = bw_directories_next(&walk->directories, number, &directory);
    }
    return run_wave(walk, true);
}

struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk)
{
    while (walk->pending.count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}
