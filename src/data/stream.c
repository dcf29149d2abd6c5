/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream. Tasks are numbered and go through a ring: planned, under way, done, delivered. There
 * is no thread for any of these: a worker that looks for something to do delivers what is next in
 * order, plans ahead, or runs a task, in this order.
 */
#include "data/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "base/pool.h"
#include "data/plan.h"

enum {
    MOST_THREADS = 32,
    MORE_BLOCKS = 4, /* than threads: done, and waiting for their turn */
    MORE_TASKS = 16, /* than blocks: planned, and advised */
    DEFAULT_THREADS = 8,
};

struct slot {
    struct bw_stream_task task;
    struct bw_data_block block;
    bool done;
};

struct state {
    struct bw_fs *fs;
    const struct bw_stream *stream;
    struct bw_stream_planner planner;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot *slots; /* the ring */
    size_t size, blocks;
    size_t head, started, planned; /* numbers: the next to be delivered, to be run, to be planned */
    bool delivering, planning;     /* somebody is at it */
    bool ended;                    /* all is planned */
    struct bw_data_block *spare;   /* blocks with memory: `blocks` at most */
    size_t spare_count;
    struct bw_error *error; /* the first; set: all end */
};

static struct slot *slot_of(struct state *state, size_t number)
{
    return &state->slots[number % state->size];
}

/* With the lock held. */
static void fail(struct state *state, struct bw_error *error)
{
    if (!error)
        return;
    if (state->error)
        bw_error_free(error);
    else
        state->error = error;
}

/* Ends a file of which nothing more is delivered. */
static void abandon(const struct state *state, const struct bw_stream_file *file)
{
    if (state->stream->finish)
        bw_error_free(state->stream->finish(state->stream->context, file, false));
}

/* Delivers the parts up to `last` of one entry. */
static struct bw_error *deliver_parts(const struct bw_stream *stream, const struct slot *slot,
                                      const struct bw_stream_entry *entry, size_t last)
{
    for (size_t part = entry->part; part < last && !entry->work; part++)
        BW_TRY(stream->take(stream->context, &entry->file, &slot->block.parts[part]));
    return NULL;
}

static struct bw_error *deliver_task(const struct state *state, const struct slot *slot)
{
    const struct bw_stream *stream = state->stream;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < slot->task.count; i++) {
        const struct bw_stream_entry *entry = &slot->task.entries[i];
        size_t last = i + 1 < slot->task.count ? entry[1].part : slot->block.count;
        if (!error)
            error = deliver_parts(stream, slot, entry, last);
        if (entry->last && error)
            abandon(state, &entry->file);
        else if (entry->last && stream->finish)
            error = stream->finish(stream->context, &entry->file, true);
    }
    return error;
}

static void recycle(struct state *state, struct slot *slot)
{
    bw_data_block_clear(&slot->block);
    if (slot->block.bytes)
        state->spare[state->spare_count++] = slot->block;
    else
        bw_data_block_free(&slot->block);
    slot->block = (struct bw_data_block){0};
    slot->task.count = 0;
    slot->done = false;
}

static bool deliver(struct state *state)
{
    struct slot *slot = slot_of(state, state->head);
    if (state->delivering || state->head == state->started || !slot->done)
        return false;
    state->delivering = true;
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = deliver_task(state, slot);
    pthread_mutex_lock(&state->lock);
    fail(state, error);
    recycle(state, slot);
    state->delivering = false;
    state->head++;
    return true;
}

static bool plan(struct state *state)
{
    if (state->planning || state->ended || state->planned == state->head + state->size)
        return false;
    struct slot *slot = slot_of(state, state->planned);
    state->planning = true;
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = bw_stream_plan(&state->planner, &slot->task);
    pthread_mutex_lock(&state->lock);
    fail(state, error);
    state->planning = false;
    state->planned += slot->task.count > 0;
    state->ended = state->planner.ended;
    return true;
}

/* What an entry should have and was not read, because the block had no room for it. */
static struct bw_error *add_rest(const struct bw_stream_entry *entry, uint64_t from,
                                 struct bw_data_block *block)
{
    if (from >= entry->end)
        return NULL;
    struct bw_error *error =
        bw_error_create(BW_ERROR_CORRUPT, "its extents changed while they were read");
    return bw_data_block_add(block, (struct bw_data_part){.kind = BW_DATA_BAD,
                                                          .offset = from,
                                                          .length = entry->end - from,
                                                          .error = error});
}

