/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queue between the walk and the reader of its files. It is short: the walk waits when it is
 * far enough ahead, so that memory does not depend on the image. Items are reused, with their
 * buffer for the path.
 */
#include "export/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/thread.h"

enum { QUEUE_ITEMS = 2048, LONG_PATH = 4096 };

/* How many places in the queue an item takes: an image may be made to have long paths. */
static size_t weight_of(const struct bw_feed_item *item)
{
    return 1 + item->path.length / LONG_PATH;
}

struct bw_feed {
    struct bw_fs *fs;
    struct bw_feed_options options;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_feed_item *first, **last; /* of the queue */
    size_t count;
    struct bw_feed_item *spare;
    bool ended, stop;
    struct bw_error *error; /* what ended the walk; NULL once it was handed out */
    size_t start_length;    /* of the path that this walk starts at; likewise */
    size_t least_names;     /* of a path that this walk has for itself: the walk's thread alone */
};

static uint32_t type_of(uint8_t type)
{
    static const uint32_t types[] = {
        [BW_FILE_REGULAR] = S_IFREG,
        [BW_FILE_DIRECTORY] = S_IFDIR,
        [BW_FILE_CHARACTER_DEVICE] = S_IFCHR,
        [BW_FILE_BLOCK_DEVICE] = S_IFBLK,
        [BW_FILE_FIFO] = S_IFIFO,
        [BW_FILE_SOCKET] = S_IFSOCK,
        [BW_FILE_SYMLINK] = S_IFLNK,
    };
    return type < sizeof types / sizeof *types ? types[type] : 0;
}

static struct bw_feed_item *take_spare(struct bw_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    struct bw_feed_item *item = feed->spare;
    if (item)
        feed->spare = item->next;
    pthread_mutex_unlock(&feed->lock);
    return item ? item : calloc(1, sizeof *item);
}

static void free_item(struct bw_feed_item *item)
{
    bw_error_free(item->error);
    bw_buffer_free(&item->path);
    free(item);
}

struct bw_error *bw_feed_salvaged(const char *path)
{
    return bw_error_create(
        BW_ERROR_CORRUPT,
        "%s: its inode is lost: it ends where its last extent does, and all else "
        "that an inode tells is made up",
        path);
}

/* A file without an inode. Without extents it stays so. */
static void salvage(struct bw_feed *feed, struct bw_feed_item *item)
{
    BW_AUTO_ERROR struct bw_error *error = bw_inode_salvage(feed->fs, &item->place, &item->inode);
    item->has_inode = item->salvaged = !error;
    if (!error)
        feed->options.missed(feed->options.context, bw_feed_salvaged(item->path.data));
}

/* Where the name of an entry begins; false if it has none: it is left out. */
static bool find_name(const struct bw_feed *feed, const struct bw_entry *entry, size_t *name)
{
    const char *path = entry->path;
    size_t length = entry->path_length, at = 0;
    if (feed->options.naming.relative)
        at = feed->start_length;
    if (at >= length && entry->place.type != BW_FILE_DIRECTORY) {
        const char *slash = memrchr(path, '/', length);
        at = slash ? (size_t)(slash - path) : 0;
    }
    at += at < length && path[at] == '/';
    for (unsigned left = feed->options.naming.components; left; left--) {
        const char *slash = at < length ? memchr(path + at, '/', length - at) : NULL;
        if (!slash)
            return false;
        at = (size_t)(slash - path) + 1;
    }
    *name = at < length ? at : length;
    return true;
}

static void fill(struct bw_feed *feed, struct bw_feed_item *item, const struct bw_entry *entry)
{
    struct bw_buffer path = item->path;
    path.length = 0;
    bw_buffer_append(&path, entry->path, entry->path_length);
    bw_buffer_append_byte(&path, '\0');
    *item = (struct bw_feed_item){.path = path,
                                  .place = entry->place,
                                  .type = type_of(entry->place.type),
                                  .unchecked = feed->options.unchecked};
    item->path.length -= !path.failed;
    if (!entry->inode && feed->options.salvage && item->type == S_IFREG && !path.failed)
        salvage(feed, item);
    if (!entry->inode)
        return;
    item->has_inode = true;
    item->inode = *entry->inode;
    item->type = entry->inode->mode & S_IFMT; /* what the inode says counts, as for the kernel */
}

/* Puts an item at the end of the queue when there is room. */
static struct bw_error *enqueue(struct bw_feed *feed, struct bw_feed_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&feed->lock);
    while (feed->count >= QUEUE_ITEMS && !feed->stop)
        pthread_cond_wait(&feed->changed, &feed->lock);
    bool stop = feed->stop;
    *feed->last = item;
    feed->last = &item->next;
    if (feed->count == 0)
        pthread_cond_broadcast(&feed->changed);
    feed->count += weight_of(item);
    pthread_mutex_unlock(&feed->lock);
    return stop ? bw_error_create(BW_ERROR_STOPPED, "the feed was closed") : NULL;
}

