/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are read sequentially: readers that are not in use, and windows for reading ahead.
 *
 * A window is queued (AWAITED) for the threads that read ahead. A request that needs it before they
 * have started reads it itself, and one that comes later waits for them. Windows without users are
 * reused, the least recently used one first.
 */
#include "mount/read_ahead.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"

static void free_reader(struct bw_reader *reader)
{
    bw_data_reader_destroy(reader->data);
    bw_extent_reader_destroy(reader->extents);
    bw_buffer_free(&reader->bytes);
    free(reader);
}

struct bw_error *bw_readers_acquire(struct bw_readers *readers, struct bw_reader **result)
{
    pthread_mutex_lock(&readers->lock);
    struct bw_reader *reader = readers->first;
    if (reader)
        readers->first = reader->next;
    pthread_mutex_unlock(&readers->lock);
    if (!reader) {
        reader = calloc(1, sizeof *reader);
        if (!reader)
            return bw_error_no_memory();
        struct bw_error *error = bw_data_reader_create(readers->fs, &reader->data);
        if (!error)
            error = bw_extent_reader_create(readers->fs, &reader->extents);
        if (error) {
            free_reader(reader);
            return error;
        }
    }
    *result = reader;
    return NULL;
}

void bw_readers_release(struct bw_readers *readers, struct bw_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->first;
    readers->first = reader;
    pthread_mutex_unlock(&readers->lock);
}

struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes)
{
    const struct bw_data_part *part;
    bw_data_begin(reader->data, file, offset, length);
    for (;;) {
        BW_TRY(bw_data_next(reader->data, &part));
        if (!part)
            return NULL;
        uint8_t *to = bytes + (part->offset - offset);
        if (part->kind == BW_DATA_BAD)
            return bw_error_prefix(bw_error_copy(part->error),
                                   "inode %" PRIu64 " of subvolume %" PRIu64 " at %" PRIu64,
                                   file->inode, bw_subvolume_id(file->subvolume), part->offset);
        if (part->kind == BW_DATA_HOLE)
            memset(to, 0, (size_t)part->length);
        else
            memcpy(to, part->bytes, (size_t)part->length);
    }
}

/* Windows of files, which separate threads read ahead. */

enum { WINDOWS = 32, THREADS = 2 };

enum window_state {
    EMPTY,
    AWAITED, /* queued for a thread that reads ahead */
    LOADING,
    READY,
    BAD,
};

struct bw_read_ahead_window {
    struct bw_data_file file;
    uint64_t offset;
    enum window_state state;
    unsigned users;
    uint64_t used; /* time of the last use, as a count of uses */
    uint8_t *bytes;
};

struct bw_read_ahead {
    struct bw_readers readers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_read_ahead_window windows[WINDOWS];
    uint64_t uses;
    bool ending;
    pthread_t threads[THREADS];
    size_t thread_count;
};

static void *run_thread(void *context);

struct bw_error *bw_read_ahead_create(struct bw_fs *fs, struct bw_read_ahead **result)
{
    struct bw_read_ahead *read_ahead = calloc(1, sizeof *read_ahead);
    if (!read_ahead)
        return bw_error_no_memory();
    read_ahead->readers.fs = fs;
    pthread_mutex_init(&read_ahead->readers.lock, NULL);
    pthread_mutex_init(&read_ahead->lock, NULL);
    pthread_cond_init(&read_ahead->changed, NULL);
    /* without threads, nothing is read ahead, but everything is still read */
    while (read_ahead->thread_count < THREADS &&
           !bw_thread_start(&read_ahead->threads[read_ahead->thread_count], run_thread, read_ahead))
        read_ahead->thread_count++;
    *result = read_ahead;
    return NULL;
}

void bw_read_ahead_destroy(struct bw_read_ahead *read_ahead)
{
    if (!read_ahead)
        return;
    pthread_mutex_lock(&read_ahead->lock);
    read_ahead->ending = true;
    pthread_cond_broadcast(&read_ahead->changed);
    pthread_mutex_unlock(&read_ahead->lock);
    while (read_ahead->thread_count)
        pthread_join(read_ahead->threads[--read_ahead->thread_count], NULL);
    for (size_t i = 0; i < WINDOWS; i++)
        free(read_ahead->windows[i].bytes);
    pthread_cond_destroy(&read_ahead->changed);
    pthread_mutex_destroy(&read_ahead->lock);
    while (read_ahead->readers.first) {
        struct bw_reader *reader = read_ahead->readers.first;
        read_ahead->readers.first = reader->next;
        free_reader(reader);
    }
    pthread_mutex_destroy(&read_ahead->readers.lock);
    free(read_ahead);
}

