/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of one subvolume: listing outside of tasks, waves of tasks, and recovery. A wave cuts
 * the pending directories into tasks, runs them, and merges what they have found.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/listing.h"
#include "walk/subvolume_walk.h"

/* Waves of tasks. */

/* Enough for the leaves of about half a million files that snapshots share. */
enum { ENTRY_CACHE_SIZE = 10 << 20 };

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

struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk)
{
    for (unsigned i = 0; walk->scratch && i < walk->options->threads; i++)
        bw_task_scratch_destroy(walk->scratch[i]);
    free(walk->scratch);
    bw_pool_destroy(walk->pool);
    bw_entry_cache_destroy(walk->lists);
    bw_directories_free(&walk->directories);
    free(walk->pending);
    free(walk->tasks);
    free(walk->lost.items);
    bw_map_free(&walk->lost_blocks);
    bw_number_set_free(&walk->unresolved);
    bw_number_set_free(&walk->queued);
    bw_shard_cuts_free(&walk->shared_cuts);
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
    if (walk->scope.nodes &&
        !bw_shard_is_sparse_at(walk->scope.nodes, &pointer->expectation.first_key))
        return NULL;
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
static struct bw_error *add_lost_range(struct bw_subvolume_walk *walk,
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
    return add_lost_range(walk, &range);
}

static void run_task(void *context, unsigned worker, size_t number)
{
    struct bw_subvolume_walk *walk = context;
    struct bw_task_scratch **scratch = &walk->scratch[worker];
    struct bw_error *error =
        *scratch ? NULL
                 : bw_task_scratch_create(walk->fs, walk->lists, walk->writer, &walk->choice,
                                          walk->options->shards, scratch);
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

/* Adds a directory to the table, at `*index`, and to the next wave. */
static struct bw_error *add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                      uint32_t parent, const void *name, size_t name_length,
                                      uint32_t *index)
{
    BW_TRY(bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave,
                              index));
    return add_pending(walk, inode, *index);
}

/* Notes that a subvolume has the entry `name` in directory `directory` (index in the table). */
static struct bw_error *add_subvolume_entry(struct bw_subvolume_walk *walk, uint64_t id,
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

/* The number in the table of a directory that may be the task's own. */
static uint32_t resolve(uint32_t parent, const struct bw_packed *found)
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

/* The same as merge_directory() for a shard. */
static struct bw_error *merge_directory_of_shard(struct bw_subvolume_walk *walk,
                                                 const struct bw_found_directory *found,
                                                 uint32_t parent, uint32_t *place)
{
    bool is_new = false;
    *place = bw_directories_find(&walk->directories, found->inode);
    if (*place == BW_NO_DIRECTORY)
        BW_TRY(bw_directories_add(&walk->directories, found->inode, parent, found->name,
                                  found->name_length, walk->scope.wave, place));
    if (found->walked)
        return NULL;
    if (!bw_number_set_add(&walk->queued, found->inode, &is_new))
        return bw_error_no_memory();
    if (!is_new)
        report_second_entry(walk, found->inode);
    return is_new ? add_pending(walk, found->inode, *place) : NULL;
}

/* Adds a directory that a task has found to the table; `place` gets its number. */
static struct bw_error *merge_directory(struct bw_subvolume_walk *walk,
                                        const struct bw_found_directory *found, uint32_t parent,
                                        uint32_t *place)
{
    struct bw_directory_table *table = &walk->directories;
    if (walk->scope.nodes)
        return merge_directory_of_shard(walk, found, parent, place);
    *place = bw_directories_find(table, found->inode);
    if (*place != BW_NO_DIRECTORY || bw_directories_is_closed(table, found->inode))
        report_second_entry(walk, found->inode);
    if (*place != BW_NO_DIRECTORY)
        return NULL;
    return found->walked
               ? bw_directories_add(table, found->inode, parent, found->name, found->name_length,
                                    walk->scope.wave, place)
               : add_directory(walk, found->inode, parent, found->name, found->name_length, place);
}

static struct bw_error *merge_closed(struct bw_subvolume_walk *walk, const struct bw_buffer *closed)
{
    const uint8_t *at = (const uint8_t *)closed->data, *end = at + closed->length;
    uint64_t inode = 0;
    while (at != end) {
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
        BW_TRY(merge_directory(walk, &directory, resolve(directory.parent, found), &place));
        bw_found_directory_set_place(found, number, place);
        number = bw_packed_next(found, number, directory.size);
    }
    return NULL;
}

static struct bw_error *merge(struct bw_subvolume_walk *walk, const struct bw_task_result *result)
{
    BW_TRY(merge_directories(walk, &result->found));
    BW_TRY(merge_closed(walk, &result->closed));
    for (size_t i = 0; i < result->subvolume_count; i++) {
        const struct bw_found_subvolume *found = &result->subvolumes[i];
        BW_TRY(add_subvolume_entry(walk, found->id, resolve(found->parent, &result->found),
                                   result->names.data + found->name_offset, found->name_length));
    }
    for (size_t i = 0; i < result->lost.count; i++)
        BW_TRY(add_lost_range(walk, &result->lost.items[i]));
    for (size_t i = 0; i < result->unresolved_count; i++) {
        bool is_new;
        if (!bw_number_set_add(&walk->unresolved, result->unresolved[i], &is_new))
            return bw_error_no_memory();
    }
    walk->summary->files += result->files;
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
                                 .lost = lost_node, .context = walk};
    walk->task_count = 0;
    sort_pending(walk);
    if (!only_adopted)
        BW_TRY(bw_tree_scan(&walk->fs->reader, walk->scope.tree, &scan));
    return add_adopted_tasks(walk);
}

