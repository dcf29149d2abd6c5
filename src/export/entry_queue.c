/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The starting points of walks, and the queue between the walks and the reader of files. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/file_type.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/thread.h"
#include "base/vector.h"
#include "btrfs-walk/history.h"
#include "export/entry_queue.h"

/* Starting points are sorted by their absolute paths, so each one follows those that contain it. */

static void free_point(struct bw_starting_point *point)
{
    free(point->older);
    free(point->name);
}

void bw_starting_point_apply(const struct bw_starting_point *point, struct bw_walk_options *options)
{
    options->start = point->older ? point->older : point->path;
    if (!point->older)
        return;
    options->nested =
        bw_nested_enters(options->nested, options->subvolume) ? BW_NESTED_ENTER : BW_NESTED_SKIP;
    options->subvolume = NULL; /* the older path is absolute */
}

/* A path given by the caller. */
struct named {
    size_t number;          /* its index */
    struct bw_buffer path;  /* absolute, with '/' at both ends; empty if the path does not exist */
    struct bw_buffer older; /* the same of bw_starting_point.older; empty: it has the same path */
    const struct named *around; /* the nearest starting point above it or equal to it; NULL: none */
};

/* Sorts paths so that each follows the ones around it, and only paths inside of these are in
 * between. */
static int compare_named(const void *left, const void *right)
{
    const struct named *one = left, *other = right;
    size_t common = one->path.length < other->path.length ? one->path.length : other->path.length;
    int order = common ? memcmp(one->path.data, other->path.data, common) : 0;
    if (!order)
        order = (one->path.length > other->path.length) - (one->path.length < other->path.length);
    return order ? order : (one->number > other->number) - (one->number < other->number);
}

static bool begins_with(const struct bw_buffer *path, const struct bw_buffer *start)
{
    return start->length && start->length <= path->length &&
           memcmp(path->data, start->data, start->length) == 0;
}

/* Whether a walk from `around` finds a starting point: it is there, and was there in the generation
 * that is read. */
static bool is_below(const struct named *named, const struct named *around)
{
    const struct bw_buffer *from = named->older.length ? &named->older : &named->path;
    const struct bw_buffer *top = around->older.length ? &around->older : &around->path;
    return begins_with(&named->path, &around->path) && begins_with(from, top) &&
           from->length - top->length == named->path.length - around->path.length &&
           memcmp(from->data + top->length, named->path.data + around->path.length,
                  from->length - top->length) == 0;
}

/* Finds the file of the newer generation in this one: sets the names if it has another one here,
 * and `is_another` if this generation only has a different file at the path. */
