/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are read sequentially: readers that are not in use, and windows for reading ahead.
 *
 * A window is queued (AWAITED) for the threads that read ahead. A request that needs it before they
 * have started reads it itself, and one that comes later waits for them. Windows without users are
 * reused, the least recently used one first.
 */
#include "mount/read_windows.h"

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

struct bw_read_window {
    struct bw_data_file file;
    uint64_t offset;
    enum window_state state;
    unsigned users;
    uint64_t used; /* time of the last use, as a count of uses */
    uint8_t *bytes;
};

struct bw_read_windows {
    struct bw_readers readers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_read_window windows[WINDOWS];
    uint64_t uses;
    bool ending;
    pthread_t threads[THREADS];
    size_t thread_count;
};

static void *run_thread(void *context);

struct bw_error *bw_read_windows_create(struct bw_fs *fs, struct bw_read_windows **result)
{
    struct bw_read_windows *read_windows = calloc(1, sizeof *read_windows);
    if (!read_windows)
        return bw_error_no_memory();
    read_windows->readers.fs = fs;
    pthread_mutex_init(&read_windows->readers.lock, NULL);
    pthread_mutex_init(&read_windows->lock, NULL);
    pthread_cond_init(&read_windows->changed, NULL);
    /* without threads, nothing is read ahead, but everything is still read */
    while (read_windows->thread_count < THREADS &&
           !bw_thread_start(&read_windows->threads[read_windows->thread_count], run_thread,
                            read_windows))
        read_windows->thread_count++;
    *result = read_windows;
    return NULL;
}

void bw_read_windows_destroy(struct bw_read_windows *read_windows)
{
    if (!read_windows)
        return;
    pthread_mutex_lock(&read_windows->lock);
    read_windows->ending = true;
    pthread_cond_broadcast(&read_windows->changed);
    pthread_mutex_unlock(&read_windows->lock);
    while (read_windows->thread_count)
        pthread_join(read_windows->threads[--read_windows->thread_count], NULL);
    for (size_t i = 0; i < WINDOWS; i++)
        free(read_windows->windows[i].bytes);
    pthread_cond_destroy(&read_windows->changed);
    pthread_mutex_destroy(&read_windows->lock);
    while (read_windows->readers.first) {
        struct bw_reader *reader = read_windows->readers.first;
        read_windows->readers.first = reader->next;
        free_reader(reader);
    }
    pthread_mutex_destroy(&read_windows->readers.lock);
    free(read_windows);
}

struct bw_readers *bw_read_windows_readers(struct bw_read_windows *read_windows)
{
    return &read_windows->readers;
}

const uint8_t *bw_read_windows_bytes(const struct bw_read_window *window)
{
    return window->bytes;
}

/* The window for an offset. Otherwise reuses the least recently used window; NULL if all are in
 * use. */
static struct bw_read_window *find_window(struct bw_read_windows *read_windows,
                                          const struct bw_data_file *file, uint64_t offset)
{
    struct bw_read_window *oldest = NULL;
    for (struct bw_read_window *window = read_windows->windows;
         window < read_windows->windows + WINDOWS; window++) {
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

/* Reads a window. The lock must be held, and is released while reading. */
static void load_window(struct bw_read_windows *read_windows, struct bw_read_window *window)
{
    const uint64_t left = window->file.size - window->offset;
    const size_t length = left < BW_READ_WINDOW_BYTES ? (size_t)left : BW_READ_WINDOW_BYTES;
    struct bw_reader *reader;
    window->state = LOADING;
    pthread_mutex_unlock(&read_windows->lock);
    if (!window->bytes)
        window->bytes = malloc(BW_READ_WINDOW_BYTES);
    struct bw_error *error =
        window->bytes ? bw_readers_acquire(&read_windows->readers, &reader) : bw_error_no_memory();
    if (!error) {
        error = bw_reader_read(reader, &window->file, window->offset, length, window->bytes);
        bw_readers_release(&read_windows->readers, reader);
    }
    pthread_mutex_lock(&read_windows->lock);
    window->state = error ? BAD : READY;
    bw_error_free(error);
    pthread_cond_broadcast(&read_windows->changed);
}

struct bw_read_window *bw_read_windows_acquire(struct bw_read_windows *read_windows,
                                               const struct bw_data_file *file, uint64_t offset)
{
    pthread_mutex_lock(&read_windows->lock);
    struct bw_read_window *window =
        find_window(read_windows, file, offset - offset % BW_READ_WINDOW_BYTES);
    if (window) {
        window->users++;
        window->used = ++read_windows->uses;
        if (window->state == EMPTY || window->state == AWAITED)
            load_window(read_windows, window);
        while (window->state == LOADING)
            pthread_cond_wait(&read_windows->changed, &read_windows->lock);
        if (window->state == BAD) {
            window->users--;
            window = NULL;
        }
    }
    pthread_mutex_unlock(&read_windows->lock);
    return window;
}

void bw_read_windows_release(struct bw_read_windows *read_windows, struct bw_read_window *window)
{
    pthread_mutex_lock(&read_windows->lock);
    window->users--;
    pthread_mutex_unlock(&read_windows->lock);
}

void bw_read_windows_start(struct bw_read_windows *read_windows, const struct bw_data_file *file,
                           uint64_t offset)
{
    if (!read_windows->thread_count || offset >= file->size)
        return;
    pthread_mutex_lock(&read_windows->lock);
    struct bw_read_window *window =
        find_window(read_windows, file, offset - offset % BW_READ_WINDOW_BYTES);
    if (window && window->state == EMPTY) {
        window->used = ++read_windows->uses;
        window->state = AWAITED;
        pthread_cond_broadcast(&read_windows->changed);
    }
    pthread_mutex_unlock(&read_windows->lock);
}

/* Reads the windows that are queued, the one that was queued first at first. */
static void *run_thread(void *context)
{
    struct bw_read_windows *read_windows = context;
    pthread_mutex_lock(&read_windows->lock);
    while (!read_windows->ending) {
        struct bw_read_window *next = NULL;
        for (size_t i = 0; i < WINDOWS; i++) {
            struct bw_read_window *window = &read_windows->windows[i];
            if (window->state == AWAITED && (!next || window->used < next->used))
                next = window;
        }
        if (next)
            load_window(read_windows, next);
        else
            pthread_cond_wait(&read_windows->changed, &read_windows->lock);
    }
    pthread_mutex_unlock(&read_windows->lock);
    return NULL;
}
