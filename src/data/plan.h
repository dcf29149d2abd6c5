/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cutting files to tasks, for the stream: in which order what is read, and how much at a time. */
#ifndef BW_DATA_PLAN_H
#define BW_DATA_PLAN_H

#include "data/advise.h"
#include "data/stream.h"

/** A range of a file that a task reads. */
struct bw_stream_entry {
    struct bw_stream_file file;
    uint64_t offset, end;
    bool work;   /**< the stream's `work` does it, instead of reading it into the block */
    bool last;   /**< the file ends with it */
    size_t part; /**< its first part in the block, once it was read */
};

/** What one worker does at a time. */
struct bw_stream_task {
    struct bw_stream_entry *entries;
    size_t count, capacity;
};

/** Where the cutting has come. */
struct bw_stream_planner {
    const struct bw_stream *stream;
    struct bw_data_advisor advisor;
    uint32_t sectorsize;
    struct bw_stream_file file; /**< the one that is being cut */
    uint64_t offset, end;       /**< what is left of it */
    bool has_file;
    bool ended; /**< there are no more */
};

void bw_stream_planner_init(struct bw_stream_planner *planner, struct bw_fs *fs,
                            const struct bw_stream *stream);
void bw_stream_planner_free(struct bw_stream_planner *planner);

/** Fills an empty task, and tells the layers below what it is going to read. Empty at the end of
 * all files.
 */
struct bw_error *bw_stream_plan(struct bw_stream_planner *planner, struct bw_stream_task *task);

#endif