static struct bw_error *find_older_name(struct bw_fs *fs, struct bw_fs *newer,
                                        const struct bw_walk_options *given,
                                        struct bw_starting_point *point)
{
    struct bw_walk_options options = *given;
    const struct bw_subvolume *from = NULL, *from_newer = NULL;
    struct bw_place place, same, found;
    struct bw_inode inode, found_inode;
    BW_AUTO_FREE char *name = NULL, *older = NULL;
    options.struct_size = sizeof options;
    options.start = point->path;
    BW_AUTO_ERROR struct bw_error *error = bw_walk_start_path(newer, &options, &name, NULL);
    if (!error && options.subvolume)
        error = bw_subvolume_by_name(newer, options.subvolume, &from_newer);
    if (error)
        return bw_error_tolerate(BW_TAKE(error));
    BW_AUTO_ERROR struct bw_error *missing =
        options.subvolume ? bw_subvolume_by_name(fs, options.subvolume, &from) : NULL;
    if (!missing)
        missing = bw_lookup(fs, from, name, false, &same);
    BW_AUTO_ERROR struct bw_error *unknown = bw_lookup(newer, from_newer, name, false, &place);
    if (!unknown)
        unknown = bw_inode_get(newer, &place, &inode);
    if (!unknown)
        unknown = bw_lookup_older(fs, &place, &inode, &found, &found_inode, &older);
    if (unknown && unknown->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(unknown);
    if (missing && missing->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(missing);
    if (!unknown && !missing && same.subvolume == found.subvolume && same.inode == found.inode)
        return NULL;
    if (!unknown && older) {
        point->older = BW_TAKE(older);
        point->name = BW_TAKE(name);
        return NULL;
    }
    if (!missing)
        missing = bw_inode_get(fs, &same, &inode);
    if (!missing)
        missing = bw_lookup_older(newer, &same, &inode, &found, &found_inode, NULL);
    point->is_another = !missing && found_inode.link_count;
    return bw_error_tolerate(BW_TAKE(missing));
}

static void append_text(struct bw_buffer *path, const char *text)
{
    bw_buffer_append(path, text, strlen(text));
    if (path->length > 1)
        bw_buffer_append_byte(path, '/');
}

/* Finds the paths of the starting points, then removes those that others above them include. */
static struct bw_error *find_points(struct bw_fs *fs, struct bw_fs *newer,
                                    const struct bw_walk_options *options, struct named *all,
                                    struct bw_starting_points *starts)
{
    const size_t count = starts->count;
    for (size_t i = 0; i < count; i++) {
        struct bw_starting_point *point = &starts->points[i];
        all[i].number = i;
        if (newer)
            BW_TRY(find_older_name(fs, newer, options, point));
        if (point->older) {
            append_text(&all[i].path, point->name);
            append_text(&all[i].older, point->older);
            if (all[i].path.failed || all[i].older.failed)
                return bw_error_no_memory();
        } else if (count > 1 && !point->is_another) {
            /* The walk reports a path that does not exist. */
            struct bw_walk_options own = *options;
            BW_AUTO_FREE char *text = NULL;
            own.struct_size = sizeof own;
            own.start = point->path;
            BW_TRY(bw_error_tolerate(bw_walk_start_path(fs, &own, &text, NULL)));
            if (text)
                append_text(&all[i].path, text);
            BW_TRY(bw_buffer_error(&all[i].path));
        }
    }

    /* In this order, each path follows the paths around it. */
    qsort(all, count, sizeof *all, compare_named);
    for (size_t i = 1; i < count; i++) {
        const struct named *around = &all[i - 1];
        while (around && !is_below(&all[i], around))
            around = around->around;
        all[i].around = around;
    }

    /* A point with another one around it adds only entries that are too deep for that one: the
     * paths of these have a least number of names. */
    for (size_t i = 0; i < count; i++) {
        struct bw_starting_point *point = &starts->points[all[i].number];
        const struct bw_buffer *path = &all[i].path;
        bool has_own_entries = !all[i].around;
        if (all[i].around && options->has_maxdepth) {
            const struct bw_buffer *around = &all[i].around->path;
            point->least_names =
                bw_path_names(around->data, around->length) + options->maxdepth + 1;
            has_own_entries =
                point->least_names <= bw_path_names(path->data, path->length) + options->maxdepth;
        }
        if (!has_own_entries) {
            free_point(point);
            *point = (struct bw_starting_point){.path = NULL};
        }
    }
    starts->count = 0;
    for (size_t i = 0; i < count; i++)
        if (starts->points[i].path)
            starts->points[starts->count++] = starts->points[i];
    return NULL;
}

struct bw_error *bw_starting_points_find(struct bw_fs *fs, struct bw_fs *newer,
                                         const struct bw_walk_options *options,
                                         const char *const *paths, size_t count,
                                         struct bw_starting_points *starts)
{
    *starts = (struct bw_starting_points){0};
    if (!count)
        return NULL;
    BW_AUTO_FREE struct named *all = calloc(count, sizeof *all);
    starts->points = calloc(count, sizeof *starts->points);
    if (!all || !starts->points)
        return bw_error_no_memory();
    starts->count = count;
    for (size_t i = 0; i < count; i++)
        starts->points[i].path = paths[i];
    struct bw_error *error = find_points(fs, newer, options, all, starts);
    for (size_t i = 0; i < count; i++) {
        bw_buffer_free(&all[i].path);
        bw_buffer_free(&all[i].older);
    }
    return error;
}

void bw_starting_points_free(struct bw_starting_points *starts)
{
    for (size_t i = 0; i < starts->count; i++)
        free_point(&starts->points[i]);
    free(starts->points);
    *starts = (struct bw_starting_points){0};
}

/*
 * The queue between the walk and the reader of files. It is short: the walk waits if it is far
 * ahead, so memory usage does not depend on the image. Items are reused, including their buffers
 * for paths.
 */

enum { QUEUE_ITEMS = 2048, LONG_PATH = 4096 };

/* A single thread of the walk finds files faster than they are read. More threads help only on slow
 * disks, and each keeps entries that wait for their turn. */
enum { WALK_THREADS = 4 };

/* The number of places that an item occupies in the queue, because a crafted image may contain long
 * paths. */
static size_t weight_of(const struct bw_export_entry *item)
{
    return 1 + item->path.length / LONG_PATH;
}

/* An entry that waits to be sorted. */
struct waiting {
    struct bw_place place;
    struct bw_inode inode;
    size_t path, length; /* in the paths */
    bool has_inode;
};

BW_VECTOR(waiting_entries, struct waiting);

struct bw_entry_queue {
    struct bw_fs *fs;
    struct bw_entry_queue_options options;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_export_entry *first, **last; /* the queue */
    size_t count;
    struct bw_export_entry *spare;
    bool ended, stop;
    struct bw_error *error; /* the error that ended the walk; NULL after bw_entry_queue_next()
                             * returned it */
    size_t start_length;    /* length of the starting point's path */
    /* Only for the walk's thread: */
    const struct bw_starting_point *start; /* of this walk; NULL: the top */
    struct bw_buffer renamed;              /* the newer path of an entry */
    struct waiting_entries waiting;
    struct bw_buffer paths; /* of those */
};

static void free_item(struct bw_export_entry *item)
{
    bw_error_free(item->error);
    bw_buffer_free(&item->path);
    bw_buffer_free(&item->written);
    free(item);
}

struct bw_error *bw_image_error(struct bw_error *error)
{
    if (error && error->code == BW_ERROR_SYSTEM) {
        error->code = BW_ERROR_CORRUPT;
        error->system = 0;
    }
    return error;
}

struct bw_error *bw_export_entry_loss(struct bw_export_entry *item)
{
    struct bw_error *error = BW_TAKE(item->error);
    if (!error && !item->has_inode)
        error = bw_error_create(BW_ERROR_CORRUPT, "its inode is lost");
    if (!error)
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "directory entry and inode disagree about the file type");
    return bw_error_prefix(error, "%s", item->path.data);
}

struct bw_error *bw_export_entry_read_link(const struct bw_export_entry *item, struct bw_fs *fs,
                                           struct bw_buffer *target)
{
    BW_AUTO_FREE char *text = NULL;
    size_t length;
    BW_TRY(bw_image_error(bw_inode_readlink(fs, &item->place, &text, &length)));
    bw_buffer_append(target, text, length + 1);
    target->length -= !target->failed;
    return bw_buffer_error(target);
}

struct bw_error *bw_salvaged_error(const char *path)
{
    return bw_error_create(
        BW_ERROR_CORRUPT,
        "%s: its inode is lost: its size is the end of its last extent; the other "
        "fields of the inode are made up",
        path);
}

/* Finds the inode of an entry by its name, as the kernel opens files. The entry itself, which a
 * walk and readdir(3) use, is in another item: one of the two may have a wrong number, or name. */
static void find_by_name(struct bw_entry_queue *queue, struct bw_export_entry *item)
{
    struct bw_place place;
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup(queue->fs, NULL, item->path.data, false, &place);
    struct bw_inode inode;
    if (error || place.subvolume != item->place.subvolume || place.inode == item->place.inode)
        return;
    error = bw_inode_get(queue->fs, &place, &inode);
    if (error)
        return;
    item->place = place;
    item->inode = inode;
    item->has_inode = true;
    item->type = item->inode.mode & S_IFMT;
}

/* Finds where the exported name begins in an entry's path; false if the name would be empty, so the
 * entry is omitted. */
static bool find_name(const struct bw_entry_queue *queue, const struct bw_entry *entry,
                      size_t *name)
{
    const char *path = entry->path;
    size_t length = entry->path_length, at = 0;
    if (queue->options.naming.relative)
        at = queue->start_length;
    if (at >= length && entry->place.type != BW_FILE_DIRECTORY) {
        const char *slash = memrchr(path, '/', length);
        at = slash ? (size_t)(slash - path) : 0;
    }
    at += at < length && path[at] == '/';
    for (unsigned left = queue->options.naming.components; left; left--) {
        const char *slash = at < length ? memchr(path + at, '/', length - at) : NULL;
        if (!slash)
            return false;
        at = (size_t)(slash - path) + 1;
    }
    *name = at < length ? at : length;
    return true;
}

static void fill_item(struct bw_entry_queue *queue, struct bw_export_entry *item,
                      const struct bw_entry *entry)
{
    struct bw_buffer path = item->path, written = item->written;
    path.length = written.length = 0;
    bw_buffer_append(&path, entry->path, entry->path_length);
    bw_buffer_append_byte(&path, '\0');
    *item = (struct bw_export_entry){.path = path,
                                     .written = written,
                                     .place = entry->place,
                                     .type = bw_mode_of_file_type(entry->place.type)};
    item->path.length -= !path.failed;
    if (entry->inode) {
        item->has_inode = true;
        item->inode = *entry->inode;
        item->type = entry->inode->mode & S_IFMT; /* like the kernel, trust the inode rather than
                                                   * the directory entry */
    }
    /* An entry in a tree block with a wrong checksum may have the name of another one. */
    const bool is_doubtful = item->type != S_IFDIR && bw_fs_status(queue->fs).unverified_blocks;
    if ((!entry->inode || is_doubtful) && !path.failed)
        find_by_name(queue, item);
    /* The inode of a file is reconstructed from its extents. If it has none, it has no inode. */
    if (!item->has_inode && queue->options.salvage && item->type == S_IFREG && !path.failed) {
        BW_AUTO_ERROR struct bw_error *error =
            bw_inode_salvage(queue->fs, &item->place, &item->inode);
        item->has_inode = item->salvaged = !error;
        if (!error)
            queue->options.missed(queue->options.context, NULL, bw_salvaged_error(item->path.data));
    }
}

static struct bw_error *enqueue_entry(void *context, const struct bw_entry *given)
{
    struct bw_entry_queue *queue = context;
    struct bw_entry own = *given, *entry = &own;
    const struct bw_starting_point *start = queue->start;
    if (start && start->older) {
        /* The path that the starting point has in this generation becomes its newer one. */
        const size_t length = strlen(start->older);
        struct bw_buffer *path = &queue->renamed;
        if (entry->path_length >= length && memcmp(entry->path, start->older, length) == 0) {
            path->length = 0;
            bw_buffer_append(path, start->name, strlen(start->name));
            bw_buffer_append(path, entry->path + length, entry->path_length - length);
            BW_TRY(bw_buffer_error(path));
            entry->path = path->data;
            entry->path_length = path->length;
        }
    }
    if (start && start->least_names &&
        bw_path_names(entry->path, entry->path_length) < start->least_names)
        return NULL;
    size_t name;
    if (!find_name(queue, entry, &name))
        return NULL;
    pthread_mutex_lock(&queue->lock);
    struct bw_export_entry *item = queue->spare;
    if (item)
        queue->spare = item->next;
    pthread_mutex_unlock(&queue->lock);
    item = item ? item : calloc(1, sizeof *item);
    if (!item)
        return bw_error_no_memory();
    fill_item(queue, item, entry);
    item->name = name;
    item->next = NULL;
    if (item->path.failed) {
        free_item(item);
        return bw_error_no_memory();
    }