/* Runs the tasks of a wave, and merges their results. */
static struct bw_error *run_tasks(struct bw_subvolume_walk *walk)
{
    walk->scope.wave = walk->wave;
    walk->scope.complete = !walk->lost.count;
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

static struct bw_error *run_wave(struct bw_subvolume_walk *walk, bool only_adopted)
{
    BW_TRY(bw_listing_flush(walk));
    BW_TRY(make_tasks(walk, only_adopted));
    return run_tasks(walk);
}

/* Walks all directories known so far through the adopted leaves alone. */
static struct bw_error *walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending_count = 0;
    for (uint32_t number = 0; number != BW_NO_DIRECTORY;) {
        const struct bw_directory directory = bw_directories_get(&walk->directories, number);
        BW_TRY(add_pending(walk, directory.inode, number));
        number = bw_directories_next(&walk->directories, number, &directory);
    }
    return run_wave(walk, true);
}

/* Runs waves until no directory is pending. */
static struct bw_error *run_waves(struct bw_subvolume_walk *walk)
{
    while (walk->pending_count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}

/*
 * Recovery in a walk. Each name of a directory is also stored with its inode, so most names whose
 * directory entries were lost with a block can be found in the rest of the tree
 * (recovery/lost_names.c). Directories among them are walked like any other. If the search finds
 * more lost blocks, it is repeated for their contents.
 */

/* A name whose directory was not known when it was found. The bytes are in the recovery's buffer.
 */
struct waiting_name {
    struct bw_lost_name name; /* but for the bytes */
    size_t offset;
};

struct recovery {
    struct bw_subvolume_walk *walk;
    struct bw_lost_names names;
    struct bw_map unreachable; /* directories without a known path to the top */
    struct bw_map listed;      /* hashes of directory and name of recovered entries */
    struct waiting_name *waiting;
    size_t waiting_count, waiting_capacity;
    struct bw_buffer waiting_bytes;
    uint64_t index; /* of the name that is being restored; 0: unknown */
};

static uint32_t wave_of(void *context, uint64_t directory)
{
    const struct bw_directory_table *table = &((struct recovery *)context)->walk->directories;
    uint32_t index = bw_directories_find(table, directory);
    if (index != BW_NO_DIRECTORY)
        return bw_directories_get(table, index).wave;
    return bw_directories_is_closed(table, directory) ? 0 : UINT32_MAX;
}

/* A directory above, and its name in the next one. */
struct ancestor {
    uint64_t inode;
    struct bw_parent_step up;
};

struct ancestors {
    struct ancestor *steps;
    size_t count, capacity;
};

/* Follows parents from an unknown directory up to one in the table; `*index` is BW_NO_DIRECTORY if
 * none is reached. Directories are marked on the way, and unmarked when the table is reached: a
 * circle ends at its own mark. */
static struct bw_error *find_known_ancestor(struct recovery *recovery, uint64_t inode,
                                            struct ancestors *above, uint32_t *index)
{
    const struct bw_subvolume_walk *walk = recovery->walk;
    while ((*index = bw_directories_find(&walk->directories, inode)) == BW_NO_DIRECTORY) {
        if (inode <= BW_SUBVOLUME_ROOT_INODE || bw_map_get(&recovery->unreachable, inode) == 1)
            return NULL;
        if (!bw_map_put(&recovery->unreachable, inode, 1) ||
            !BW_ARRAY_RESERVE(above->steps, above->count, above->capacity))
            return bw_error_no_memory();
        struct ancestor *ancestor = &above->steps[above->count];
        ancestor->inode = inode;
        struct bw_error *error = bw_inode_step_up(walk->fs, walk->scope.tree, inode, &ancestor->up);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_error_free(error);
        if (error)
            return NULL;
        inode = ancestor->up.parent;
        above->count++;
    }
    return NULL;
}

/* The outcome for a name. */
enum { LISTED = 1, LEFT_OUT = 2 };

/* Lists a name, unless a shard lists only missing entries and this is not one of them. */
static struct bw_error *list_if_missing(struct recovery *recovery, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *included)
{
    struct bw_task_scope *scope = &recovery->walk->scope;
    const struct bw_lost_name found = {.directory =
                                           bw_directories_get(scope->directories, directory).inode,
                                       .index = recovery->index};
    const bool lists = !scope->missing || bw_missing_has_name(scope->missing, &found);
    const bool silent = scope->silent;
    if (scope->missing && lists && what->type == BW_FILE_DIRECTORY &&
        !bw_missing_follow(scope->missing, what->number))
        return bw_error_no_memory();
    scope->silent |= !lists;
    struct bw_error *error =
        bw_listing_add_entry(recovery->walk, directory, what, name, name_length, included);
    scope->silent = silent;
    return error;
}

/* Lists a name, unless that was done before: a leaf that only a lenient scan can read may contain
 * it again. `*included` is false if it is excluded, with everything below it. */
static struct bw_error *list_once(struct recovery *recovery, uint32_t directory,
                                  const struct bw_collected *what, const void *name,
                                  size_t name_length, bool *included)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    uint64_t hash = bw_fs_name_hash(
        walk->fs, bw_directories_get(&walk->directories, directory).inode, name, name_length);
    uint32_t state = bw_map_get(&recovery->listed, hash);
    *included = state == LISTED;
    if (state != UINT32_MAX)
        return NULL;
    BW_TRY(list_if_missing(recovery, directory, what, name, name_length, included));
    return bw_map_put(&recovery->listed, hash, *included ? LISTED : LEFT_OUT)
               ? NULL
               : bw_error_no_memory();
}

