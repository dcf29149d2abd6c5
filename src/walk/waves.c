/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of one subvolume, in waves.
 *
 * The pending directories are sorted by inode, and a scan of the internal nodes shows below which
 * nodes of level 1 their entries are stored: each of these nodes is a task, with the directories
 * that it has entries of. Worker threads run the tasks; each follows the directories that it finds
 * below its own node at once. When all have ended, their results are merged in the order of the
 * tasks: directories that are stored elsewhere are pending for the next wave, entries of subvolumes
 * join the queue of the walk, lost blocks are noted for recovery. The first wave has only the top
 * directory; the last one finds no more directories. Then what lost blocks held is recovered
 * (lost_entries.c). Leaves below lost nodes that were found in another way ("adopted" leaves) are
 * tasks, too.
 *
 * Entries outside of tasks (the top directory, a start that is no directory, recovered entries)
 * have their own collector. It is flushed before the next wave begins, so that they are listed in
 * the order in which they were found.
 */
#include "walk/walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "btree/scan.h"
#include "fs/fs.h"
#include "walk/leaves.h"

/* Enough for the leaves of about half a million files that snapshots share. */
enum { ENTRY_CACHE_SIZE = 10 << 20 };

struct bw_error *bw_subvolume_walk_init(struct bw_subvolume_walk *walk, struct bw_fs *fs,
                                        const struct bw_walk_options *options,
                                        const struct bw_receiver *receiver,
                                        struct bw_walk_summary *summary)
{
    const bool snapshots = bw_subvolumes_have_snapshots(&fs->subvolumes);
    *walk = (struct bw_subvolume_walk){.fs = fs,
                                       .options = options,
                                       .threads = options->threads,
                                       .writer = &receiver->writer,
                                       .summary = summary,
                                       .choice = bw_choice_of(options)};
    bw_output_init(&walk->output, receiver->consume, receiver->context);
    walk->output.options = options;
    if (options->threads > 4)
        walk->output.window = 2 * (size_t)options->threads;
    if (walk->writer->is_records)
        walk->output.limit = BW_RECORDS_LIMIT;
    walk->pool = bw_pool_create(options->threads);
    walk->workers = calloc(options->threads, sizeof *walk->workers);
    if (snapshots)
        walk->lists = bw_entry_cache_create(ENTRY_CACHE_SIZE);
    if (!walk->pool || !walk->workers || (snapshots && !walk->lists))
        return bw_error_no_memory();
    return bw_collector_create(fs, walk->writer, &walk->choice, &walk->listed);
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
                                       .workers = outer->workers + worker,
                                       .lists = outer->lists};
    bw_output_init(&walk->output, NULL, NULL);
    walk->pool = bw_pool_create(1);
    if (!walk->pool)
        return bw_error_no_memory();
    return bw_collector_create(walk->fs, walk->writer, &walk->choice, &walk->listed);
}

struct bw_error *bw_subvolume_walk_destroy(struct bw_subvolume_walk *walk)
{
    if (!walk->outer) {
        for (unsigned i = 0; walk->workers && i < walk->threads; i++)
            bw_task_worker_destroy(walk->workers[i]);
        free(walk->workers);
        bw_entry_cache_destroy(walk->lists);
    }
    bw_pool_destroy(walk->pool);
    bw_directories_free(&walk->directories);
    bw_pending_list_free(&walk->pending);
    bw_tasks_free(&walk->tasks);
    free(walk->lost.items);
    bw_key_set_free(&walk->unclaimed);
    bw_key_map_free(&walk->lost_blocks);
    bw_adopted_free(&walk->adopted);
    bw_collector_destroy(walk->listed);
    bw_subvolume_entries_free(&walk->found);
    return bw_output_destroy(&walk->output);
}

/* Listing outside of tasks. */

/* Writes the entries listed outside of tasks; no task may be running. */
static struct bw_error *flush_listed(struct bw_subvolume_walk *walk)
{
    struct bw_buffer text = {0};
    if (bw_collector_is_empty(walk->listed))
        return NULL;
    bw_output_restart(&walk->output);
    bw_output_begin(&walk->output, 0, &text);
    struct bw_error *error =
        bw_collector_flush(walk->listed, &walk->scope, 0, &text, &walk->summary->files);
    bw_output_finish(&walk->output, 0, &text);
    return error;
}

