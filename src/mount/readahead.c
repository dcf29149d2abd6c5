/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files that are read sequentially: readers that are not in use, and windows for reading
 * ahead.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "mount/readahead.h"

static void readers_init(struct bw_readers *readers, struct bw_fs *fs)
{
    *readers = (struct bw_readers){.fs = fs};
    pthread_mutex_init(&readers->lock, NULL);
}

static void free_reader(struct bw_reader *reader)
{
    bw_data_reader_destroy(reader->data);
    bw_extent_reader_destroy(reader->extents);
    bw_buffer_free(&reader->bytes);
    free(reader);
}

static void readers_free(struct bw_readers *readers)
{
    while (readers->first) {
        struct bw_reader *reader = readers->first;
        readers->first = reader->next;
        free_reader(reader);
    }
    pthread_mutex_destroy(&readers->lock);
}

static struct bw_error *make_reader(struct bw_fs *fs, struct bw_reader **result)
{
    struct bw_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return bw_error_no_memory();
    struct bw_error *error = bw_data_reader_create(fs, &reader->data);
    if (!error)
        error = bw_extent_reader_create(fs, &reader->extents);
    if (error)
        free_reader(reader);
    else
        *result = reader;
    return error;
}

struct bw_error *bw_readers_acquire(struct bw_readers *readers, struct bw_reader **reader)
{
    pthread_mutex_lock(&readers->lock);
    *reader = readers->first;
    if (*reader)
        readers->first = (*reader)->next;
    pthread_mutex_unlock(&readers->lock);
    return *reader ? NULL : make_reader(readers->fs, reader);
}

void bw_readers_release(struct bw_readers *readers, struct bw_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->first;
    readers->first = reader;
    pthread_mutex_unlock(&readers->lock);
}

/* The destination of a range. */
struct target {
    const struct bw_data_file *file;
    uint8_t *bytes;
    uint64_t offset; /* of the first byte in the file */
};

static struct bw_error *copy_part(void *context, const struct bw_data_part *part)
{
    const struct target *target = context;
    uint8_t *to = target->bytes + (part->offset - target->offset);
    if (part->kind == BW_DATA_BAD)
        return bw_error_prefix(
            bw_error_copy(part->error), "inode %" PRIu64 " of subvolume %" PRIu64 " at %" PRIu64,
            target->file->inode, bw_subvolume_id(target->file->subvolume), part->offset);
    if (part->kind == BW_DATA_HOLE)
        memset(to, 0, (size_t)part->length);
    else
        memcpy(to, part->bytes, (size_t)part->length);
    return NULL;
}

struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes)
{
    struct target target = {file, bytes, offset};
    return bw_data_read(reader->data, file, offset, length, copy_part, &target);
}

/* Windows of files, which separate threads read ahead. */

enum { WINDOWS = 32, THREADS = 2 };

struct bw_readahead_window {
    struct bw_data_file file;
    uint64_t offset;
    enum {
        EMPTY,
        AWAITED,
        LOADING,
        READY,
        BAD
    } state; /* awaited: queued for a thread that reads
              * ahead */
    unsigned users;
    uint64_t used; /* time of the last use, as a count of uses */
    uint8_t *bytes;
};

struct bw_readahead {
    struct bw_readers readers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_readahead_window windows[WINDOWS];
    uint64_t uses;
    bool ending;
    pthread_t threads[THREADS];
    size_t thread_count;
};

static void *read_ahead(void *context);

struct bw_error *bw_readahead_create(struct bw_fs *fs, struct bw_readahead **result)
{
    struct bw_readahead *readahead = calloc(1, sizeof *readahead);
    if (!readahead)
        return bw_error_no_memory();
    readers_init(&readahead->readers, fs);
    pthread_mutex_init(&readahead->lock, NULL);
    pthread_cond_init(&readahead->changed, NULL);
    /* without threads, nothing is read ahead, but everything is still read */
    while (readahead->thread_count < THREADS &&
           !bw_thread_start(&readahead->threads[readahead->thread_count], read_ahead, readahead))
        readahead->thread_count++;
    *result = readahead;
    return NULL;
}

void bw_readahead_destroy(struct bw_readahead *readahead)
{
    if (!readahead)
        return;
    pthread_mutex_lock(&readahead->lock);
    readahead->ending = true;
    pthread_cond_broadcast(&readahead->changed);
    pthread_mutex_unlock(&readahead->lock);
    while (readahead->thread_count)
        pthread_join(readahead->threads[--readahead->thread_count], NULL);
    for (size_t i = 0; i < WINDOWS; i++)
        free(readahead->windows[i].bytes);
    pthread_cond_destroy(&readahead->changed);
    pthread_mutex_destroy(&readahead->lock);
    readers_free(&readahead->readers);
    free(readahead);
}