/* Lists a directory, unless that was done before, and adds it to the table; `*index` is
 * BW_NO_DIRECTORY if it is excluded, or too deep. */
static struct bw_error *restore_directory(struct recovery *recovery, uint64_t inode,
                                          uint32_t parent, const void *name, size_t name_length,
                                          uint32_t *index)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    bool included;
    if (bw_directories_is_closed(&recovery->walk->directories, inode))
        return bw_directories_reopen(&recovery->walk->directories, inode, parent, name, name_length,
                                     index);
    *index = BW_NO_DIRECTORY;
    BW_TRY(list_once(recovery, parent, &what, name, name_length, &included));
    if (!included || !bw_listing_enters(recovery->walk, parent))
        return NULL;
    if (!bw_map_put(&recovery->unreachable, inode, 0))
        return bw_error_no_memory();
    return add_directory(recovery->walk, inode, parent, name, name_length, index);
}

/* The table index of a directory, which is added with all the unknown ones above it;
 * BW_NO_DIRECTORY if that cannot be done. */
static struct bw_error *ensure_directory(struct recovery *recovery, uint64_t inode, uint32_t *index)
{
    struct ancestors above = {0};
    struct bw_error *error = find_known_ancestor(recovery, inode, &above, index);
    while (!error && *index != BW_NO_DIRECTORY && above.count) {
        const struct ancestor *ancestor = &above.steps[--above.count];
        error = restore_directory(recovery, ancestor->inode, *index, ancestor->up.name,
                                  ancestor->up.name_length, index);
    }
    free(above.steps);
    return error;
}