/* Lists the file with a path, whose end is the name, if it is one of those listed. */
static struct bw_error *list_path(struct bw_subvolume_walk *walk, struct bw_buffer *path,
                                  const struct bw_collected *what, size_t name_length,
                                  bool *included)
{
    BW_TRY(bw_buffer_terminate(path));
    const size_t directory_length = path->length - 1 - name_length;
    const struct bw_named named = {path->data, path->length - 1, name_length,
                                   what->made_up ? BW_EMPTY_DIRECTORY : what->number,
                                   bw_known_type(what->type)};
    const unsigned depth = bw_choice_depth(&walk->choice, named.path, named.path_length);
    *included = !bw_selection_excludes(walk->choice.selection, &named);
    if (!*included || walk->scope.silent ||
        !bw_choice_lists(&walk->choice, walk->scope.tree->id, &named, depth))
        return NULL;
    BW_TRY(bw_collector_enter(walk->listed, path->data, directory_length));
    BW_TRY(bw_collector_add(walk->listed, what, path->data + directory_length, name_length));
    return bw_collector_is_full(walk->listed) ? flush_listed(walk) : NULL;
}

struct bw_error *bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *included)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, walk->scope.prefix, walk->scope.prefix_length);
    bw_any_directory_path(&walk->directories, NULL, directory, &path);
    bw_buffer_append(&path, name, name_length);
    return list_path(walk, &path, what, name_length, included);
}

bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type)
{
    return walk->choice.types >> bw_known_type(type) & 1;
}

bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory)
{
    unsigned depth =
        bw_choice_depth(&walk->choice, walk->scope.prefix, walk->scope.prefix_length) + 1;
    size_t length = walk->scope.prefix_length;
    struct bw_walked_directory at;
    for (; directory; directory = at.parent) {
        at = bw_directories_get(&walk->directories, directory);
        length += at.name_length + 1u;
        depth++;
    }
    return length < BW_LONGEST_PATH && bw_choice_enters(&walk->choice, depth);
}

/* Kept for the next wave and for recovery. */

/* Adds a directory, at `index` in the table, to the next wave. */
static struct bw_error *add_pending(struct bw_subvolume_walk *walk, uint64_t inode, uint32_t index)
{
    return bw_pending_list_push(&walk->pending, (struct bw_pending){inode, index});
}

struct bw_error *bw_waves_add_directory(struct bw_subvolume_walk *walk, uint64_t inode,
                                        uint32_t parent, const void *name, size_t name_length,
                                        uint32_t *index)
{
    BW_TRY(bw_directories_add(&walk->directories, inode, parent, name, name_length, walk->wave,
                              index));
    return add_pending(walk, inode, *index);
}

struct bw_error *bw_waves_add_subvolume(struct bw_subvolume_walk *walk, uint64_t id,
                                        uint32_t directory, const char *name, size_t name_length)
{
    struct bw_buffer *paths = &walk->found.paths;
    const size_t offset = paths->length;
    bw_buffer_append(paths, walk->scope.prefix, walk->scope.prefix_length);
    bw_any_directory_path(&walk->directories, NULL, directory, paths);
    bw_buffer_append(paths, name, name_length);
    bw_buffer_append_byte(paths, '/');
    return bw_subvolume_entries_add(&walk->found, id, offset);
}

struct bw_error *bw_waves_report_lost(struct bw_subvolume_walk *walk,
                                      const struct bw_lost_range *range)
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
static bool is_pending(const struct bw_subvolume_walk *walk, const struct bw_block_pointer *pointer)
{
    if (bw_key_map_has(&walk->lost_blocks, pointer->bytenr))
        return false;
    const size_t first = first_reaching(walk, &pointer->expectation.first_key);
    return first < walk->pending.count &&
           entries_begin_below(&walk->pending.items[first], &pointer->expectation.end_key);
}

static struct bw_error *add_task(struct bw_subvolume_walk *walk,
                                 const struct bw_block_pointer *pointer)
{
    size_t first = first_reaching(walk, &pointer->expectation.first_key), end = first;
    while (end < walk->pending.count &&
           entries_begin_below(&walk->pending.items[end], &pointer->expectation.end_key))
        end++;
    const struct bw_task task = {
        .pointer = *pointer, .pending = walk->pending.items + first, .pending_count = end - first};
    return bw_tasks_push(&walk->tasks, task);
}

/* Merging results. */

