/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream. Tasks are numbered and pass through a ring: planned, running, done, delivered.
 * Threads are not bound to these steps: an idle worker delivers the next task in order if it is
 * done; otherwise it plans ahead, or runs a task.
 *
 * Planning divides files into tasks. A file that fits into the rest of a task is added as a whole.
 * In a larger file, long holes and ranges that are bad as a whole become separate entries, which
 * cost nothing; data is divided into pieces of a block. Therefore, the number of tasks depends on
 * the stored data, not on the sizes of files.
 */
#include "btrfs-walk/file.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
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

/* A list of ranges that a worker reads at once. */
struct task {
    struct entries entries;
};

/* The state of the planning. */
struct planner {
    const struct bw_stream *stream;
    struct bw_data_advisor advisor;
    uint32_t sectorsize;
    struct bw_stream_file file; /* the file that is being divided */
    uint64_t offset, end;       /* its remaining part */
    bool has_file;
    bool ended; /* there are no more files */
};

static struct bw_error *next_file(struct planner *planner)
{
    struct bw_stream_file *file = &planner->file;
    bool got = false;
    BW_TRY(planner->stream->next(planner->stream->context, file, &got));
    planner->ended = !got;
    planner->has_file = got;
    uint64_t size = file->data.size;
    planner->offset = file->offset < size ? file->offset : size;
    planner->end = file->length < size - planner->offset ? planner->offset + file->length : size;
    return NULL;
}

/* Adds the part of the current file before `end` to a task. */
static struct bw_error *add_entry(struct planner *planner, struct task *task, uint64_t end,
                                  bool work)
{
    BW_TRY(entries_reserve(&task->entries, 1));
    bool last = end == planner->end;
    task->entries.items[task->entries.count++] =
        (struct entry){planner->file, planner->offset, end, work, last, 0};
    planner->offset = end;
    planner->has_file = !last;
    return NULL;
}

static struct bw_error *advise_file(struct planner *planner, uint64_t length)
{
    uint64_t left = planner->end - planner->offset;
    if (!left) /* for example a directory, which has no subvolume to read from */
        return NULL;
    return bw_data_advise(&planner->advisor, &planner->file.data, planner->offset,
                          planner->offset + (left < length ? left : length));
}

/* Adds the first piece of a file that is too large for one task; sets `full` if the task is full
 * then. */
static struct bw_error *add_piece(struct planner *planner, struct task *task, bool *full)
{
    struct bw_extent_cursor *cursor = &planner->advisor.cursor;
    struct bw_extent_piece piece;
    bool got;
    bw_extents_seek(cursor, &planner->file.data, planner->offset, planner->end);
    BW_TRY(bw_extents_next_readable(cursor, &piece, &got));
    bw_error_free(piece.extent.error);
    if (!bw_extent_is_data(&piece.extent))
        return add_entry(planner, task, piece.extent.offset + piece.extent.length, false);
    BW_TRY(advise_file(planner, BW_DATA_BLOCK));
    *full = true;
    uint64_t end = planner->offset + BW_DATA_BLOCK;
    end -= end % planner->sectorsize;
    return add_entry(planner, task, end < planner->end ? end : planner->end, false);
}

/* Fills an empty task, and requests read-ahead for it. It stays empty after the last file. */
static struct bw_error *fill_task(struct planner *planner, struct task *task)
{
    const struct bw_stream *stream = planner->stream;
    uint64_t used = 0;
    size_t held = 0;
    bool full = false;
    while (!full && task->entries.count < TASK_ENTRIES) {
        if (!planner->has_file)
            BW_TRY(next_file(planner));
        if (planner->ended)
            break;
        held += stream->held ? stream->held(stream->context, &planner->file) : 0;
        uint64_t left = planner->end - planner->offset;
        bool work = stream->work && left <= stream->work_limit &&
                    (planner->offset == planner->file.offset || left == 0);
        uint64_t room = left + UINT64_C(2) * planner->sectorsize + ROUND;
        if (work || room <= BW_DATA_BLOCK - used) {
            BW_TRY(advise_file(planner, work ? ADVISE_WORK : left));
            BW_TRY(add_entry(planner, task, planner->end, work));
            used = room < BW_DATA_BLOCK - used ? used + room : BW_DATA_BLOCK;
        } else if (used) {
            break;
        } else {
            BW_TRY(add_piece(planner, task, &full));
        }
        full |= used == BW_DATA_BLOCK || held > TASK_HELD;
    }
    return NULL;
}

/* The ring. */

struct slot {
    struct task task;
    struct bw_data_block block;
    bool done;
};

struct state {
    struct bw_fs *fs;
    const struct bw_stream *stream;
    struct planner planner;
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
};

static struct slot *slot_of(struct state *state, size_t number)
{
    return &state->slots[number % state->size];
}

/* Ends a file of which nothing more will be delivered. */
static void abandon_file(const struct state *state, const struct bw_stream_file *file)
{
    if (state->stream->finish)
        bw_error_free(state->stream->finish(state->stream->context, file, false));
}