struct bw_readers *bw_read_ahead_readers(struct bw_read_ahead *read_ahead)
{
    return &read_ahead->readers;
}

const uint8_t *bw_read_ahead_bytes(const struct bw_read_ahead_window *window)
{
    return window->bytes;
}

/* The window for an offset. Otherwise reuses the least recently used window; NULL if all are in
 * use. */
static struct bw_read_ahead_window *find_window(struct bw_read_ahead *read_ahead,
                                                const struct bw_data_file *file, uint64_t offset)
{
    struct bw_read_ahead_window *oldest = NULL;
    for (struct bw_read_ahead_window *window = read_ahead->windows;
         window < read_ahead->windows + WINDOWS; window++) {
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

static bool read_window(struct bw_read_ahead *read_ahead, struct bw_read_ahead_window *window)
{
    const uint64_t left = window->file.size - window->offset;
    struct bw_reader *reader;
    if (!window->bytes && !(window->bytes = malloc(BW_READ_AHEAD_BYTES)))
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_readers_acquire(&read_ahead->readers, &reader);
    if (error)
        return false;
    error = bw_reader_read(reader, &window->file, window->offset,
                           left < BW_READ_AHEAD_BYTES ? (size_t)left : BW_READ_AHEAD_BYTES,
                           window->bytes);
    bw_readers_release(&read_ahead->readers, reader);
    return !error;
}

/* Reads a window. The lock must be held, and is released while reading. */
static void load_window(struct bw_read_ahead *read_ahead, struct bw_read_ahead_window *window)
{
    window->state = LOADING;
    pthread_mutex_unlock(&read_ahead->lock);
    bool good = read_window(read_ahead, window);
    pthread_mutex_lock(&read_ahead->lock);
    window->state = good ? READY : BAD;
    pthread_cond_broadcast(&read_ahead->changed);
}

struct bw_read_ahead_window *bw_read_ahead_acquire(struct bw_read_ahead *read_ahead,
                                                   const struct bw_data_file *file, uint64_t offset)
{
    pthread_mutex_lock(&read_ahead->lock);
    struct bw_read_ahead_window *window =
        find_window(read_ahead, file, offset - offset % BW_READ_AHEAD_BYTES);
    if (window) {
        window->users++;
        window->used = ++read_ahead->uses;
        if (window->state == EMPTY || window->state == AWAITED)
            load_window(read_ahead, window);
        while (window->state == LOADING)
            pthread_cond_wait(&read_ahead->changed, &read_ahead->lock);
        if (window->state == BAD) {
            window->users--;
            window = NULL;
        }
    }
    pthread_mutex_unlock(&read_ahead->lock);
    return window;
}

void bw_read_ahead_release(struct bw_read_ahead *read_ahead, struct bw_read_ahead_window *window)
{
    pthread_mutex_lock(&read_ahead->lock);
    window->users--;
    pthread_mutex_unlock(&read_ahead->lock);
}

void bw_read_ahead_start(struct bw_read_ahead *read_ahead, const struct bw_data_file *file,
                         uint64_t offset)
{
    if (!read_ahead->thread_count || offset >= file->size)
        return;
    pthread_mutex_lock(&read_ahead->lock);
    struct bw_read_ahead_window *window =
        find_window(read_ahead, file, offset - offset % BW_READ_AHEAD_BYTES);
    if (window && window->state == EMPTY) {
        window->used = ++read_ahead->uses;
        window->state = AWAITED;
        pthread_cond_broadcast(&read_ahead->changed);
    }
    pthread_mutex_unlock(&read_ahead->lock);
}

/* Reads the windows that are queued, the one that was queued first at first. */
static void *run_thread(void *context)
{
    struct bw_read_ahead *read_ahead = context;
    pthread_mutex_lock(&read_ahead->lock);
    while (!read_ahead->ending) {
        struct bw_read_ahead_window *next = NULL;
        for (size_t i = 0; i < WINDOWS; i++) {
            struct bw_read_ahead_window *window = &read_ahead->windows[i];
            if (window->state == AWAITED && (!next || window->used < next->used))
                next = window;
        }
        if (next)
            load_window(read_ahead, next);
        else
            pthread_cond_wait(&read_ahead->changed, &read_ahead->lock);
    }
    pthread_mutex_unlock(&read_ahead->lock);
    return NULL;
}
