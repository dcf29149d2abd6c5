/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Open files that the kernel reads from front to back: free readers, and windows that read ahead.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "mount/readers.h"
#include "mount/windows.h"

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

struct bw_error *bw_readers_take(struct bw_readers *readers, struct bw_reader **reader)
{
    pthread_mutex_lock(&readers->lock);
    *reader = readers->first;
    if (*reader)
        readers->first = (*reader)->next;
    pthread_mutex_unlock(&readers->lock);
    return *reader ? NULL : make_reader(readers->fs, reader);
}

void bw_readers_give(struct bw_readers *readers, struct bw_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->first;
    readers->first = reader;
    pthread_mutex_unlock(&readers->lock);
}

/* Where a range goes to. */
struct target {
    uint8_t *bytes;
    uint64_t offset; /* of the first one in the file */
};

static struct bw_error *take_part(void *context, const struct bw_data_part *part)
{
    const struct target *target = context;
    uint8_t *to = target->bytes + (part->offset - target->offset);
    if (part->kind == BW_DATA_BAD)
        return bw_error_copy(part->error);
    if (part->kind == BW_DATA_HOLE)
        memset(to, 0, (size_t)part->length);
    else
        memcpy(to, part->bytes, (size_t)part->length);
    return NULL;
}

struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes)
{
    struct target target = {bytes, offset};
    return bw_data_read(reader->data, file, offset, length, take_part, &target);
}

/* Windows on files, read ahead by threads of their own. */

enum { WINDOWS = 32, THREADS = 2 };

struct bw_window {
    struct bw_data_file file;
    uint64_t offset;
    enum { EMPTY, AWAITED, LOADING, READY, BAD } state; /* awaited: by a thread that reads ahead */
    unsigned users;
    uint64_t used; /* when, as a count of uses */
    uint8_t *bytes;
};

struct bw_windows {
    struct bw_readers readers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_window windows[WINDOWS];
    uint64_t uses;
    bool ending;
    pthread_t threads[THREADS];
    size_t thread_count;
};

static void *read_ahead(void *context);

struct bw_error *bw_windows_create(struct bw_fs *fs, struct bw_windows **result)
{
    struct bw_windows *windows = calloc(1, sizeof *windows);
    if (!windows)
        return bw_error_no_memory();
    readers_init(&windows->readers, fs);
    pthread_mutex_init(&windows->lock, NULL);
    pthread_cond_init(&windows->changed, NULL);
    /* Without threads nothing is read ahead, and all is read nevertheless. */
    while (windows->thread_count < THREADS &&
           !bw_thread_start(&windows->threads[windows->thread_count], read_ahead, windows))
        windows->thread_count++;
    *result = windows;
    return NULL;
}

void bw_windows_destroy(struct bw_windows *windows)
{
    if (!windows)
        return;
    pthread_mutex_lock(&windows->lock);
    windows->ending = true;
    pthread_cond_broadcast(&windows->changed);
    pthread_mutex_unlock(&windows->lock);
    while (windows->thread_count)
        pthread_join(windows->threads[--windows->thread_count], NULL);
    for (size_t i = 0; i < WINDOWS; i++)
        free(windows->windows[i].bytes);
    pthread_cond_destroy(&windows->changed);
    pthread_mutex_destroy(&windows->lock);
    readers_free(&windows->readers);
    free(windows);
}

struct bw_readers *bw_windows_readers(struct bw_windows *windows)
{
    return &windows->readers;
}

const uint8_t *bw_window_bytes(const struct bw_window *window)
{
    return window->bytes;
}

/* The window with a place, or the one that is given up for it; NULL: all are in use. */
static struct bw_window *find(struct bw_windows *windows, const struct bw_data_file *file,
                              uint64_t offset)
{
    struct bw_window *oldest = NULL;
    for (struct bw_window *window = windows->windows; window < windows->windows + WINDOWS;
         window++) {
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

static bool read_window(struct bw_windows *windows, struct bw_window *window)
{
    const uint64_t left = window->file.size - window->offset;
    struct bw_reader *reader;
    if (!window->bytes && !(window->bytes = malloc(BW_WINDOW_BYTES)))
        return false;
    BW_AUTO_ERROR struct bw_error *error = bw_readers_take(&windows->readers, &reader);
    if (error)
        return false;
    error = bw_reader_read(reader, &window->file, window->offset,
                           left < BW_WINDOW_BYTES ? (size_t)left : BW_WINDOW_BYTES, window->bytes);
    bw_readers_give(&windows->readers, reader);
    return !error;
}

/* Reads a window; called and left with the lock held. */
static void load(struct bw_windows *windows, struct bw_window *window)
{
    window->state = LOADING;
    pthread_mutex_unlock(&windows->lock);
    bool good = read_window(windows, window);
    pthread_mutex_lock(&windows->lock);
    window->state = good ? READY : BAD;
    pthread_cond_broadcast(&windows->changed);
}

struct bw_window *bw_windows_take(struct bw_windows *windows, const struct bw_data_file *file,
                                  uint64_t offset)
{
    pthread_mutex_lock(&windows->lock);
    struct bw_window *window = find(windows, file, offset - offset % BW_WINDOW_BYTES);
    if (window) {
        window->users++;
        window->used = ++windows->uses;
        if (window->state == EMPTY || window->state == AWAITED)
            load(windows, window);
        while (window->state == LOADING)
            pthread_cond_wait(&windows->changed, &windows->lock);
        if (window->state == BAD) {
            window->users--;
            window = NULL;
        }
    }
    pthread_mutex_unlock(&windows->lock);
    return window;
}

void bw_windows_give(struct bw_windows *windows, struct bw_window *window)
{
    pthread_mutex_lock(&windows->lock);
    window->users--;
    pthread_mutex_unlock(&windows->lock);
}

void bw_windows_ahead(struct bw_windows *windows, const struct bw_data_file *file, uint64_t offset)
{
    if (!windows->thread_count || offset >= file->size)
        return;
    pthread_mutex_lock(&windows->lock);
    struct bw_window *window = find(windows, file, offset - offset % BW_WINDOW_BYTES);
    if (window && window->state == EMPTY) {
        window->used = ++windows->uses;
        window->state = AWAITED;
        pthread_cond_broadcast(&windows->changed);
    }
    pthread_mutex_unlock(&windows->lock);
}

/* The window that has waited longest; NULL: none does. */
static struct bw_window *next_awaited(struct bw_windows *windows)
{
    struct bw_window *next = NULL;
    for (struct bw_window *window = windows->windows; window < windows->windows + WINDOWS; window++)
        if (window->state == AWAITED && (!next || window->used < next->used))
            next = window;
    return next;
}

static void *read_ahead(void *context)
{
    struct bw_windows *windows = context;
    pthread_mutex_lock(&windows->lock);
    while (!windows->ending) {
        struct bw_window *window = next_awaited(windows);
        if (window)
            load(windows, window);
        else
            pthread_cond_wait(&windows->changed, &windows->lock);
    }
    pthread_mutex_unlock(&windows->lock);
    return NULL;
}
