/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Puts the output of tasks that run side by side back in order. Tasks are numbered; what task n
 * writes leaves when all before it are finished. Finished output waits in a window of bounded size,
 * so that memory stays bounded too.
 */
#ifndef BW_WALK_ORDERED_OUTPUT_H
#define BW_WALK_ORDERED_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"

enum {
    BW_OUTPUT_WINDOW = 64,       /**< the most that `window` may be */
    BW_OUTPUT_CHUNK = 128 << 10, /**< output worth writing if it is the task's turn */
    BW_OUTPUT_LIMIT = 2 << 20,   /**< output at which a task waits for its turn */
};

struct bw_ordered_output {
    struct bw_error *(*consume)(void *context, const char *bytes, size_t length);
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t head;   /**< the task whose turn it is */
    size_t window; /**< tasks that may be under way or finished and waiting; 8 unless set before the
                      first */
    struct {
        struct bw_buffer buffer;
        bool finished;
    } held[BW_OUTPUT_WINDOW];
    struct bw_buffer spare[BW_OUTPUT_WINDOW]; /**< empty buffers with memory, to be used again */
    size_t spare_count;
    struct bw_error *error; /**< the first error of the consumer or of a task */
    atomic_bool stopped;    /**< set with `error`: tasks should end */
};

/** Starts; everything goes to `consume`. */
void bw_output_init(struct bw_ordered_output *output,
                    struct bw_error *(*consume)(void *, const char *, size_t), void *context);

/** Releases the memory; returns the first error there was. The caller owns it. */
struct bw_error *bw_output_destroy(struct bw_ordered_output *output);

/** Begins a new series of tasks, numbered from 0; none may be under way. */
void bw_output_restart(struct bw_ordered_output *output);

/** Waits until task `number` may start, and gives it a buffer. */
void bw_output_begin(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Writes and empties a buffer that has grown large, if it is the task's turn; waits for it only at
 * the limit. */
void bw_output_offer(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Ends a task; takes the buffer. */
void bw_output_finish(struct bw_ordered_output *output, size_t number, struct bw_buffer *buffer);

/** Remembers an error (takes it) and asks all tasks to stop. */
void bw_output_fail(struct bw_ordered_output *output, struct bw_error *error);

/** Whether tasks should end early. */
static inline bool bw_output_stopped(struct bw_ordered_output *output)
{
    return atomic_load_explicit(&output->stopped, memory_order_relaxed);
}

#endif