/* A directory may become known when others that were brought back are walked: its names wait. */
static struct bw_error *wait_for_directory(struct recovery *recovery,
                                           const struct bw_lost_name *found)
{
    size_t offset = recovery->waiting_bytes.length;
    bw_buffer_append(&recovery->waiting_bytes, found->name, found->name_length);
    if (recovery->waiting_bytes.failed ||
        !BW_ARRAY_RESERVE(recovery->waiting, recovery->waiting_count, recovery->waiting_capacity))
        return bw_error_no_memory();
    recovery->waiting[recovery->waiting_count++] = (struct waiting_name){*found, offset};
    return NULL;
}

/* Brings back a name: a directory is walked like any other, a file is listed. */
static struct bw_error *restore_name(void *context, const struct bw_lost_name *found)
{
    struct recovery *recovery = context;
    struct bw_subvolume_walk *walk = recovery->walk;
    uint32_t directory, index;
    bool included;
    if (!bw_name_is_valid(found->name, found->name_length) ||
        found->inode <= BW_SUBVOLUME_ROOT_INODE ||
        (found->type != BW_FILE_DIRECTORY && !bw_subvolume_walk_lists(walk, found->type)))
        return NULL;
    recovery->index = 0;
    BW_TRY(ensure_directory(recovery, found->directory, &directory));
    if (directory == BW_NO_DIRECTORY)
        return wait_for_directory(recovery, found);
    recovery->index = found->index;
    const bool known = bw_directories_find(&walk->directories, found->inode) != BW_NO_DIRECTORY ||
                       bw_directories_is_closed(&walk->directories, found->inode);
    if (known && (found->type == BW_FILE_DIRECTORY || found->type == BW_FILE_UNKNOWN))
        return NULL;
    if (found->type == BW_FILE_DIRECTORY)
        return restore_directory(recovery, found->inode, directory, found->name, found->name_length,
                                 &index);
    const struct bw_collected what = {.number = found->inode, .type = found->type};
    return list_once(recovery, directory, &what, found->name, found->name_length, &included);
}

static struct bw_error *on_lost_range(void *context, const struct bw_lost_range *range)
{
    return add_lost_range(((struct recovery *)context)->walk, range);
}

/* Subvolumes whose entry was lost: the root tree has their names. */
static struct bw_error *recover_subvolumes(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_subvolume_table *table = &walk->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        uint32_t directory;
        if (subvolume->deleted || subvolume->parent != walk->scope.tree->id ||
            !bw_lost_names_has(&recovery->names, subvolume->directory, subvolume->index))
            continue;
        BW_TRY(ensure_directory(recovery, subvolume->directory, &directory));
        if (directory != BW_NO_DIRECTORY)
            BW_TRY(add_subvolume_entry(walk, subvolume->tree.id, directory,
                                       bw_subvolume_name(table, subvolume),
                                       subvolume->name_length));
    }
    return NULL;
}

