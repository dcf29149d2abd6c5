/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a file system: which subvolumes to walk, in which order, and under which path each hangs. A
 * subvolume is walked when the walk of its parent has found its entry.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "btrfs-walk/walk.h"
#include "fs/directory.h"
#include "fs/fs.h"
#include "walk/recover.h"

enum { DEFAULT_THREADS_AT_MOST = 8, THREADS_AT_MOST = 32 };

/* All subvolumes of one walk. */
struct visit {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    struct bw_subvolume_walk walk;
    struct bw_map visited; /* ids */
    struct bw_map parents; /* ids of subvolumes that others hang in; filled for no_snapshots alone */
};

static unsigned thread_count(unsigned asked)
{
    if (asked)
        return asked < THREADS_AT_MOST ? asked : THREADS_AT_MOST;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1)
        return 1;
    return processors < DEFAULT_THREADS_AT_MOST ? (unsigned)processors : DEFAULT_THREADS_AT_MOST;
}

static struct bw_error *find_parents(struct visit *visit)
{
    const struct bw_subvolume_table *table = &visit->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].parent && !bw_map_put(&visit->parents, table->items[i].parent, 1))
            return bw_error_no_memory();
    return NULL;
}

/* Walks one subvolume; `prefix` is its path. A snapshot that is left out may still lead to others. */
static struct bw_error *visit_subvolume(struct visit *visit, uint64_t id, const char *prefix,
                                        size_t prefix_length)
{
    const struct bw_subvolume *subvolume = bw_subvolume_find(&visit->fs->subvolumes, id);
    if (bw_map_get(&visit->visited, id) != UINT32_MAX)
        return NULL;
    if (!bw_map_put(&visit->visited, id, 1))
        return bw_error_no_memory();
    bool silent = visit->options->no_snapshots && subvolume->is_snapshot;
    if (silent && bw_map_get(&visit->parents, id) == UINT32_MAX)
        return NULL;
    BW_TRY(bw_subvolume_walk_run(&visit->walk, subvolume, prefix, prefix_length, silent));
    BW_TRY(bw_recover(&visit->walk));
    bw_subvolume_walk_end(&visit->walk);
    visit->walk.summary->subvolumes++;
    visit->walk.summary->directories += visit->walk.directories.count;
    return NULL;
}

/* Walks the subvolumes whose entries were found, and those that they lead to in turn. */
static struct bw_error *visit_found(struct visit *visit)
{
    struct bw_subvolume_walk *walk = &visit->walk;
    struct bw_buffer prefix = {0};
    struct bw_error *error = NULL;
    for (size_t next = 0; next < walk->entry_count && !error && !bw_output_stopped(&walk->output); next++) {
        const struct bw_subvolume_entry entry = walk->entries[next];
        /* The walk adds to its paths and may move them. */
        prefix.length = 0;
        bw_buffer_append(&prefix, walk->paths.data + entry.path_offset, entry.path_length);
        error = prefix.failed ? bw_error_no_memory()
                              : visit_subvolume(visit, entry.id, prefix.data, prefix.length);
    }
    bw_buffer_free(&prefix);
    return error;
}

static struct bw_error *visit_one(struct visit *visit, const char *name)
{
    struct bw_buffer path = {0};
    uint64_t id;
    BW_TRY(bw_subvolume_lookup(visit->fs, name, &id));
    struct bw_error *error = bw_subvolume_path(visit->fs, id, &path);
    if (!error)
        error = visit_subvolume(visit, id, path.data, path.length);
    bw_buffer_free(&path);
    return error;
}

static struct bw_error *visit_all(struct visit *visit)
{
    if (visit->options->no_snapshots)
        BW_TRY(find_parents(visit));
    if (!bw_subvolume_find(&visit->fs->subvolumes, BW_TOP_SUBVOLUME)) {
        bw_fs_report(visit->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "root tree: the top-level subvolume is missing"));
        return NULL;
    }
    BW_TRY(visit_subvolume(visit, BW_TOP_SUBVOLUME, "/", 1));
    return visit_found(visit);
}

struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *given,
                         struct bw_walk_summary *summary)
{
    struct bw_walk_summary unused;
    struct bw_walk_options options = *given;
    struct visit visit = {.fs = fs, .options = &options};
    summary = summary ? summary : &unused;
    *summary = (struct bw_walk_summary){0};
    options.threads = thread_count(given->threads);
    struct bw_error *error = NULL;
    if (!bw_subvolume_walk_init(&visit.walk, fs, &options, summary))
        error = bw_error_no_memory();
    else if (options.subvolume)
        error = visit_one(&visit, options.subvolume);
    else
        error = visit_all(&visit);
    struct bw_error *output_error = bw_subvolume_walk_destroy(&visit.walk);
    bw_map_free(&visit.visited);
    bw_map_free(&visit.parents);
    if (!output_error)
        return error;
    bw_error_free(error);
    return output_error;
}
