/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream: files are read by several threads, and delivered in their order.
 *
 * The files are divided into tasks, lists of ranges that fit into a block of memory. Tasks are
 * numbered and pass through a ring: planned, running, done, delivered. `head`, `started` and
 * `planned` are the numbers of the next task to deliver, to run, and to plan, so the ring has three
 * parts, and planning ends where the ring is full. Threads are not bound to these steps: an idle
 * worker delivers the next task in order if it is done; otherwise it plans ahead, or runs a task.
 * One worker at a time delivers, and one plans; the lock is held only between the steps.
 *
 * A file that fits into the rest of a task is added as a whole. In a larger file, long holes and
 * ranges that are bad as a whole become separate entries, which cost nothing; data is divided into
 * pieces of a block. Therefore, the number of tasks depends on the stored data, not on the sizes of
 * files.
 *
 * After an error all workers end. The receiver learns of every file that was planned and not
 * completed.
 */
#include "btrfs-walk/file.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/pool.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "data/reader.h"
#include "fs/fs.h"

enum {
    MORE_BLOCKS = 4, /* in addition to one per thread: done, waiting for delivery */
    MORE_TASKS = 16, /* in addition to the blocks: planned and announced */
    TASK_ENTRIES = 256,
    TASK_HELD = 256 << 10,
    WORK_LIMIT = 32 << 20, /* default of the caller's limit, in bytes */
    ROUND = 4096,          /* bytes of a block are allocated in multiples of this */
    ADVISE_WORK = 4 << 20, /* for files that `work` reads, which requests read-ahead itself */
};

/* A range of a file in a task. */
struct entry {
    struct bw_stream_file file;
    uint64_t offset, end;
    bool work;   /* calls the stream's `work` instead of reading into the block */
    bool last;   /* the last range of the file */
    size_t part; /* index of its first part in the block, after reading */
};

BW_VECTOR(entries, struct entry);

/* A place in the ring: a task, and the data that were read for it. */
struct slot {
    struct entries entries;
    struct bw_data_block block;
    bool done;
};

struct state {
    struct bw_fs *fs;
    const struct bw_stream *stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot *slots; /* the ring */
    size_t size, blocks;
    size_t head, started, planned; /* numbers of the next task to deliver, to run, and to plan */
    bool delivering, planning;     /* a worker is doing this */
    bool ended;                    /* everything has been planned */
    struct bw_data_block *spare;   /* unused blocks with memory, at most `blocks` */
    size_t spare_count;
    struct bw_error *error; /* the first error, after which all workers end */

    /* Of the worker that plans. */
    struct bw_data_advisor advisor;
    struct bw_stream_file file; /* the file that is being divided */
    uint64_t offset, end;       /* its remaining part */
    bool has_file;
    bool has_all; /* there are no more files */
};

static struct slot *slot_of(struct state *state, size_t number)
{
    return &state->slots[number % state->size];
}

/* Planning. */

/* Adds the part of the current file before `end` to a task. */
static struct bw_error *add_entry(struct state *state, struct entries *task, uint64_t end,
                                  bool work)
{
    const bool last = end == state->end;
    BW_TRY(entries_push(task, (struct entry){state->file, state->offset, end, work, last, 0}));
    state->offset = end;
    state->has_file = !last;
    return NULL;
}

static struct bw_error *advise_file(struct state *state, uint64_t length)
{
    uint64_t left = state->end - state->offset;
    if (!left) /* for example a directory, which has no subvolume to read from */
        return NULL;
    return bw_data_advise(&state->advisor, &state->file.data, state->offset,
                          state->offset + (left < length ? left : length));
}

/* Fills an empty task, and requests read-ahead for it. It stays empty after the last file. */
static struct bw_error *fill_task(struct state *state, struct entries *task)
{
    const struct bw_stream *stream = state->stream;
    const uint32_t sectorsize = state->fs->superblock.sectorsize;
    uint64_t used = 0; /* bytes of the block */
    size_t held = 0;
    bool full = false;
    while (!full && task->count < TASK_ENTRIES) {
        if (!state->has_file) {
            bool got = false;
            BW_TRY(stream->next(stream->context, &state->file, &got));
            const uint64_t size = state->file.data.size, offset = state->file.offset;
            state->has_all = !got;
            state->has_file = got;
            state->offset = bw_min(offset, size);
            state->end = state->offset + bw_min(state->file.length, size - state->offset);
        }
        if (state->has_all)
            break;
        held += stream->held ? stream->held(stream->context, &state->file) : 0;
        const uint64_t left = state->end - state->offset;
        const bool is_whole = state->offset == state->file.offset || left == 0;
        const bool work = stream->work && left <= stream->work_limit && is_whole;
        const uint64_t room = left + UINT64_C(2) * sectorsize + ROUND;
        if (work || room <= BW_DATA_BLOCK - used) {
            BW_TRY(advise_file(state, work ? ADVISE_WORK : left));
            BW_TRY(add_entry(state, task, state->end, work));
            used = room < BW_DATA_BLOCK - used ? used + room : BW_DATA_BLOCK;
        } else if (used) {
            break;
        } else {
            /* The first piece of a file that is too large for one task. */
            struct bw_extent_piece piece;
            bool got;
            bw_extents_seek(&state->advisor.cursor, &state->file.data, state->offset, state->end);
            BW_TRY(bw_extents_next_readable(&state->advisor.cursor, &piece, &got));
            bw_error_free(piece.extent.error);
            uint64_t end = piece.extent.offset + piece.extent.length;
            if (bw_extent_is_data(&piece.extent)) {
                BW_TRY(advise_file(state, BW_DATA_BLOCK));
                full = true;
                end = state->offset + BW_DATA_BLOCK;
                end = bw_min(end - end % sectorsize, state->end);
            }
            BW_TRY(add_entry(state, task, end, false));
        }
        full |= used == BW_DATA_BLOCK || held > TASK_HELD;
    }
    return NULL;
}