static struct bw_error *merge_result(struct bw_subvolume_walk *walk,
                                     const struct bw_task_result *result)
{
    struct bw_directory_table *table = &walk->directories;
    const struct bw_packed *found = &result->found;
    static const char twice[] = "it has a second entry"; /* of another task */

    /* Directories join the table. If they have entries in other nodes, they wait for the next
     * wave. */
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY;) {
        const struct bw_walked_directory directory = bw_found_directory_get(found, number);
        const uint32_t parent = bw_any_directory_place(found, directory.parent);
        uint32_t place = bw_directories_find(table, directory.inode);
        if (place != BW_NO_DIRECTORY || bw_directories_is_closed(table, directory.inode))
            bw_scope_report(&walk->scope, "directory inode", directory.inode, twice);
        if (place == BW_NO_DIRECTORY && directory.walked)
            BW_TRY(bw_directories_add(table, directory.inode, parent, directory.name,
                                      directory.name_length, walk->scope.wave, &place));
        else if (place == BW_NO_DIRECTORY)
            BW_TRY(bw_waves_add_directory(walk, directory.inode, parent, directory.name,
                                          directory.name_length, &place));
        bw_found_directory_set_place(found, number, place);
        number = bw_packed_next(found, number, directory.size);
    }

    const uint8_t *at = (const uint8_t *)result->closed.data;
    const uint8_t *end = at ? at + result->closed.length : at;
    for (uint64_t inode = 0; at < end;) {
        inode += bw_varint_get(&at);
        const bool known = bw_directories_find(table, inode) != BW_NO_DIRECTORY;
        bool is_new;
        BW_TRY(bw_directories_close(table, inode, &is_new));
        if (known || !is_new)
            bw_scope_report(&walk->scope, "directory inode", inode, twice);
    }

    for (size_t i = 0; i < result->subvolumes.count; i++) {
        const struct bw_found_subvolume *entry = &result->subvolumes.items[i];
        BW_TRY(bw_waves_add_subvolume(walk, entry->id, bw_any_directory_place(found, entry->parent),
                                      result->names.data + entry->name_offset, entry->name_length));
    }
    for (size_t i = 0; i < result->lost.count; i++)
        BW_TRY(bw_waves_report_lost(walk, &result->lost.items[i]));

    walk->has_omitted |= result->has_omitted;
    uint64_t inode;
    bool is_new;
    for (size_t position = 0; bw_key_set_next(&result->unclaimed, &position, &inode);)
        if (!bw_directories_knows(table, inode))
            BW_TRY(bw_key_set_add(&walk->unclaimed, inode, &is_new));
    return NULL;
}

/* Running waves. */

void bw_scope_report(const struct bw_task_scope *scope, const char *kind, uint64_t inode,
                     const char *damage)
{
    bw_fs_report_once(scope->fs, BW_DAMAGE,
                      bw_error_create(BW_ERROR_CORRUPT, "subvolume %" PRIu64 ": %s %" PRIu64 ": %s",
                                      scope->tree->id, kind, inode, damage));
}

enum { NODES_AHEAD = 8 }; /* more than most machines have threads */

static void run_task(void *context, unsigned number, size_t task)
{
    struct bw_subvolume_walk *walk = context;
    struct bw_task_worker **worker = &walk->workers[number];
    struct bw_error *error = NULL;
    if (!*worker)
        error = bw_task_worker_create(walk->fs, walk->lists, walk->writer, &walk->choice, worker);
    /* Announce the node of a task that begins when this one has ended. */
    if (task + NODES_AHEAD < walk->tasks.count) {
        const struct bw_range node = {walk->tasks.items[task + NODES_AHEAD].pointer.bytenr,
                                      walk->fs->reader.nodesize};
        bw_blocks_advise(&walk->fs->reader, &node, 1);
    }
    if (!error) {
        bw_task_run(&walk->scope, *worker, &walk->tasks.items[task], task);
        return;
    }
    struct bw_buffer none;
    bw_output_fail(&walk->output, error);
    bw_output_begin(&walk->output, task, &none);
    bw_output_finish(&walk->output, task, &none);
}

/* Runs a wave: by the nodes of the tree, unless only the adopted leaves are to be walked, and by
 * those. */
static struct bw_error *run_wave(struct bw_subvolume_walk *walk, bool only_adopted)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    const struct bw_pending *pending = walk->pending.items;
    size_t sorted = 1;
    BW_TRY(flush_listed(walk));

    /* The pending directories are often sorted already, and qsort() may allocate a copy of them. */
    while (sorted < walk->pending.count && pending[sorted - 1].inode <= pending[sorted].inode)
        sorted++;
    if (sorted < walk->pending.count)
        qsort(walk->pending.items, walk->pending.count, sizeof *pending, bw_compare_first);

    walk->tasks.count = 0;
    if (!only_adopted)
        bw_block_scan_begin(&scan, &walk->fs->reader, walk->scope.tree);
    while (!only_adopted && bw_block_scan_next(&scan)) {
        const bool has_task = scan.pointer.expectation.level <= 1;
        if (scan.error) {
            const struct bw_lost_range range = bw_lost_range_of(&scan.pointer, walk->wave);
            bw_fs_report_lost(walk->fs, scan.pointer.bytenr, BW_TAKE(scan.error));
            BW_TRY(bw_waves_report_lost(walk, &range));
        } else if (is_pending(walk, &scan.pointer)) {
            scan.selected = !has_task;
            if (has_task)
                BW_TRY(add_task(walk, &scan.pointer));
        }
    }
    BW_TRY(bw_block_scan_end(&scan));
    for (size_t i = 0; i < walk->adopted.leaves.count; i++) {
        const struct bw_adopted_leaf *leaf = &walk->adopted.leaves.items[i];
        if (!is_pending(walk, &leaf->pointer))
            continue;
        BW_TRY(add_task(walk, &leaf->pointer));
        walk->tasks.items[walk->tasks.count - 1].since = leaf->wave;
    }

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