/* Tries again with names that wait; `*any`: whether one of their directories is known now. */
static struct bw_error *retry_waiting_names(struct recovery *recovery, bool *any)
{
    size_t kept = 0, count = recovery->waiting_count;
    for (size_t i = 0; i < count; i++) {
        struct waiting_name waiting = recovery->waiting[i];
        if (bw_directories_find(&recovery->walk->directories, waiting.name.directory) ==
            BW_NO_DIRECTORY) {
            recovery->waiting[kept++] = waiting;
            continue;
        }
        waiting.name.name = (const uint8_t *)recovery->waiting_bytes.data + waiting.offset;
        BW_TRY(restore_name(recovery, &waiting.name));
    }
    recovery->waiting_count = kept;
    *any = kept < count;
    return NULL;
}

static struct bw_error *recover_once(struct recovery *recovery)
{
    bool again = true;
    recovery->waiting_count = recovery->waiting_bytes.length = 0;
    BW_TRY(bw_lost_names_find(&recovery->names));
    BW_TRY(recover_subvolumes(recovery));
    while (again) {
        BW_TRY(run_waves(recovery->walk));
        BW_TRY(retry_waiting_names(recovery, &again));
    }
    return NULL;
}

/* A round may find that more is lost. Each block is lost only once, so that ends; hostile keys get
 * no more rounds than this. */
enum { MAX_ROUNDS = 8 };

static struct bw_error *repeat_recovery(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    struct bw_lost_names *names = &recovery->names;
    for (unsigned round = 0; round < MAX_ROUNDS && !bw_output_stopped(&walk->output); round++) {
        bw_lost_list_free(&names->handled);
        names->handled = names->lost;
        names->lost = (struct bw_lost_list){0};
        BW_TRY(bw_lost_list_make(&walk->lost, 0, &names->lost));
        if (bw_lost_lists_equal(&names->lost, &names->handled))
            break;
        BW_TRY(recover_once(recovery));
    }
    return NULL;
}

/* Leaves below lost nodes first: they hold whole directories, in order. The walk has read only the
 * nodes it needed. */
static struct bw_error *adopt(struct bw_subvolume_walk *walk)
{
    struct bw_lost_ranges nodes = {0};
    struct bw_error *error = bw_find_lost_nodes(walk->fs, walk->scope.tree, walk->wave, &nodes);
    for (size_t i = 0; i < nodes.count && !error; i++)
        error = add_lost_range(walk, &nodes.items[i]);
    free(nodes.items);
    BW_TRY(error);
    BW_TRY(bw_adopt_leaves(walk->fs, walk->scope.tree, &walk->lost, &walk->adopted));
    if (!walk->adopted.count)
        return NULL;
    BW_TRY(walk_adopted(walk));
    return run_waves(walk);
}

/* Lists what lost blocks held, as far as the rest of the tree has it. Costs nothing if no block
 * was lost. */
static struct bw_error *recover(struct bw_subvolume_walk *walk)
{
    if (!walk->lost.count)
        return NULL;
    struct recovery recovery = {.walk = walk};
    recovery.names = (struct bw_lost_names){.fs = walk->fs,
                                            .tree = walk->scope.tree,
                                            .adopted = &walk->adopted,
                                            .wave = &walk->wave,
                                            .wave_of = wave_of,
                                            .take = restore_name,
                                            .lose = on_lost_range,
                                            .context = &recovery};
    struct bw_error *error = adopt(walk);
    if (!error)
        error = repeat_recovery(&recovery);
    walk->summary->lost_blocks += walk->lost_blocks.count;
    bw_lost_list_free(&recovery.names.lost);
    bw_lost_list_free(&recovery.names.handled);
    bw_lost_names_free(&recovery.names);
    bw_map_free(&recovery.unreachable);
    bw_map_free(&recovery.listed);
    free(recovery.waiting);
    bw_buffer_free(&recovery.waiting_bytes);
    return error;
}

/* Running the walk of a subvolume. */

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

/* Writes the entries listed outside of tasks. */
static struct bw_error *end(struct bw_subvolume_walk *walk)
{
    BW_TRY(bw_listing_flush(walk));
    bw_collector_report_rest(&walk->scope);
    return NULL;
}

struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top)
{
    bool included;
    BW_TRY(begin(walk, top));
    BW_TRY(bw_listing_add_top(walk, top->inode, &included));
    if (included && !top->shallow &&
        bw_choice_enters(&walk->choice,
                         bw_choice_depth(&walk->choice, top->prefix, top->prefix_length))) {
        BW_TRY(add_pending(walk, top->inode, 0));
        BW_TRY(run_waves(walk));
    }
    BW_TRY(recover(walk));
    return end(walk);
}

/* Shards. */

/* A node above level 1 that cannot be read. Its whole range belongs to the first shard. */
static struct bw_error *on_lost_above(void *context, const struct bw_block_pointer *pointer,
                                      struct bw_error *error)
{
    struct bw_subvolume_walk *walk = context;
    if (walk->options->shard == 1)
        return lost_node(walk, pointer, error);
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
        error = bw_shard_cuts_make(&walk->shared_cuts, &nodes, shard);
    bw_shard_nodes_free(&nodes);
    return error;
}

/* Finds the nodes of the tree, and its cuts; `own` has them if it shares no leaves. */
static struct bw_error *cut(struct bw_subvolume_walk *walk, const struct bw_subvolume *subvolume,
                            struct bw_shard shard, struct bw_shard_nodes *nodes,
                            struct bw_shard_cuts *own)
{
    BW_TRY(bw_shard_nodes_load(nodes, &walk->fs->reader, &subvolume->tree, on_lost_above, walk));
    nodes->cuts = bw_shard_shares(subvolume) ? &walk->shared_cuts : own;
    return bw_shard_shares(subvolume) ? get_shared_cuts(walk, shard)
                                      : bw_shard_cuts_make(own, nodes, shard);
}

/* Lists the entries that are missing because of damage, by a walk of the whole subvolume. */
static struct bw_error *list_missing(struct bw_subvolume_walk *walk, const struct bw_walk_top *top,
                                     struct bw_shard_nodes *nodes)
{
    struct bw_missing missing = {
        .nodes = nodes, .unresolved = walk->unresolved, .lock = PTHREAD_MUTEX_INITIALIZER};
    BW_TRY(bw_lost_list_make(&walk->lost, 0, &missing.lost));
    struct bw_error *error = end(walk);
    if (!error)
        error = begin(walk, top);
    walk->scope.missing = &missing;
    if (!error)
        error = add_pending(walk, top->inode, 0);
    if (!error)
        error = run_waves(walk);
    if (!error)
        error = recover(walk);
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
    BW_TRY(run_tasks(walk));
    if (nodes->cuts->shard.number == 1) {
        if (!bw_number_set_add(&walk->queued, top->inode, &is_new))
            return bw_error_no_memory();
        BW_TRY(add_pending(walk, top->inode, 0));
    }
    BW_TRY(run_waves(walk));
    walk->scope.nodes = NULL;
    return walk->lost.count || walk->unresolved.count ? list_missing(walk, top, nodes) : NULL;
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
    return end(walk);
}

struct bw_error *bw_subvolume_walk_run_part(struct bw_subvolume_walk *walk,
                                            const struct bw_walk_top *top, struct bw_shard shard)
{
    struct bw_shard_nodes nodes = {0};
    struct bw_shard_cuts cuts = {0};
    BW_TRY(begin(walk, top));
    bw_number_set_free(&walk->unresolved);
    bw_number_set_free(&walk->queued);
    struct bw_error *error = cut(walk, top->subvolume, shard, &nodes, &cuts);
    if (!error)
        error = bw_shard_divides(&nodes, top->subvolume->bytes, shard)
                    ? run_divided(walk, top, &nodes)
                    : run_share(walk, top, shard);
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
    BW_TRY(begin(walk, top));
    BW_TRY(bw_listing_add_entry(walk, 0, what, name, name_length, &included));
    return end(walk);
}