/* Delivers the parts of an entry, up to index `last`. */
static struct bw_error *deliver_parts(const struct bw_stream *stream, const struct slot *slot,
                                      const struct entry *entry, size_t last)
{
    for (size_t part = entry->part; part < last && !entry->work; part++)
        BW_TRY(stream->visit(stream->context, &entry->file, &slot->block.parts.items[part]));
    return NULL;
}

static struct bw_error *deliver_task(const struct state *state, const struct slot *slot)
{
    const struct bw_stream *stream = state->stream;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < slot->task.entries.count; i++) {
        const struct entry *entry = &slot->task.entries.items[i];
        size_t last = i + 1 < slot->task.entries.count ? entry[1].part : slot->block.parts.count;
        if (!error)
            error = deliver_parts(stream, slot, entry, last);
        if (entry->last && error)
            abandon_file(state, &entry->file);
        else if (entry->last && stream->finish)
            error = stream->finish(stream->context, &entry->file, true);
    }
    return error;
}

static void recycle_slot(struct state *state, struct slot *slot)
{
    bw_data_block_clear(&slot->block);
    if (slot->block.bytes)
        state->spare[state->spare_count++] = slot->block;
    else
        bw_data_block_free(&slot->block);
    slot->block = (struct bw_data_block){0};
    slot->task.entries.count = 0;
    slot->done = false;
}

static bool deliver_next(struct state *state)
{
    struct slot *slot = slot_of(state, state->head);
    if (state->delivering || state->head == state->started || !slot->done)
        return false;
    state->delivering = true;
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = deliver_task(state, slot);
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    recycle_slot(state, slot);
    state->delivering = false;
    state->head++;
    return true;
}

static bool plan_next(struct state *state)
{
    if (state->planning || state->ended || state->planned == state->head + state->size)
        return false;
    struct slot *slot = slot_of(state, state->planned);
    state->planning = true;
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = fill_task(&state->planner, &slot->task);
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    state->planning = false;
    state->planned += slot->task.entries.count > 0;
    state->ended = state->planner.ended;
    return true;
}

/* Adds a bad part for the rest of an entry if it did not fit into the block. */
static struct bw_error *add_rest(const struct entry *entry, uint64_t from,
                                 struct bw_data_block *block)
{
    if (from >= entry->end)
        return NULL;
    return bw_data_block_add_bad(
        block, from, entry->end - from,
        bw_error_create(BW_ERROR_CORRUPT, "its extents changed while they were read"));
}

static struct bw_error *run_entry(const struct bw_stream *stream, struct bw_data_reader *reader,
                                  struct entry *entry, struct bw_data_block *block)
{
    uint64_t reached;
    entry->part = block->parts.count;
    if (entry->work)
        return stream->work(stream->context, reader, &entry->file);
    if (entry->offset == entry->end)
        return NULL;
    BW_TRY(bw_data_fill(reader, &entry->file.data, entry->offset, entry->end - entry->offset, block,
                        &reached));
    return add_rest(entry, reached, block);
}

static bool run_next(struct state *state, struct bw_data_reader *reader)
{
    if (state->started == state->planned || state->started == state->head + state->blocks)
        return false;
    struct slot *slot = slot_of(state, state->started++);
    if (state->spare_count)
        slot->block = state->spare[--state->spare_count];
    pthread_mutex_unlock(&state->lock);
    struct bw_error *error = NULL;
    for (size_t i = 0; i < slot->task.entries.count && !error; i++)
        error = run_entry(state->stream, reader, &slot->task.entries.items[i], &slot->block);
    pthread_mutex_lock(&state->lock);
    state->error = bw_error_first(state->error, error);
    slot->done = !error;
    return true;
}

static bool is_over(const struct state *state)
{
    return state->error || (state->ended && state->head == state->planned);
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
    while (!is_over(state)) {
        if (deliver_next(state) || plan_next(state) || run_next(state, reader))
            pthread_cond_broadcast(&state->changed);
        else
            pthread_cond_wait(&state->changed, &state->lock);
    }
    pthread_cond_broadcast(&state->changed);
    pthread_mutex_unlock(&state->lock);
    bw_data_reader_destroy(reader);
}

/* After an error, ends all files that have not been completed. */
static void abandon_rest(struct state *state)
{
    for (; state->head < state->planned; state->head++) {
        const struct task *task = &slot_of(state, state->head)->task;
        for (size_t i = 0; i < task->entries.count; i++)
            if (task->entries.items[i].last)
                abandon_file(state, &task->entries.items[i].file);
    }
    if (state->planner.has_file)
        abandon_file(state, &state->planner.file);
}

static void free_state(struct state *state)
{
    for (size_t i = 0; state->slots && i < state->size; i++) {
        bw_data_block_free(&state->slots[i].block);
        entries_free(&state->slots[i].task.entries);
    }
    while (state->spare_count)
        bw_data_block_free(&state->spare[--state->spare_count]);
    free(state->slots);
    free(state->spare);
    bw_extents_free(&state->planner.advisor.cursor);
    pthread_cond_destroy(&state->changed);
    pthread_mutex_destroy(&state->lock);
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
    state.planner = (struct planner){.stream = &stream, .sectorsize = fs->superblock.sectorsize};
    bw_extents_init(&state.planner.advisor.cursor, fs);
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
    if (state.slots)
        abandon_rest(&state);
    free_state(&state);
    return state.error;
}
