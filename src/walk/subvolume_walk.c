/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of one subvolume: its top directory is listed, the directories below it are walked in
 * waves (waves.c), and what lost blocks held is recovered (lost_entries.c).
 *
 * Entries outside of tasks (the top directory, a start that is no directory, recovered entries)
 * have their own collector. It is flushed before the next wave begins, so that they are listed in
 * the order in which they were found.
 */
#include "walk/walk.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/fs.h"

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
    bw_key_map_free(&walk->lost_blocks);
    bw_adopted_free(&walk->adopted);
    bw_collector_destroy(walk->listed);
    bw_subvolume_entries_free(&walk->found);
    return bw_output_destroy(&walk->output);
}

/* Listing outside of tasks. */

struct bw_error *bw_subvolume_walk_flush(struct bw_subvolume_walk *walk)
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

/* Lists the file with a path, whose end is the name. */
static struct bw_error *list_path(struct bw_subvolume_walk *walk, struct bw_buffer *path,
                                  const struct bw_collected *what, size_t name_length,
                                  bool *included)
{
    bw_buffer_append_byte(path, '\0');
    if (path->failed)
        return bw_error_no_memory();
    const size_t directory_length = path->length - 1 - name_length;
    const struct bw_named named = {path->data, path->length - 1, name_length,
                                   what->made_up ? BW_EMPTY_DIRECTORY : what->number,
                                   bw_known_type(what->type)};
    *included = !bw_selection_excludes(walk->choice.selection, &named);
    if (!*included || walk->scope.silent ||
        !bw_choice_lists(&walk->choice, walk->scope.tree->id, &named,
                         bw_choice_depth(&walk->choice, named.path, named.path_length)))
        return NULL;
    BW_TRY(bw_collector_enter(walk->listed, path->data, directory_length));
    BW_TRY(bw_collector_add(walk->listed, what, path->data + directory_length, name_length));
    return bw_collector_is_full(walk->listed) ? bw_subvolume_walk_flush(walk) : NULL;
}

struct bw_error *bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *included)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &path);
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
    struct bw_directory at;
    for (; directory; directory = at.parent) {
        at = bw_directories_get(&walk->directories, directory);
        length += at.name_length + 1u;
        depth++;
    }
    return length < BW_LONGEST_PATH && bw_choice_enters(&walk->choice, depth);
}

/* The walk. */

/* Begins with a subvolume: nothing of it is known but its top directory. */
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
    walk->pending.count = walk->lost.count = walk->adopted.leaves.count = 0;
    walk->wanting = 0;
    bw_key_map_clear(&walk->lost_blocks);
    walk->wave = 1;
    return bw_directories_reset(&walk->directories, top->inode);
}

/* Writes the entries that were listed outside of tasks, and reports the rest of the damage. */
static struct bw_error *end_subvolume(struct bw_subvolume_walk *walk)
{
    BW_TRY(bw_subvolume_walk_flush(walk));
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
        BW_TRY(bw_waves_add_pending(walk, top->inode, 0));
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
    if (entries->paths.failed)
        return bw_error_no_memory();
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