struct bw_readers *bw_readahead_readers(struct bw_readahead *readahead)
{
    return &readahead->readers;
}

const uint8_t *bw_readahead_bytes(const struct bw_readahead_window *window)
{
    return window->bytes;
}

/* The window for an offset. Otherwise reuses the least recently used window; NULL if all are in
 * use. */
static struct bw_readahead_window *find_window(struct bw_readahead *readahead,
                                               const struct bw_data_file *file, uint64_t offset)
{
    struct bw_readahead_window *oldest = NULL;
    for (struct bw_readahead_window *window = readahead->windows;
         window < readahead->windows + WINDOWS; window++) {
        if (window->state != EMPTY && window->offset == offset &&
            window->file.inode == file->inode && window->file.subvolume == file->subvolume)
            return window;
        if (!window->users && window->state != LOADING && window->state != AWAITED &&
            (!oldest || window->used < oldest->used))
            oldest = window;
    }
    if (oldest) {
        oldest->file = *file;
        oldest->offset = offset;
        oldest->state = EMPTY;
    }
    return oldest;
}

static bool read_window(struct bw_readahead *readahead, struct bw_readahead_window *window)
{
    const uint64_t left = window->file.size - window->offset;
    struct bw_reader *reader;
    if (!window->bytes && !(window->bytes = malloc(BW_READAHEAD_BYTES)))
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_readers_acquire(&readahead->readers, &reader);
    if (error)
        return false;
    error = bw_reader_read(reader, &window->file, window->offset,
                           left < BW_READAHEAD_BYTES ? (size_t)left : BW_READAHEAD_BYTES,
                           window->bytes);
    bw_readers_release(&readahead->readers, reader);
    return !error;
}

/* Reads a window. The lock must be held, and is released while reading. */
static void load_window(struct bw_readahead *readahead, struct bw_readahead_window *window)
{
    window->state = LOADING;
    pthread_mutex_unlock(&readahead->lock);
    bool good = read_window(readahead, window);
    pthread_mutex_lock(&readahead->lock);
    window->state = good ? READY : BAD;
    pthread_cond_broadcast(&readahead->changed);
}

struct bw_readahead_window *bw_readahead_acquire(struct bw_readahead *readahead,
                                                 const struct bw_data_file *file, uint64_t offset)
{
    pthread_mutex_lock(&readahead->lock);
    struct bw_readahead_window *window =
        find_window(readahead, file, offset - offset % BW_READAHEAD_BYTES);
    if (window) {
        window->users++;
        window->used = ++readahead->uses;
        if (window->state == EMPTY || window->state == AWAITED)
            load_window(readahead, window);
        while (window->state == LOADING)
            pthread_cond_wait(&readahead->changed, &readahead->lock);
        if (window->state == BAD) {
            window->users--;
            window = NULL;
        }
    }
    pthread_mutex_unlock(&readahead->lock);
    return window;
}

void bw_readahead_release(struct bw_readahead *readahead, struct bw_readahead_window *window)
{
    pthread_mutex_lock(&readahead->lock);
    window->users--;
    pthread_mutex_unlock(&readahead->lock);
}

void bw_readahead_start(struct bw_readahead *readahead, const struct bw_data_file *file,
                        uint64_t offset)
{
    if (!readahead->thread_count || offset >= file->size)
        return;
    pthread_mutex_lock(&readahead->lock);
    struct bw_readahead_window *window =
        find_window(readahead, file, offset - offset % BW_READAHEAD_BYTES);
    if (window && window->state == EMPTY) {
        window->used = ++readahead->uses;
        window->state = AWAITED;
        pthread_cond_broadcast(&readahead->changed);
    }
    pthread_mutex_unlock(&readahead->lock);
}

/* The window that was queued first, or NULL. */
static struct bw_readahead_window *next_awaited(struct bw_readahead *readahead)
{
    struct bw_readahead_window *next = NULL;
    for (struct bw_readahead_window *window = readahead->windows;
         window < readahead->windows + WINDOWS; window++)
        if (window->state == AWAITED && (!next || window->used < next->used))
            next = window;
    return next;
}

static void *read_ahead(void *context)
{
    struct bw_readahead *readahead = context;
    pthread_mutex_lock(&readahead->lock);
    while (!readahead->ending) {
        struct bw_readahead_window *window = next_awaited(readahead);
        if (window)
            load_window(readahead, window);
        else
            pthread_cond_wait(&readahead->changed, &readahead->lock);
    }
    pthread_mutex_unlock(&readahead->lock);
    return NULL;
}