static struct bw_error *run_entry(const struct bw_stream *stream, struct bw_data_reader *reader,
                                  struct bw_stream_entry *entry, struct bw_data_block *block)
{
    uint64_t reached;
    entry->part = block->count;
    if (entry->work)
        return stream->work(stream->context, reader, &entry->file);
    if (entry->offset == entry->end)
        return NULL;
    BW_TRY(bw_data_fill(reader, &entry->file.data, entry->offset, entry->end - entry->offset, block,
                        &reached));
    return add_rest(entry, reached, block);
}

static bool run(struct state *state, struct bw_data_reader *reader)
{
    if (state->started == state->planned || state->started == state->head + state->blocks)
        return false;
    struct slot *slot = slot_of(state, state->started++);
    if (state->spare_count)
        slot->block = state->spare[--state->spare_count];
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = NULL;
    for (size_t i = 0; i < slot->task.count && !error; i++)
        error = run_entry(state->stream, reader, &slot->task.entries[i], &slot->block);
    pthread_mutex_lock(&state->lock);
    fail(state, error);
    slot->done = !error;
    return true;
}

static bool is_over(const struct state *state)
{
    return state->error || (state->ended && state->head == state->planned);
}

static void work(void *context, unsigned worker, size_t task)
{
    struct state *state = context;
    struct bw_data_reader *reader = NULL;
    (void)worker;
    (void)task;
    struct bw_error *error = bw_data_reader_create(state->fs, &reader);
    pthread_mutex_lock(&state->lock);
    fail(state, error);
    while (!is_over(state)) {
        if (deliver(state) || plan(state) || run(state, reader))
            pthread_cond_broadcast(&state->changed);
        else
            pthread_cond_wait(&state->changed, &state->lock);
    }
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
    bw_data_reader_destroy(reader);
}

/* After an error: all that was given and is not at its end. */
static void abandon_rest(struct state *state)
{
    for (; state->head < state->planned; state->head++) {
        const struct bw_stream_task *task = &slot_of(state, state->head)->task;
        for (size_t i = 0; i < task->count; i++)
            if (task->entries[i].last)
                abandon(state, &task->entries[i].file);
    }
    if (state->planner.has_file)
        abandon(state, &state->planner.file);
}

static void free_state(struct state *state)
{
    for (size_t i = 0; state->slots && i < state->size; i++) {
        bw_data_block_free(&state->slots[i].block);
        free(state->slots[i].task.entries);
    }
    while (state->spare_count)
        bw_data_block_free(&state->spare[--state->spare_count]);
    free(state->slots);
    free(state->spare);
    bw_stream_planner_free(&state->planner);
    pthread_cond_destroy(&state->changed);
    pthread_mutex_destroy(&state->lock);
}

static unsigned choose_threads(unsigned wanted)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted)
        return wanted < MOST_THREADS ? wanted : MOST_THREADS;
    return processors < 1                 ? 1
           : processors < DEFAULT_THREADS ? (unsigned)processors
                                          : DEFAULT_THREADS;
}

static struct bw_error *run_stream(struct bw_fs *fs, const struct bw_stream *stream)
{
    unsigned threads = choose_threads(stream->threads);
    struct state state = {.fs = fs, .stream = stream, .blocks = threads + MORE_BLOCKS};
    state.size = state.blocks + MORE_TASKS;
    pthread_mutex_init(&state.lock, NULL);
    pthread_cond_init(&state.changed, NULL);
    bw_stream_planner_init(&state.planner, fs, stream);
    state.slots = calloc(state.size, sizeof *state.slots);
    state.spare = calloc(state.size, sizeof *state.spare);
    struct bw_pool *pool = bw_pool_create(threads);
    if (state.slots && state.spare && pool)
        bw_pool_run(pool, threads, work, &state);
    else
        state.error = bw_error_no_memory();
    bw_pool_destroy(pool);
    if (state.slots)
        abandon_rest(&state);
    struct bw_error *error = BW_TAKE(state.error);
    free_state(&state);
    return error;
}

struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *given)
{
    struct bw_stream stream;
    BW_TRY(BW_TAKE_OPTIONS(&stream, given));
    return run_stream(fs, &stream);
}