struct bw_error *bw_waves_run(struct bw_subvolume_walk *walk)
{
    while (walk->pending.count && !bw_output_stopped(&walk->output))
        BW_TRY(run_wave(walk, false));
    return NULL;
}

struct bw_error *bw_waves_walk_adopted(struct bw_subvolume_walk *walk)
{
    walk->pending.count = 0;
    for (uint32_t number = 0; number != BW_NO_DIRECTORY;) {
        const struct bw_walked_directory directory = bw_directories_get(&walk->directories, number);
        BW_TRY(add_pending(walk, directory.inode, number));
        number = bw_directories_next(&walk->directories, number, &directory);
    }
    return run_wave(walk, true);
}

/* The walk of a subvolume. */

/* Begins with a subvolume: nothing of it is known but its top directory. */
static struct bw_error *begin_subvolume(struct bw_subvolume_walk *walk,
                                        const struct bw_walk_top *top)
{
    const bool enters_all = top->inode == BW_SUBVOLUME_ROOT_INODE && !top->shallow &&
                            !walk->choice.selection && !walk->choice.has_maxdepth;
    walk->scope = (struct bw_task_scope){.fs = walk->fs,
                                         .tree = &top->subvolume->tree,
                                         .root_leaf = top->root_leaf,
                                         .directories = &walk->directories,
                                         .lost_blocks = &walk->lost_blocks,
                                         .prefix = top->prefix,
                                         .prefix_length = top->prefix_length,
                                         .silent = top->silent,
                                         .is_whole = enters_all,
                                         .output = &walk->output,
                                         .writer = walk->writer,
                                         .choice = &walk->choice,
                                         .wanting = &walk->wanting};
    walk->pending.count = walk->lost.count = walk->adopted.leaves.count = 0;
    walk->wanting = 0;
    walk->has_omitted = false;
    bw_key_map_clear(&walk->lost_blocks);
    bw_key_set_clear(&walk->unclaimed);
    walk->wave = 1;
    return bw_directories_reset(&walk->directories, top->inode);
}

/* Writes the entries that were listed outside of tasks, and reports the rest of the damage. */
static struct bw_error *end_subvolume(struct bw_subvolume_walk *walk)
{
    BW_TRY(flush_listed(walk));
    bw_collector_report_rest(&walk->scope);
    return NULL;
}

struct bw_error *bw_subvolume_walk_run(struct bw_subvolume_walk *walk,
                                       const struct bw_walk_top *top)
{
    BW_TRY(begin_subvolume(walk, top));

    /* The top directory itself; its name is the last one of the prefix, or '/'. */
    const struct bw_collected what = {.number = top->inode, .type = BW_FILE_DIRECTORY};
    size_t length = top->prefix_length, start;
    length -= length > 1;
    for (start = length - 1; start && top->prefix[start - 1] != '/'; start--)
        ;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bool included;
    bw_buffer_append(&path, top->prefix, length);
    BW_TRY(list_path(walk, &path, &what, length - start, &included));

    const unsigned depth = bw_choice_depth(&walk->choice, top->prefix, top->prefix_length);
    if (included && !top->shallow && bw_choice_enters(&walk->choice, depth)) {
        BW_TRY(add_pending(walk, top->inode, 0));
        BW_TRY(bw_waves_run(walk));
    }
    BW_TRY(bw_lost_entries_list(walk));
    if (!top->shallow) {
        walk->summary->subvolumes++;
        walk->summary->directories += walk->directories.count;
    }
    return end_subvolume(walk);
}

struct bw_error *bw_subvolume_walk_single(struct bw_subvolume_walk *walk,
                                          const struct bw_walk_top *top,
                                          const struct bw_collected *what, const char *name,
                                          size_t name_length)
{
    bool included;
    BW_TRY(begin_subvolume(walk, top));
    BW_TRY(bw_subvolume_walk_list(walk, 0, what, name, name_length, &included));
    return end_subvolume(walk);
}

/* Entries of subvolumes. */

struct bw_error *bw_subvolume_entries_add(struct bw_subvolume_entries *entries, uint64_t id,
                                          size_t path_offset)
{
    BW_TRY(bw_buffer_error(&entries->paths));
    return bw_subvolume_entry_list_push(
        &entries->list,
        (struct bw_subvolume_entry){id, path_offset, entries->paths.length - path_offset});
}

void bw_subvolume_entries_free(struct bw_subvolume_entries *entries)
{
    bw_subvolume_entry_list_free(&entries->list);
    bw_buffer_free(&entries->paths);
    *entries = (struct bw_subvolume_entries){0};
}