    /* It enters the queue as soon as there is room. */
    pthread_mutex_lock(&queue->lock);
    while (queue->count >= QUEUE_ITEMS && !queue->stop)
        pthread_cond_wait(&queue->changed, &queue->lock);
    const bool stop = queue->stop;
    *queue->last = item;
    queue->last = &item->next;
    if (queue->count == 0)
        pthread_cond_broadcast(&queue->changed);
    queue->count += weight_of(item);
    pthread_mutex_unlock(&queue->lock);
    return stop ? bw_error_create(BW_ERROR_STOPPED, "the queue was closed") : NULL;
}

static struct bw_error *add_to_sort(void *context, const struct bw_entry *entry)
{
    struct bw_entry_queue *queue = context;
    BW_TRY(waiting_entries_reserve(&queue->waiting, 1));
    struct waiting *waiting = &queue->waiting.items[queue->waiting.count++];
    *waiting = (struct waiting){.place = entry->place,
                                .path = queue->paths.length,
                                .length = entry->path_length,
                                .has_inode = entry->inode != NULL};
    if (entry->inode)
        waiting->inode = *entry->inode;
    bw_buffer_append(&queue->paths, entry->path, entry->path_length);
    return bw_buffer_error(&queue->paths);
}

static int by_names(const void *left, const void *right, void *context)
{
    const struct waiting *a = left, *b = right;
    const char *paths = context;
    return bw_compare_paths(paths + a->path, a->length, paths + b->path, b->length);
}

static struct bw_error *enqueue_sorted(struct bw_entry_queue *queue)
{
    struct waiting_entries *list = &queue->waiting;
    if (list->count)
        qsort_r(list->items, list->count, sizeof *list->items, by_names, queue->paths.data);
    for (size_t i = 0; i < list->count; i++) {
        const struct waiting *waiting = &list->items[i];
        const struct bw_entry entry = {.path = queue->paths.data + waiting->path,
                                       .path_length = waiting->length,
                                       .place = waiting->place,
                                       .inode = waiting->has_inode ? &waiting->inode : NULL};
        BW_TRY(enqueue_entry(queue, &entry));
    }
    return NULL;
}

/* Runs one walk. If its starting point does not exist, reports that; the other walks continue. */
static struct bw_error *walk_from(struct bw_entry_queue *queue,
                                  const struct bw_starting_point *start, unsigned types)
{
    struct bw_walk_options options = queue->options.walk;
    queue->start = start;
    options.struct_size = sizeof options;
    options.start = NULL;
    if (start)
        bw_starting_point_apply(start, &options);
    options.types = types;
    options.visit = queue->options.sorted ? add_to_sort : enqueue_entry;
    options.visit_inodes = true;
    options.context = queue;
    options.threads = bw_pool_workers(options.threads);
    if (options.threads > WALK_THREADS)
        options.threads = WALK_THREADS;

    /* The length of the path that names are relative to. The walk reports a path that does not
     * exist. */
    BW_AUTO_FREE char *path = NULL;
    struct bw_error *error = NULL;
    queue->start_length = 0;
    if (queue->options.naming.relative && start && start->older)
        queue->start_length = strlen(start->name);
    else if (queue->options.naming.relative)
        error = bw_walk_start_path(queue->fs, &options, &path, &queue->start_length);
    BW_TRY(bw_error_tolerate(BW_TAKE(error)));

    if (start && start->is_another)
        error = bw_error_create(BW_ERROR_NOT_FOUND,
                                "%s: this generation has another file there, renamed since",
                                start->path);
    else
        error = bw_walk(queue->fs, &options, NULL);
    if (!error)
        error = enqueue_sorted(queue);
    queue->waiting.count = queue->paths.length = 0;
    bool another = error && start && error->code != BW_ERROR_STOPPED &&
                   error->code != BW_ERROR_NO_MEMORY && error->code != BW_ERROR_USAGE;
    if (!another)
        return error;
    if (types == queue->options.passes[0])
        queue->options.missed(queue->options.context, start->path, error);
    else
        bw_error_free(error);
    return NULL;
}

static void *run_walks(void *argument)
{
    struct bw_entry_queue *queue = argument;
    const struct bw_entry_queue_options *options = &queue->options;
    const struct bw_starting_points *starts = options->starts;
    struct bw_error *error = NULL;
    for (const unsigned *types = options->passes; *types && !error; types++) {
        if (options->bring)
            error = options->bring(options->bring_context, *types, enqueue_entry, queue);
        else if (!starts->count)
            error = walk_from(queue, NULL, *types);
        for (size_t i = 0; !options->bring && i < starts->count && !error; i++)
            error = walk_from(queue, &starts->points[i], *types);
    }
    pthread_mutex_lock(&queue->lock);
    queue->error = error;
    queue->ended = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

struct bw_error *bw_entry_queue_create(struct bw_fs *fs,
                                       const struct bw_entry_queue_options *options,
                                       struct bw_entry_queue **result)
{
    struct bw_entry_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return bw_error_no_memory();
    queue->fs = fs;
    queue->options = *options;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    int problem = bw_thread_start(&queue->thread, run_walks, queue);
    queue->has_thread = !problem;
    if (problem) {
        bw_entry_queue_destroy(queue);
        return bw_error_from_errno(problem, "cannot start a thread");
    }
    *result = queue;
    return NULL;
}

struct bw_error *bw_entry_queue_next(struct bw_entry_queue *queue, struct bw_export_entry **item)
{
    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->ended)
        pthread_cond_wait(&queue->changed, &queue->lock);
    *item = queue->first;
    struct bw_error *error = *item ? NULL : BW_TAKE(queue->error);
    if (*item) {
        queue->first = (*item)->next;
        if (!queue->first)
            queue->last = &queue->first;
        /* notifying the walk of each item would cost more than walking */
        bool was_full = queue->count >= QUEUE_ITEMS / 2;
        queue->count -= weight_of(*item);
        if (was_full && queue->count < QUEUE_ITEMS / 2)
            pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return error;
}

void bw_entry_queue_release(struct bw_entry_queue *queue, struct bw_export_entry *item)
{
    bw_error_free(BW_TAKE(item->error));
    if (item->path.capacity > LONG_PATH)
        bw_buffer_free(&item->path);
    pthread_mutex_lock(&queue->lock);
    item->next = queue->spare;
    queue->spare = item;
    pthread_mutex_unlock(&queue->lock);
}

static void free_items(struct bw_export_entry *item)
{
    while (item) {
        struct bw_export_entry *next = item->next;
        free_item(item);
        item = next;
    }
}

void bw_entry_queue_destroy(struct bw_entry_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->stop = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (queue->has_thread)
        pthread_join(queue->thread, NULL);
    free_items(queue->first);
    free_items(queue->spare);
    bw_error_free(queue->error);
    bw_buffer_free(&queue->renamed);
    waiting_entries_free(&queue->waiting);
    bw_buffer_free(&queue->paths);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

struct bw_stream_file bw_export_entry_stream_file(struct bw_export_entry *item)
{
    struct bw_stream_file file = {.user = item};
    if (item->type != S_IFREG || !item->has_inode || item->skipped)
        return file;
    file.data = bw_data_file_of(&item->place, &item->inode);
    file.data.may_lack_checksums = item->salvaged;
    file.length = UINT64_MAX;
    return file;
}

void bw_export_entry_note_bad(struct bw_export_entry *item, const struct bw_data_part *part)
{
    item->bad += part->length;
    if (!item->error)
        item->error = bw_error_prefix(bw_error_brief(part->error),
                                      "bytes %" PRIu64 " to %" PRIu64 " cannot be read",
                                      part->offset, part->offset + part->length - 1);
}

size_t bw_export_entry_held(void *context, const struct bw_stream_file *file)
{
    const struct bw_export_entry *item = file->user;
    (void)context;
    return item->path.length;
}
