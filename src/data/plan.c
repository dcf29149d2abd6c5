/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cutting. A file that fits what is left of the task goes into it as a whole. A larger one is
 * looked at: long holes, and ranges that are bad as a whole, are entries of their own that cost
 * nothing; data come in pieces of a block. So the number of tasks follows what is stored, not the
 * sizes of files.
 */
#include "data/plan.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"

enum {
    TASK_ENTRIES = 256,
    ROUND = 4096,          /* a block is taken in pieces of it */
    ADVISE_WORK = 4 << 20, /* of a file that `work` reads, which goes on by itself */
};

void bw_stream_planner_init(struct bw_stream_planner *planner, struct bw_fs *fs,
                            const struct bw_stream *stream)
{
    *planner =
        (struct bw_stream_planner){.stream = stream, .sectorsize = fs->superblock.sectorsize};
    bw_data_advisor_init(&planner->advisor, fs);
}

void bw_stream_planner_free(struct bw_stream_planner *planner)
{
    bw_data_advisor_free(&planner->advisor);
}

static struct bw_error *next_file(struct bw_stream_planner *planner)
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

/* Adds what lies before `end` to a task. */
static struct bw_error *add_entry(struct bw_stream_planner *planner, struct bw_stream_task *task,
                                  uint64_t end, bool work)
{
    if (!BW_ARRAY_RESERVE(task->entries, task->count, task->capacity))
        return bw_error_no_memory();
    bool last = end == planner->end;
    task->entries[task->count++] =
        (struct bw_stream_entry){planner->file, planner->offset, end, work, last, 0};
    planner->offset = end;
    planner->has_file = !last;
    return NULL;
}

static struct bw_error *advise(struct bw_stream_planner *planner, uint64_t length)
{
    uint64_t left = planner->end - planner->offset;
    if (!left) /* a directory, for example, which has no subvolume to read from */
        return NULL;
    return bw_data_advise(&planner->advisor, &planner->file.data, planner->offset,
                          planner->offset + (left < length ? left : length));
}

/* Adds the beginning of a file that is too large for one task; `full` if that makes the task full.
 */
static struct bw_error *add_piece(struct bw_stream_planner *planner, struct bw_stream_task *task,
                                  bool *full)
{
    struct bw_extent_cursor *cursor = &planner->advisor.cursor;
    struct bw_extent_piece piece;
    bool got;
    bw_extents_seek(cursor, &planner->file.data, planner->offset, planner->end);
    BW_TRY(bw_extents_next_readable(cursor, &piece, &got));
    bw_error_free(piece.error);
    if (!bw_extent_is_data(&piece))
        return add_entry(planner, task, piece.offset + piece.length, false);
    BW_TRY(advise(planner, BW_DATA_BLOCK));
    *full = true;
    uint64_t end = planner->offset + BW_DATA_BLOCK;
    end -= end % planner->sectorsize;
    return add_entry(planner, task, end < planner->end ? end : planner->end, false);
}

struct bw_error *bw_stream_plan(struct bw_stream_planner *planner, struct bw_stream_task *task)
{
    const struct bw_stream *stream = planner->stream;
    uint64_t used = 0;
    bool full = false;
    while (!full && task->count < TASK_ENTRIES) {
        if (!planner->has_file)
            BW_TRY(next_file(planner));
        if (planner->ended)
            break;
        uint64_t left = planner->end - planner->offset;
        bool work = stream->work && left <= stream->work_limit &&
                    (planner->offset == planner->file.offset || left == 0);
        uint64_t room = left + 2 * planner->sectorsize + ROUND;
        if (work || room <= BW_DATA_BLOCK - used) {
            BW_TRY(advise(planner, work ? ADVISE_WORK : left));
            BW_TRY(add_entry(planner, task, planner->end, work));
            used = room < BW_DATA_BLOCK - used ? used + room : BW_DATA_BLOCK;
        } else if (used) {
            break;
        } else {
            BW_TRY(add_piece(planner, task, &full));
        }
        full |= used == BW_DATA_BLOCK;
    }
    return NULL;
}