/* The steps of a worker: each returns false if it has nothing to do. The lock is held when they
 * begin and when they end. */

static bool plan_next(struct state *state)
{
    if (state->planning || state->ended || state->planned == state->head + state->size)
        return false;
    struct slot *slot = slot_of(state, state->planned);
    state->planning = true;
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = fill_task(state, &slot->entries);
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    state->planning = false;
    state->planned += slot->entries.count > 0;
    state->ended = state->has_all;
    return true;
}

static bool run_next(struct state *state, struct bw_data_reader *reader)
{
    const struct bw_stream *stream = state->stream;
    if (state->started == state->planned || state->started == state->head + state->blocks)
        return false;
    struct slot *slot = slot_of(state, state->started++);
    struct bw_data_block *block = &slot->block;
    if (state->spare_count)
        *block = state->spare[--state->spare_count];
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = NULL;
    for (size_t i = 0; i < slot->entries.count && !error; i++) {
        struct entry *entry = &slot->entries.items[i];
        const uint64_t length = entry->end - entry->offset;
        uint64_t reached = entry->end;
        entry->part = block->parts.count;
        if (entry->work)
            error = stream->work(stream->context, reader, &entry->file);
        else if (length)
            error = bw_data_fill(reader, &entry->file.data, entry->offset, length, block, &reached);
        /* The rest did not fit into the block. */
        if (!error && reached < entry->end)
            error = bw_data_block_add_bad(
                block, reached, entry->end - reached,
                bw_error_create(BW_ERROR_CORRUPT, "its extents changed while they were read"));
    }
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    slot->done = !error;
    return true;
}

/* Ends a file of which nothing more will be delivered. */
static void abandon_file(const struct state *state, const struct bw_stream_file *file)
{
    if (state->stream->finish)
        bw_error_free(state->stream->finish(state->stream->context, file, false));
}

static bool deliver_next(struct state *state)
{
    const struct bw_stream *stream = state->stream;
    struct slot *slot = slot_of(state, state->head);
    struct bw_error *error = NULL;
    if (state->delivering || state->head == state->started || !slot->done)
        return false;
    state->delivering = true;
    pthread_mutex_unlock(&state->lock);
    for (size_t i = 0; i < slot->entries.count; i++) {
        const struct entry *entry = &slot->entries.items[i];
        size_t last = slot->block.parts.count;
        if (i + 1 < slot->entries.count)
            last = entry[1].part;
        for (size_t part = entry->part; part < last && !entry->work && !error; part++)
            error = stream->visit(stream->context, &entry->file, &slot->block.parts.items[part]);
        if (entry->last && error)
            abandon_file(state, &entry->file);
        else if (entry->last && stream->finish)
            error = stream->finish(stream->context, &entry->file, true);
    }
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);

    /* The slot and the memory of its block are used again. */
    bw_data_block_clear(&slot->block);
    if (slot->block.bytes)
        state->spare[state->spare_count++] = slot->block;
    else
        bw_data_block_free(&slot->block);
    slot->block = (struct bw_data_block){0};
    slot->entries.count = 0;
    slot->done = false;
    state->delivering = false;
    state->head++;
    return true;
}

static void run_worker(void *context, unsigned worker, size_t task)
{
    struct state *state = context;
    struct bw_data_reader *reader = NULL;
    (void)worker;
    (void)task;
    struct bw_error *error = bw_data_reader_create(state->fs, &reader);
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    while (!state->error && !(state->ended && state->head == state->planned)) {
        if (deliver_next(state) || plan_next(state) || run_next(state, reader))
            pthread_cond_broadcast(&state->changed);
        else
            pthread_cond_wait(&state->changed, &state->lock);
    }
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
    bw_data_reader_destroy(reader);
}

struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *given)
{
    struct bw_stream stream;
    BW_TRY(BW_TAKE_OPTIONS(&stream, given));
    if (!stream.work_limit)
        stream.work_limit = stream.visit ? WORK_LIMIT : UINT64_MAX;
    unsigned threads = bw_pool_workers(stream.threads);
    struct state state = {.fs = fs, .stream = &stream, .blocks = threads + MORE_BLOCKS};
    state.size = state.blocks + MORE_TASKS;
    bw_extents_init(&state.advisor.cursor, fs);
    pthread_mutex_init(&state.lock, NULL);
    pthread_cond_init(&state.changed, NULL);
    state.slots = calloc(state.size, sizeof *state.slots);
    state.spare = calloc(state.size, sizeof *state.spare);
    struct bw_pool *pool = bw_pool_create(threads);
    if (state.slots && state.spare && pool)
        bw_pool_run(pool, threads, run_worker, &state);
    else
        state.error = bw_error_no_memory();
    bw_pool_destroy(pool);

    /* After an error, end all files that have not been completed. */
    for (; state.slots && state.head < state.planned; state.head++) {
        const struct entries *task = &slot_of(&state, state.head)->entries;
        for (size_t i = 0; i < task->count; i++)
            if (task->items[i].last)
                abandon_file(&state, &task->items[i].file);
    }
    if (state.has_file)
        abandon_file(&state, &state.file);

    for (size_t i = 0; state.slots && i < state.size; i++) {
        bw_data_block_free(&state.slots[i].block);
        entries_free(&state.slots[i].entries);
    }
    while (state.spare_count)
        bw_data_block_free(&state.spare[--state.spare_count]);
    free(state.slots);
    free(state.spare);
    bw_extents_free(&state.advisor.cursor);
    pthread_cond_destroy(&state.changed);
    pthread_mutex_destroy(&state.lock);
    return state.error;
}