static struct bw_error *visit(void *context, const struct bw_entry *entry)
{
    struct bw_feed *feed = context;
    if (feed->least_names && bw_path_names(entry->path, entry->path_length) < feed->least_names)
        return NULL;
    size_t name;
    if (!find_name(feed, entry, &name))
        return NULL;
    struct bw_feed_item *item = take_spare(feed);
    if (!item)
        return bw_error_no_memory();
    fill(feed, item, entry);
    item->name = name;
    if (!item->path.failed)
        return enqueue(feed, item);
    free_item(item);
    return bw_error_no_memory();
}

/* What names are relative to. A start that is not there is reported by the walk. */
static struct bw_error *find_start(struct bw_feed *feed, const struct bw_walk_options *options)
{
    BW_AUTO_FREE char *path = NULL;
    feed->start_length = 0;
    if (!feed->options.naming.relative)
        return NULL;
    struct bw_error *error = bw_walk_start_path(feed->fs, options, &path, &feed->start_length);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    return NULL;
}

/* One walk. If its start does not exist, that is reported once, and the others go on. */
static struct bw_error *walk(struct bw_feed *feed, const char *start, unsigned types)
{
    struct bw_walk_options options = feed->options.walk;
    options.struct_size = sizeof options;
    options.start = start;
    options.types = types;
    options.visit = visit;
    options.visit_inodes = true;
    options.context = feed;
    BW_TRY(find_start(feed, &options));
    struct bw_error *error = bw_walk(feed->fs, &options, NULL);
    bool another = error && start && error->code != BW_ERROR_STOPPED &&
                   error->code != BW_ERROR_NO_MEMORY && error->code != BW_ERROR_USAGE;
    if (!another)
        return error;
    if (types == feed->options.passes[0])
        feed->options.missed(feed->options.context, error);
    else
        bw_error_free(error);
    return NULL;
}

static struct bw_error *walk_all(struct bw_feed *feed)
{
    const struct bw_starts *starts = feed->options.starts;
    for (const unsigned *types = feed->options.passes; *types; types++) {
        if (feed->options.bring) {
            BW_TRY(feed->options.bring(feed->options.bring_context, *types, visit, feed));
            continue;
        }
        if (!starts->count)
            BW_TRY(walk(feed, NULL, *types));
        for (size_t i = 0; i < starts->count; i++) {
            feed->least_names = starts->least_names[i];
            BW_TRY(walk(feed, starts->paths[i], *types));
        }
    }
    return NULL;
}

static void *run(void *argument)
{
    struct bw_feed *feed = argument;
    struct bw_error *error = walk_all(feed);
    pthread_mutex_lock(&feed->lock);
    feed->error = error;
    feed->ended = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    return NULL;
}

struct bw_error *bw_feed_create(struct bw_fs *fs, const struct bw_feed_options *options,
                                struct bw_feed **result)
{
    struct bw_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return bw_error_no_memory();
    feed->fs = fs;
    feed->options = *options;
    feed->last = &feed->first;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->changed, NULL);
    int problem = bw_thread_start(&feed->thread, run, feed);
    feed->has_thread = !problem;
    if (problem) {
        bw_feed_destroy(feed);
        return bw_error_from_errno(problem, "cannot start a thread");
    }
    *result = feed;
    return NULL;
}

struct bw_error *bw_feed_next(struct bw_feed *feed, struct bw_feed_item **item)
{
    pthread_mutex_lock(&feed->lock);
    while (!feed->first && !feed->ended)
        pthread_cond_wait(&feed->changed, &feed->lock);
    *item = feed->first;
    struct bw_error *error = *item ? NULL : BW_TAKE(feed->error);
    if (*item) {
        feed->first = (*item)->next;
        if (!feed->first)
            feed->last = &feed->first;
        /* Waking the walk for each would cost more than walking. */
        bool was_full = feed->count >= QUEUE_ITEMS / 2;
        feed->count -= weight_of(*item);
        if (was_full && feed->count < QUEUE_ITEMS / 2)
            pthread_cond_broadcast(&feed->changed);
    }
    pthread_mutex_unlock(&feed->lock);
    return error;
}

void bw_feed_release(struct bw_feed *feed, struct bw_feed_item *item)
{
    bw_error_free(BW_TAKE(item->error));
    if (item->path.capacity > LONG_PATH)
        bw_buffer_free(&item->path);
    pthread_mutex_lock(&feed->lock);
    item->next = feed->spare;
    feed->spare = item;
    pthread_mutex_unlock(&feed->lock);
}

static void free_items(struct bw_feed_item *item)
{
    while (item) {
        struct bw_feed_item *next = item->next;
        free_item(item);
        item = next;
    }
}

void bw_feed_destroy(struct bw_feed *feed)
{
    if (!feed)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    if (feed->has_thread)
        pthread_join(feed->thread, NULL);
    free_items(feed->first);
    free_items(feed->spare);
    bw_error_free(feed->error);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

struct bw_stream_file bw_feed_stream_file(struct bw_feed_item *item)
{
    struct bw_stream_file file = {.user = item};
    if (item->type != S_IFREG || !item->has_inode || item->skipped)
        return file;
    file.data = bw_data_file_of(&item->place, &item->inode);
    file.data.unchecked |= item->unchecked;
    file.data.may_lack_checksums = item->salvaged;
    file.length = UINT64_MAX;
    return file;
}
